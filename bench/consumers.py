"""Reading new rows without losing any: below flake's watermark, and below the oldest running transaction, for which a column
keeps the number of the transaction that has inserted the row."""

import contextlib
import operator
import statistics
import threading
import time

from rounds import compared, interleaved, medians
from sessions import pgbench

CLIENTS, ROWS = 8, 200_000
# Of the writers while lag is measured, so that the machine is not the limit.
PER_SECOND = 400
PAUSE = 0.001
LONG = 1.0

WAYS = {
    "watermark": {
        "label": "`id < flake_min(flake_watermark())`",
        "create": """CREATE TABLE tailed_by_watermark (
                         id bigint PRIMARY KEY DEFAULT flake_next('twitter'),
                         at timestamptz DEFAULT clock_timestamp(), n integer)""",
        "now": "SELECT flake_min(flake_watermark())",
        "read": "SELECT at FROM tailed_by_watermark WHERE id >= %s AND id < %s ORDER BY id",
    },
    "xid": {
        "label": "`xid < pg_snapshot_xmin(pg_current_snapshot())`",
        "create": """CREATE TABLE tailed_by_xid (
                         id bigserial PRIMARY KEY, xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
                         at timestamptz DEFAULT clock_timestamp(), n integer);
                     CREATE INDEX ON tailed_by_xid (xid, id)""",
        "now": "SELECT pg_snapshot_xmin(pg_current_snapshot())::text",
        "read": "SELECT at FROM tailed_by_xid WHERE xid >= %s::text::xid8 AND xid < %s::text::xid8 ORDER BY xid, id",
    },
}  # fmt: skip


def create(db):
    db.execute("CREATE TABLE IF NOT EXISTS unrelated (n integer)")
    for way, parts in WAYS.items():
        db.execute(f"DROP TABLE IF EXISTS tailed_by_{way}")
        db.execute(parts["create"])


def insert(way, **length):
    script = f"INSERT INTO tailed_by_{way} (n) VALUES (1);\n"
    return pgbench(script, CLIENTS, synchronous_commit="off", **length)


@contextlib.contextmanager
def long_transactions(connect, ended):
    """One after another, each writes a row that has nothing to do with what is read."""

    def run():
        with connect() as db:
            while not ended.is_set():
                with db.transaction():
                    db.execute("INSERT INTO unrelated VALUES (1)")
                    ended.wait(LONG)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


def lags(connect, way, seconds, disturbed):
    """Milliseconds from the insertion of a row, before its commit, to where a reader has it that asks every millisecond."""
    parts, found, ended = WAYS[way], [], threading.Event()

    def read():
        with connect() as db:
            low, = db.execute(parts["now"]).fetchone()
            while not (ended.is_set() and caught_up.is_set()):
                if ended.is_set():
                    caught_up.set()
                high, = db.execute(parts["now"]).fetchone()
                rows = db.execute(parts["read"], (low, high)).fetchall()
                seen = time.time()
                found.extend((seen - at.timestamp()) * 1000 for at, in rows)
                low = high
                time.sleep(PAUSE)

    caught_up = threading.Event()
    reader = threading.Thread(target=read)
    reader.start()
    with long_transactions(connect, ended) if disturbed else contextlib.nullcontext():
        insert(way, seconds=seconds, per_second=PER_SECOND)
        ended.set()
    reader.join()
    return found


def quantiles(values):
    """Median and 99 %, of all rounds."""
    all_values = sorted(value for found in values for value in found)
    return statistics.median(all_values), all_values[int(len(all_values) * 0.99)]


def measure(db, connect, rounds, seconds):
    create(db)
    found = {"labels": {way: parts["label"] for way, parts in WAYS.items()}}
    for name, disturbed in ("lag", False), ("lag beside long transactions", True):
        jobs = {way: lambda way=way, disturbed=disturbed: lags(connect, way, seconds, disturbed) for way in WAYS}
        found[name] = {way: quantiles(values) for way, values in interleaved(rounds, jobs).items()}

    def fill(way):
        def run():
            db.execute(f"TRUNCATE tailed_by_{way}")
            db.execute("CHECKPOINT")
            return insert(way, transactions=ROWS // CLIENTS)

        return run

    rates = interleaved(rounds, {way: fill(way) for way in WAYS})
    found["rates"], found["of rates"] = medians(rates), compared(rates, "xid", operator.truediv)
    size = "SELECT pg_total_relation_size('tailed_by_{0}')::float8 / count(*) FROM tailed_by_{0}"
    found["bytes"] = {way: db.execute(size.format(way)).fetchone()[0] for way in WAYS}
    return found
