"""Writers that use IDs in every way that transactions can, and tailers that read the table in the meantime: each row once, and
in order."""

import contextlib
import dataclasses
import multiprocessing
import os
import random
import re
import subprocess
import time

import psycopg

import recording
from conftest import bindir
from waiting import Background, wait_until

# The number of rows that a load has at least, even on a slow machine.
LEAST = 100
# The number of rows in a burst.
BURST = int(os.environ.get("FLAKE_TAILING_BURST", "5"))
SLEEP = "pg_sleep(CASE WHEN random() < 0.6 THEN random() * 0.003 ELSE random() * 0.05 END)"
# Two tables, each with its writers and tailers: how an ID is made, its type, the smallest ID now, and one below all.
TABLES = {
    "of_bigint": ("flake_next('twitter')", "bigint", "flake_min(flake_watermark())", 0),
    "of_sno": ("sno_next()", "sno", "sno_min(flake_watermark())", 16 * "2"),
}
SETUP = """
    CREATE TABLE {table} (id {type} PRIMARY KEY DEFAULT {make});
    CREATE FUNCTION covered(id {type}) RETURNS {type} LANGUAGE plpgsql AS $$ BEGIN
        RETURN {cover}(id);
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
        RETURN {make};
    END $$
"""
# The scripts that pgbench runs, with their weights.
SCRIPTS = {
    "plain": (40, """\\set n random(1, 5)
                     BEGIN\\;INSERT INTO {table} SELECT FROM generate_series(1, :n)\\;SELECT {sleep}\\;COMMIT;"""),
    "autocommit": (20, "INSERT INTO {table} DEFAULT VALUES;"),
    "bursts": (60, f"INSERT INTO {{table}} SELECT FROM generate_series(1, {BURST});"),
    "late": (15, """BEGIN;
                    SELECT {make} AS id \\gset
                    SELECT {sleep};
                    INSERT INTO {table} VALUES (':id');
                    INSERT INTO {table} DEFAULT VALUES;
                    SELECT {sleep};
                    COMMIT;"""),
    "savepoints": (10, """BEGIN;
                          SAVEPOINT a;
                          SELECT {make} AS id \\gset
                          INSERT INTO {table} DEFAULT VALUES;
                          SELECT {sleep};
                          ROLLBACK TO a;
                          SAVEPOINT b;
                          INSERT INTO {table} DEFAULT VALUES;
                          RELEASE b;
                          INSERT INTO {table} VALUES (':id');
                          COMMIT;"""),
    "aborts": (8, "BEGIN;\nINSERT INTO {table} DEFAULT VALUES;\nSELECT {sleep};\nROLLBACK;"),
    "unused": (5, "BEGIN;\nSELECT {make};\nSELECT {sleep};\nCOMMIT;"),
    "covered": (10, """SELECT {make} AS id \\gset
                       BEGIN;
                       INSERT INTO {table} SELECT covered(':id'::{type});
                       SELECT {sleep};
                       COMMIT;"""),
    "prepared": (9, """\\set n random(1, 1000000000000)
                       BEGIN;
                       INSERT INTO {table} SELECT FROM generate_series(1, 2);
                       SELECT {sleep};
                       PREPARE TRANSACTION '{table} :n';
                       SELECT {sleep};
                       COMMIT PREPARED '{table} :n';"""),
    "families": (6, """\\set n random(1, 1000000000000)
                       INSERT INTO parents VALUES (:n);
                       INSERT INTO children VALUES (:n), (:n);
                       BEGIN;
                       DELETE FROM parents WHERE id = :n;
                       SELECT {sleep};
                       COMMIT;"""),
    "prepared in vain": (2, """\\set n random(1, 1000000000000)
                               BEGIN;
                               INSERT INTO {table} DEFAULT VALUES;
                               PREPARE TRANSACTION '{table} :n';
                               ROLLBACK PREPARED '{table} :n';"""),
}  # fmt: skip
# Long transactions in another database, which must not hold watermarks.
ELSEWHERE = "BEGIN;\nSELECT flake_next('twitter');\nSELECT pg_sleep(1);\nCOMMIT;\n"


@dataclasses.dataclass(frozen=True)
class Tailer:
    name: str
    table: str = "of_bigint"
    pause: float = 0.0
    repeatable: bool = False  # snapshots that are older than the statement
    naive: bool = False  # without a watermark


@dataclasses.dataclass
class Seen:
    lost: int
    twice: int
    disorder: int
    never_committed: int
    rows: int

    @classmethod
    def of(cls, committed, seen, disorder):
        once = set(seen)
        return cls(len(committed - once), len(seen) - len(once), disorder, len(once - committed), len(seen))


@dataclasses.dataclass
class Outcome:
    seen: dict
    rows: int
    terminated: int
    records: list
    bad: list


RECORDERS = 3
TAILERS = [
    Tailer("naive", pause=0.001, naive=True), Tailer("naive, sno", "of_sno", pause=0.001, naive=True),
    Tailer("fast"), Tailer("every 20 ms", pause=0.02), Tailer("old snapshots", repeatable=True),
    Tailer("old snapshots, every 20 ms", pause=0.02, repeatable=True), Tailer("sno", "of_sno", pause=0.005),
    Tailer("sno, old snapshots", "of_sno", pause=0.005, repeatable=True),
]  # fmt: skip


# Messages that clients of pgbench may get: their session was terminated, or another session has ended their prepared transaction.
EXPECTED = re.compile(
    "terminating connection|server closed|prepared transaction with identifier .* (does not exist|is busy)"
)


def prepare(server):
    """Creates the tables, and another database."""
    for table, (make, kind, _, _) in TABLES.items():
        server.sql(SETUP.format(table=table, type=kind, make=make, cover="sno_cover" if kind == "sno" else "flake_cover"))
    recording.prepare(server)
    server.sql("CREATE DATABASE elsewhere")
    with server.connect(dbname="elsewhere") as db:
        db.execute("CREATE EXTENSION flake")


def tail(server, tailer, stopped):
    """Returns the rows in the order of reading, and how many were not above the row before. After the writers have stopped, it
    reads until all rows are below the watermark."""
    _, kind, low, last = TABLES[tailer.table]
    query = f"SELECT id FROM {tailer.table} WHERE id > %s::{kind} {'' if tailer.naive else f'AND id < {low}'} ORDER BY id"
    rest = f"SELECT EXISTS (SELECT FROM {tailer.table} WHERE id >= {low})"
    seen, disorder = [], 0
    with server.connect() as db:
        while True:
            ends = stopped.is_set() and (tailer.naive or db.execute(rest).fetchone() == (False,))
            if tailer.repeatable:
                # The lock comes before the snapshot, because the table may be rewritten.
                db.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE {tailer.table} IN ACCESS SHARE MODE; SELECT")
                time.sleep(random.choice([0, 0, random.random() * 0.02]))
            for _ in range(1 + tailer.repeatable):
                for id, in db.execute(query, (last,)).fetchall():
                    disorder += id <= last
                    last = id
                    seen.append(id)
            if tailer.repeatable:
                db.execute("COMMIT")
            if ends:
                return seen, disorder
            time.sleep(tailer.pause)


def in_process(read, arguments, result):
    try:
        result.send(read(*arguments))
    except BaseException as failure:
        result.send(failure)
        raise


class Load(Background):
    """Clients of pgbench that write until the end of a `with`. They are restarted every second, because some lose their
    connection."""

    def __init__(self, server):
        super().__init__()
        self.server, self.unexpected, self.terminated, self.orphans = server, set(), 0, set()
        for table, (make, kind, _, _) in TABLES.items():
            scripts = []
            for name, (weight, script) in SCRIPTS.items():
                path = server.base / f"{table} {name}.sql"
                path.write_text(script.format(table=table, make=make, type=kind, sleep=SLEEP) + "\n")
                scripts += ["-f", f"{path}@{weight}"]
            self.add_clients("writer", 3, scripts)
            self.add_clients("victim", 1, scripts)
        path = server.base / "elsewhere.sql"
        path.write_text(ELSEWHERE)
        self.add_clients("writer", 1, ["-f", path], "elsewhere")
        self.add(recording.write_anew, self, self.ends)

    def add_clients(self, name, clients, scripts, dbname="postgres"):
        command = [bindir() / "pgbench", "-n", "-c", str(clients), "-T", "1", *map(str, scripts)]
        self.add(self.run, command, {"PGAPPNAME": name, "PGDATABASE": dbname})

    def connect(self):
        return self.server.connect()

    def run(self, command, names):
        while not self.ends.is_set():
            environment = self.server.client_environment | names
            done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
            told = [line for line in done.stderr.splitlines() if "ERROR:" in line or "FATAL:" in line]
            self.unexpected.update(line for line in told if not EXPECTED.search(line))

    def disturb(self):
        """Terminates some sessions, and ends prepared transactions that no other session has ended."""
        with self.server.connect() as db:
            self.terminated += db.execute("""
                SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE application_name = 'victim' AND random() < 0.3""").fetchone()[0]
            self.end_prepared(db, self.orphans)
            self.orphans = {gid for gid, in db.execute("SELECT gid FROM pg_prepared_xacts")}

    def end_prepared(self, db, gids):
        for gid in gids:
            with contextlib.suppress(psycopg.errors.UndefinedObject, psycopg.errors.ObjectNotInPrerequisiteState):
                db.execute(f"{random.choice(['COMMIT', 'ROLLBACK'])} PREPARED '{gid}'")

    def __exit__(self, *raised):
        """After this returns, nothing is written any more."""
        super().__exit__(*raised)
        left = "SELECT pid FROM pg_stat_activity WHERE application_name IN ('writer', 'victim')"
        wait_until(lambda: not self.server.sql(left))
        with self.server.connect() as db:
            self.end_prepared(db, [gid for gid, in db.execute("SELECT gid FROM pg_prepared_xacts").fetchall()])


def run(server, seconds):
    """Loads the tables for some seconds, and returns the result. The tables are empty afterwards."""
    context = multiprocessing.get_context("fork")
    # Recorders write too, so they stop first.
    recorded, stopped = context.Event(), context.Event()

    def start(read, *arguments):
        result, end = context.Pipe(duplex=False)
        process = context.Process(target=in_process, args=(read, (server, *arguments), end), daemon=True)
        process.start()
        return process, result

    tailers = {tailer: start(tail, tailer, stopped) for tailer in TAILERS}
    recorders = [start(recording.record, recorded) for _ in range(RECORDERS)]
    begin = time.monotonic()
    with Load(server) as load:
        while time.monotonic() < begin + seconds:
            time.sleep(0.3)
            load.disturb()
        wait_until(lambda: server.value(f"SELECT count(*) FROM {min(TABLES)}") > LEAST)
    assert not load.unexpected, sorted(load.unexpected)[:5]
    recorded.set()

    def end(name, process, result):
        assert result.poll(120), f"{name} does not come to the end"
        read = result.recv()
        if isinstance(read, BaseException):
            raise read
        process.join()
        return read

    records = [one for process in recorders for one in end("a recorder", *process)]
    committed = {table: {id for id, in server.sql(f"SELECT id FROM {table}")} for table in TABLES}
    stopped.set()
    seen = {tailer: Seen.of(committed[tailer.table], *end(tailer.name, *process)) for tailer, process in tailers.items()}
    truth = {table: recording.Truth(server, table) for table in TABLES}
    bad = [one for one in records if not truth[one.table].agrees(one)]
    server.sql(f"TRUNCATE {', '.join(TABLES)}, parents, children")
    return Outcome(seen, sum(map(len, committed.values())), load.terminated, records, bad)
