"""Servers whose clocks stand still, so that nothing depends on the speed of the machine.

All IDs of an instant lie in one tick. A server has few procs, and most of them are in use at once. So two servers, or a server
before and after a fault, make the same IDs unless something prevents it.
"""

import concurrent.futures
import contextlib
import datetime
import math
import threading
import time

import psycopg

from clients import KINDS
from waiting import LONG, processor_seconds, sleeps, wait_until

START = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
SESSIONS = 6
SETTINGS = [
    "max_connections=8", "superuser_reserved_connections=0", "max_worker_processes=3", "max_prepared_transactions=8",
    "autovacuum=off", "wal_keep_size=64MB", "wal_sender_timeout=0", "wal_receiver_timeout=0", "wal_retrieve_retry_interval=100ms",
]  # fmt: skip
TABLE = f"CREATE TABLE kept ({', '.join(f'{kind} text DEFAULT {call}' for kind, call in KINDS.items())})"
# While the clock stands, the sessions of one of two nodes together make 17 IDs of base64id, because they are not far ahead of it.
COUNT = 2
ROWS = f"generate_series(1, {COUNT})"
# A clock that stands, as Server.set_clock wants it, and how long a unit of snos lasts.
CLOCK, UNIT = "%Y-%m-%d %H:%M:%S.%f", datetime.timedelta(milliseconds=4)
# How many seconds a session tries to make IDs that may be refused. Because the clock stands, waiting longer would change
# nothing. For IDs that it must get, it has LONG.
PATIENCE = 0.3
# The result for a session that may not make IDs at an instant: an error, or no answer until it is canceled.
REFUSED = (psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.QueryCanceled)


def at(seconds):
    """A clock that stands still, `seconds` after the start of 2030."""
    return (START + datetime.timedelta(seconds=seconds)).strftime(CLOCK)


def running(seconds):
    """A clock that shows the same now, and runs."""
    return f"{START.timestamp() + seconds - time.time():+f}"


def create_table(server):
    server.sql(TABLE)


def server_at_0(servers, *settings, fill=create_table, **options):
    """A server with the extension and a table, which made its first ID two hours ago."""
    server = servers(*SETTINGS, *settings, clock=running(-7200), **options)
    fill(server)
    server.sql("SELECT flake_next('twitter')")
    server.set_clock(at(0))
    return server


@contextlib.contextmanager
def sessions(server, **options):
    """Connects about as many sessions as there are procs. Their processes have ended after the block."""
    with contextlib.ExitStack() as opened:
        yield [opened.enter_context(server.session(**options)) for _ in range(SESSIONS)]


@contextlib.contextmanager
def cancelled(db, patience=PATIENCE):
    """Cancels statements of a session that has slept for `patience` seconds, or has used as much processor time, as a session
    does that waits for microseconds of a clock that stands. It cancels repeatedly, because a statement may not have begun the
    first time. On a busy machine, time without a processor does not count."""
    ended = threading.Event()

    def cancel():
        slept, worked = 0, math.inf
        while not ended.wait(patience / 10):
            with contextlib.suppress(OSError, psycopg.OperationalError):
                slept += sleeps(db)
                worked = min(worked, processor_seconds(db))
                if slept == 10 or processor_seconds(db) - worked > patience:
                    slept, worked = 0, math.inf
                    db.cancel()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    try:
        yield
    finally:
        ended.set()
        canceller.join()


def attempt(db, made, rows=ROWS, patience=PATIENCE):
    """Tries to make IDs of each kind. Returns the kinds that were refused."""
    refused = []
    for kind, call in made.kinds.items():
        with cancelled(db, patience):
            try:
                new = db.execute(f"SELECT {call} FROM {rows}").fetchall()
            except REFUSED:
                refused.append(kind)
                continue
        made.add(new, [kind])
    return refused


def attempts(server, made, rows=ROWS, patience=PATIENCE, **options):
    """Tries to make IDs in all sessions. Returns the kinds that one of them was refused."""
    with sessions(server, **options) as dbs, concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
        refused = list(pool.map(lambda db: attempt(db, made, rows, patience), dbs))
    return {kind for kinds in refused for kind in kinds}


def make(db, made, rows=ROWS):
    """Makes IDs of each kind."""
    assert attempt(db, made, rows, LONG) == []


def make_in_all(server, made, **options):
    """Makes IDs of each kind in all procs."""
    assert attempts(server, made, patience=LONG, **options) == set()


def next_unit(server):
    """Sets a clock that stands to the next unit of snos, because sessions can use up the IDs of a layout while it stands."""
    with contextlib.suppress(ValueError):
        stands = datetime.datetime.strptime((server.base / "clock").read_text().strip(), CLOCK)
        server.set_clock((stands + UNIT).strftime(CLOCK))


def insert(server, made, **options):
    """Inserts rows with IDs of each kind from all procs."""
    ids = ", ".join(f"{kind}::text" for kind in made.kinds)
    with sessions(server, **options) as dbs:
        for db in dbs:
            with cancelled(db, LONG):
                made.add(db.execute(f"INSERT INTO kept SELECT FROM {ROWS} RETURNING {ids}").fetchall())


def open_ledger(server, made):
    """Asks for IDs until the ledger is open."""

    def opened():
        attempts(server, made)
        return server.value("SELECT mark > clock_timestamp() FROM flake_stat")

    wait_until(opened)


def pass_through(server, made, *instants, rows=ROWS, **options):
    """Sets the clock to instants at which IDs may exist, and to eight seconds after the last one, where all sessions make IDs."""
    for seconds in instants:
        server.set_clock(at(seconds))
        attempts(server, made, rows, **options)
    server.set_clock(running(instants[-1] + 8))
    before = len(made)
    with sessions(server, **options) as dbs:
        for db in dbs:
            for kind, call in made.kinds.items():
                made.add(db.execute(f"SELECT {call} FROM {rows}").fetchall(), [kind])
    assert len(made) >= before + COUNT * len(made.kinds) * SESSIONS


def restart_with_nothing_to_replay(primary, standby):
    """Restarts a standby from a checkpoint after which it has no commit to replay."""
    standby.wait_for_replay(primary)
    primary.sql("CHECKPOINT")
    standby.wait_for_replay(primary)
    standby.sql("CHECKPOINT")
    standby.restart()
    standby.wait_for_replay(primary)


def stop_replaying(standby):
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
    standby.reload()
    wait_until(lambda: not standby.sql("SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'"))


def fail_over(primary, standby):
    """Promotes the standby after it has replayed everything that was committed."""
    standby.wait_for_replay(primary)
    primary.stop("immediate")
    standby.promote()
