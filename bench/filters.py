"""A filter by time on a large table: read row by row, by a column with an index, and by the ID as a range."""

import operator
import time

from rounds import compared, interleaved, medians

ROWS = 10_000_000
# How many rows a query returns.
FOUND = [1_000, 100_000]
# An ID of every 3 seconds.
STEP = 3
# The expression of the time, and the table. An expression that the planner does not know for an ID's time stays a filter.
WAYS = {
    "scan": ("plain", "flake_timestamp(id + 0)"),
    "column": ("generated", "created_at"),
    "view": ("shop", "created_at"),
    "by hand": ("plain", None),
}


def create(db):
    db.execute(f"""
        DROP TABLE IF EXISTS plain, generated CASCADE;
        CREATE TABLE plain (id bigint PRIMARY KEY, n integer);
        INSERT INTO plain SELECT flake_min('2026-01-01Z'::timestamptz + n * interval '{STEP} s'), n
        FROM generate_series(1, {ROWS}) n;
        CREATE VIEW shop AS SELECT *, flake_timestamp(id) AS created_at FROM plain;
        CREATE TABLE generated (
            id bigint PRIMARY KEY, n integer, created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED);
        INSERT INTO generated SELECT id, n FROM plain;
        CREATE INDEX ON generated (created_at)""")
    db.execute("VACUUM (ANALYZE) plain, generated")


def since(found):
    """The instant since which there are so many rows."""
    return f"timestamptz '2026-01-01Z' + interval '{(ROWS - found) * STEP + 1} s'"


def query(way, found, instant=None):
    table, column = WAYS[way]
    instant = instant or since(found)
    return f"SELECT sum(n) FROM {table} WHERE " + (f"{column} >= {instant}" if column else f"id >= flake_min({instant})")


def timed(db, text):
    def run():
        begin = time.perf_counter()
        db.execute(text).fetchone()
        return (time.perf_counter() - begin) * 1e3

    return run


def measure(db, rounds):
    """Milliseconds of queries and their quotients with those by hand, and what the tables take."""
    create(db)
    db.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
    results = {"rows": ROWS, "ms": {}, "of by hand": {}}
    for found in FOUND:
        sums = {way: db.execute(query(way, found)).fetchone() for way in WAYS}
        assert len(set(sums.values())) == 1, sums
        # Queries that take a millisecond need more rounds.
        quick = {way: timed(db, query(way, found)) for way in WAYS if way != "scan"}
        times = interleaved(rounds * 20, quick)
        results["ms"][found] = medians(times) | medians(interleaved(rounds, {"scan": timed(db, query("scan", found))}))
        results["of by hand"][found] = compared(times, "by hand", operator.truediv)
    everything = {way: timed(db, query(way, ROWS)) for way in ("scan", "view")}
    results["of scan, everything"] = compared(interleaved(rounds, everything), "scan", operator.truediv)["view"]
    for table in "plain", "generated":
        results[table], = db.execute(f"""
            SELECT json_build_object('bytes a row', pg_table_size('{table}')::float8 / {ROWS},
                                     'indexes', pg_indexes_size('{table}') / 1e6)""").fetchone()
    return results
