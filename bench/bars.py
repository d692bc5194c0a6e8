"""Bars: how many instructions may be spent on what should be fast, by themselves or beside PostgreSQL's own way. Valgrind counts
them in a server of one process, so that a busy machine shows the same as an idle one.

    bars.py BINDIR DATA LIBRARY SYMBOLS   in the stopped cluster in DATA, which has the extension, with this library and its debug
                                          symbols; fails if a bar is exceeded
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

FEW, MANY = 2_000, 18_000
EXECUTOR = "standard_ExecutorRun"
# A compiler may have put those that call these into their callers.
PLANNER = "pg_parse_query", "parse_analyze_fixedparams", "pg_rewrite_query", "standard_planner"
# A key of each kind for every five minutes. PostgreSQL 19 would compress the statistics by lz4, and planning reads them.
SETUP = [
    "SET default_toast_compression = pglz",
    "DROP TABLE IF EXISTS keys",
    "CREATE TABLE keys AS SELECT flake_min(at, 'twitter') AS id, sno_make(at, 0, n % 50, n * 29 % 60000) AS sno "
    "FROM (SELECT n, timestamptz '2026-01-01Z' + n * interval '5 minutes' AS at FROM generate_series(1, 20000) n) s",
    "ALTER TABLE keys ADD uuid uuid",
    "UPDATE keys SET uuid = sno::uuid",
    *(f"CREATE INDEX ON keys ({key})" for key in ("id", "sno", "uuid")),
    "VACUUM ANALYZE keys",
    "CREATE EXTENSION IF NOT EXISTS flake_sequences",
    "DROP SEQUENCE IF EXISTS counted, adopted",
    "CREATE SEQUENCE counted; CREATE SEQUENCE adopted",
    "CALL flake_adopt('adopted', 'twitter')",
]
# A session's first ID costs more.
FIRST = "SELECT flake_next('twitter'), sno_next()"

IDS = "generate_series(2000000000000000001, 2000000000000000000 + {rows}) id"
CALLED = f"SELECT count(f) FROM (SELECT {{what}} AS f FROM {IDS} OFFSET 0) s"
# Both keys come in the same order, which is neither's.
UNSORTED = "SELECT count(f) FROM (SELECT f FROM (SELECT {what} AS f FROM keys ORDER BY hashint8(id) LIMIT {rows}) k OFFSET 0) s"
SORTED = UNSORTED.replace(" OFFSET", " ORDER BY f OFFSET")

# How many a call may take in the library, without what the executor adds, which depends on its version. Under valgrind, and the
# more so on a busy machine, steps of the clock pass between few IDs, and each takes a reading; time that has been taken is soon
# over, and a grant of more takes tens of thousands of instructions. Both are left out.
ALONE = [("flake_next", "flake_next('twitter')", 110), ("sno_next", "sno_next()", 195)]
SELDOM = "*by_the_clock*", "*next_or_wait*"
# How many times another call's a row may take; and what of both is not counted, the row and an argument.
BESIDE = [
    ("flake_to_text(id, 'twitter')", "id", 1.2, "id::text"),
    ("flake_to_text(id, 'tsid')", "id", 1.0, "id::text"),
    ("flake_from_text(id::text, 'twitter')", "id::text", 0.9, "id::text::bigint"),
    ("flake_node(id, 'twitter')", "id", 1.7, "flake_timestamp(id, 'twitter')"),
    ("flake_sequences.nextval('adopted')", "id", 0.5, "nextval('counted')"),
]
SORTS = [("sno", 1.05, "uuid")]
DAY = "'[2026-01-05Z,2026-01-06Z)'"
UUIDS = "'39646234-376d-3232-3232-323232323232' AND '39646364-6478-6878-7878-787878787878'"
PLANS = [
    (f"flake_during(id, {DAY}, 'twitter')", 1.2, "id BETWEEN 2007965264901046272 AND 2008327652766646271"),
    (f"sno_during(sno, {DAY})", 1.3, f"uuid BETWEEN {UUIDS}"),
]
# Keys of tables that are filled beside one whose key is bigserial, and how many times its instructions a row may take: by COPY,
# by COPY without an index, and by a statement that inserts this row alone, with its plan.
FILLED = [
    ("bigint DEFAULT flake_next('twitter')", 0.9, 0.7, 1.03),
    ("bigint DEFAULT flake_next('si')", 0.9, 0.7, 1.03),
    ("sno DEFAULT sno_next()", 0.96, 0.7, 1.06),
]
BIGSERIAL = "bigserial"

class Server(NamedTuple):
    """A stopped one, whose sessions load the library of a folder of its own."""

    bindir: str
    data: pathlib.Path
    folder: str

    def run(self, statements, *wrapper):
        as_server = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        settings = ["-D", self.data, "-c", f"dynamic_library_path={self.folder}:$libdir"]
        done = subprocess.run(
            [*as_server, *wrapper, f"{self.bindir}/postgres", "--single", *settings, "-E", "postgres"],
            input="".join(f"{statement}\n" for statement in statements), check=False, capture_output=True, text=True, cwd="/",
        )  # fmt: skip
        if done.returncode or re.search("(ERROR|FATAL|PANIC):", done.stderr):
            raise SystemExit(done.stderr)

    def counts(self, statements, *toggles, end):
        """The instructions in each of the statements, where collecting changes as each of these functions begins and ends, up to
        where the last one ends."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder).chmod(0o777)
            self.run(statements, "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
                     *(f"--toggle-collect={function}" for function in toggles), f"--dump-after={end}")  # fmt: skip
            files = [pathlib.Path(folder, f"out.{number}") for number in range(1, len(statements) + 1)]
            return [int(re.search(r"^totals: (\d+)", file.read_text(), re.M)[1]) for file in files]

    def of_rows(self, queries, *toggles):
        """The instructions per row of each query."""
        statements = [query.replace("{rows}", str(rows)) for query in queries for rows in (FEW, MANY)]
        found = self.counts([FIRST, *statements], *toggles, end=EXECUTOR)[1:]
        pairs = zip(queries, found[::2], found[1::2], strict=True)
        return {query: (many - few) / (MANY - FEW) for query, few, many in pairs}

    def of_copy(self, keys):
        """The instructions per row of COPY into a table with each key, where the table has a row already."""
        for rows in (1, FEW, MANY):
            file = self.data / f"rows.{rows}"
            file.write_text("".join(f"{n}\n" for n in range(rows)))
            file.chmod(0o644)
        copies = [f"COPY filled_{n} (n) FROM 'rows.{rows}'" for n in range(len(keys)) for rows in (1, FEW, MANY)]
        self.run(filled(keys))
        found = self.counts(copies, "DoCopy", end="DoCopy")
        return {key: (found[3 * n + 2] - found[3 * n + 1]) / (MANY - FEW) for n, key in enumerate(keys)}

    def of_statement(self, key):
        """The instructions of a statement that inserts a row, with all that the server does for it."""

        def all_of(rows):
            self.run(filled([key]))
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder).chmod(0o777)
                statements = ["INSERT INTO filled_0 (n) VALUES (1)"] * rows
                self.run([FIRST, *statements], "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out")
                return int(re.search(r"^totals: (\d+)", pathlib.Path(folder, "out").read_text(), re.M)[1])

        few, many = FEW // 20, MANY // 20
        return (all_of(many) - all_of(few)) / (many - few)

    def of_plans(self, conditions):
        """The instructions from the text to the plan of a query, where the same has been planned before."""
        statements = [f"SELECT FROM keys WHERE {condition}" for condition in conditions for _ in range(2)]
        return dict(zip(conditions, self.counts(statements, *PLANNER, end=PLANNER[-1])[1::2], strict=True))


def filled(keys):
    """Makes a table for each key."""
    return [f"DROP TABLE IF EXISTS filled_{n}; CREATE TABLE filled_{n} (id {key}, n int)" for n, key in enumerate(keys)]


def prepare(bindir, data, library, symbols, folder):
    """A server whose library valgrind knows the functions of."""
    os.chmod(folder, 0o755)
    shutil.copy(symbols, f"{folder}/flake.debug")
    subprocess.run(["objcopy", "--add-gnu-debuglink=flake.debug", library, "flake.so"], check=True, cwd=folder)
    server = Server(bindir, data, folder)
    server.run(SETUP)
    return server


def measured(bindir, data, library, symbols):
    """Each measurement: its name, its figure, and the most that it may be."""
    with tempfile.TemporaryDirectory() as folder:
        server = prepare(bindir, data, library, symbols, folder)
        for function, call, most in ALONE:
            query = CALLED.replace("{what}", call)
            yield call, server.of_rows([query], function, *SELDOM)[query], most

        called = {what: CALLED.replace("{what}", what) for bar in BESIDE for what in (bar[0], bar[1], bar[3])}
        keys = [key for bar in SORTS for key in (bar[0], bar[2])]
        ordered = {key: [query.replace("{what}", key) for query in (SORTED, UNSORTED)] for key in keys}
        rows = server.of_rows([*called.values(), *(query for queries in ordered.values() for query in queries)], EXECUTOR)
        for what, without, most, beside in BESIDE:
            own, others = (rows[called[call]] - rows[called[without]] for call in (what, beside))
            yield f"{what} beside {beside}", own / others, most
        for what, most, beside in SORTS:
            own, others = (rows[ordered[key][0]] - rows[ordered[key][1]] for key in (what, beside))
            yield f"sorting {what} beside {beside}", own / others, most

        keys = [BIGSERIAL, *(bar[0] for bar in FILLED)]
        indexed = server.of_copy([f"{key} PRIMARY KEY" for key in keys])
        copied = server.of_copy(keys)
        beside = server.of_statement(f"{BIGSERIAL} PRIMARY KEY")
        for key, most_indexed, most, most_single in FILLED:
            yield f"COPY, {key} PRIMARY KEY", indexed[f"{key} PRIMARY KEY"] / indexed[f"{BIGSERIAL} PRIMARY KEY"], most_indexed
            yield f"COPY, {key}", copied[key] / copied[BIGSERIAL], most
            yield f"INSERT of a row, {key} PRIMARY KEY", server.of_statement(f"{key} PRIMARY KEY") / beside, most_single

        plans = server.of_plans([what for bar in PLANS for what in (bar[0], bar[2])])
        for what, most, beside in PLANS:
            yield f"planning {what} beside {beside}", plans[what] / plans[beside], most


def main():
    if not shutil.which("valgrind"):
        print("    without bars of instructions: valgrind is not installed")
        return
    bindir, data, *library = sys.argv[1:]
    found = list(measured(bindir, pathlib.Path(data), *library))
    for what, figure, most in found:
        print(f"    {figure:8.2f} of {most:6} {what}{' EXCEEDED' if figure > most else ''}")
    sys.exit(any(figure > most for _, figure, most in found))


if __name__ == "__main__":
    main()
