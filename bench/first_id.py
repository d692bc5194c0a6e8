"""Instructions of a session's first ID and of its exit, counted by valgrind in a running server: what who connects for each
transaction pays. The same on a busy machine as on an idle one.

    first_id.py BINDIR DATA [DIRECTORY]   in the stopped cluster in DATA; keeps callgrind's files in the directory
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import psycopg

COUNTED = ["standard_ExecutorRun", "shmem_exit"]
CALLS = {"flake_next": "flake_next('twitter')", "nextval": "nextval('counted')"}
TIMES = 4


@contextlib.contextmanager
def server(bindir, data, folder, functions=COUNTED):
    """The cluster, each of whose processes counts the instructions of these functions."""
    as_server = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    toggles = [f"--toggle-collect={function}" for function in functions]
    with open(folder / "log", "wb") as log:
        command = [
            *as_server, "valgrind", "--tool=callgrind", "--trace-children=yes", *toggles,
            f"--callgrind-out-file={folder}/out.%p", f"{bindir}/postgres", "-D", data,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/")
    try:
        yield
    finally:
        # runuser would forward a signal, but two seconds later it would kill the postmaster, whose children still write files.
        stop = [*as_server, f"{bindir}/pg_ctl", "stop", "--silent", "--timeout=300", "-D", data]
        if subprocess.run(stop, check=False, cwd="/").returncode:
            process.terminate()
        process.wait()


def connect(data):
    """A session of the server, as soon as that is up."""
    directory = re.findall(r"^unix_socket_directories = '(.*)'$", (pathlib.Path(data) / "postgresql.conf").read_text(), re.M)[-1]
    deadline = time.monotonic() + 120
    while True:
        try:
            return psycopg.connect(host=directory, user="postgres", dbname="postgres", autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def count(data, folder, call, ask=lambda: None):
    """Instructions of a session that makes one call, and exits. Another one asks for time when it has connected, which can take
    longer than time is granted for."""
    with connect(data) as db:
        process = db.info.backend_pid
        ask()
        db.execute(f"SELECT {call}")
    return counted_in(folder, process)


def ask_for_time(db):
    """Makes IDs until the server has been granted more."""
    before = mark = db.execute("SELECT mark FROM flake_stat").fetchone()
    while mark == before:
        db.execute(f"SELECT {CALLS['flake_next']}")
        mark = db.execute("SELECT mark FROM flake_stat").fetchone()


def ask_and_exit(data, folder):
    with connect(data) as db:
        process = db.info.backend_pid
        ask_for_time(db)
    counted_in(folder, process)


def counted_in(folder, process):
    """The instructions that a process has counted, as soon as it has exited."""
    file = folder / f"out.{process}"
    while not (file.exists() and (found := re.search(r"^(?:summary|totals): (\d+)", file.read_text(), re.M))):
        time.sleep(0.05)
    return int(found[1])


def least(data, folder, ask):
    """Of some sessions, as one of them may ask for time all the same, or build what PostgreSQL's sessions find afterwards."""
    return {name: min(count(data, folder, call, ask) for _ in range(TIMES)) for name, call in CALLS.items()}


def first_and_exit(bindir, data, folder=None):
    """Instructions in sessions that begin beside another one which has made IDs, and in those that are alone. None without
    valgrind."""
    if not shutil.which("valgrind"):
        return None
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder or stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o777)
        stack.enter_context(server(bindir, data, folder))
        with connect(data) as db:
            db.execute("CREATE EXTENSION IF NOT EXISTS flake")
            db.execute("CREATE SEQUENCE IF NOT EXISTS counted")
        alone = least(data, folder, lambda: ask_and_exit(data, folder))
        with connect(data) as other:
            return {"alone": alone, "beside": least(data, folder, lambda: ask_for_time(other))}


if __name__ == "__main__":
    print(first_and_exit(*sys.argv[1:]))
