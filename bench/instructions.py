"""Instructions of a call, counted by valgrind in a server of one process: the same on a busy machine as on an idle one."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

FEW, MANY = 10_000, 30_000


def count(bindir, data, expression, rows, first=""):
    """Instructions of the executor for so many rows."""
    query = f"SELECT count(f) FROM (SELECT {expression} AS f FROM generate_series(1, {rows}::bigint) n OFFSET 0) s\n"
    as_server = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder).chmod(0o777)
        done = subprocess.run(
            [*as_server, "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
             "--toggle-collect=standard_ExecutorRun", f"{bindir}/postgres", "--single", "-D", data, "-E", "postgres"],
            input=first + query, check=False, capture_output=True, text=True, cwd="/",
        )  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found[1]) if found else None


def per_call(bindir, data, calls):
    """Instructions of each call, less a row's that calls nothing; and the latter after LOAD 'flake', which should be
    the same as before. None without valgrind."""
    if not shutil.which("valgrind"):
        return None

    def of_row(expression, first=""):
        few, many = (count(bindir, data, expression, rows, first) for rows in (FEW, MANY))
        return None if few is None or many is None else (many - few) / (MANY - FEW)

    bare = of_row("n")
    found = {name: of_row(expression) for name, expression in calls.items()}
    found = {name: value - bare for name, value in found.items() if value is not None}
    return found | {"bare": bare, "bare, library loaded": of_row("n", "LOAD 'flake'\n")}
