"""The cost of a call inside a query, and the uses of a session's memory."""

import operator
import os
import time

from rounds import compared, interleaved, medians

ROWS = 200_000
# How many ticks a session waits for.
TICKS = 3000
# In other units than IDs: what the functions beside flake_next cost, and what to compare them with.
OTHERS = {
    "clock_timestamp()": "clock_timestamp()",
    "flake_timestamp(n)": "flake_timestamp(n)",
    "flake_timestamp(n, 'si')": "flake_timestamp(n, 'si')",
    "flake_min(at)": "flake_min(timestamptz '2026-01-01Z')",
    "flake_decode(n)": "flake_decode(n)",
    "abs(n)": "abs(n)",
    "to_timestamp(n::float8)": "to_timestamp(n::float8)",
}

LAYOUTS = ["snowflake", "si", "si_single", "uniqueid", "discord", "instagram", "mastodon", "sonyflake", "tsid", "leaf"]


def timed(db, query):
    def run():
        begin = time.perf_counter()
        db.execute(query)
        return (time.perf_counter() - begin) / ROWS * 1e9

    return run


def calls(db, contestants, rounds):
    """Nanoseconds of a call in a row: rows that call it, less rows that do not."""
    db.execute("SET jit = off; SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB'")
    expressions = {c.key: c.call for c in contestants if c.is_call} | OTHERS | {"bare": "n"}
    query = f"SELECT count(f) FROM (SELECT {{}} AS f FROM generate_series(1, {ROWS}::bigint) n OFFSET 0) s"
    times = interleaved(rounds, {name: timed(db, query.format(e)) for name, e in expressions.items()})
    return compared(times, "bare", operator.sub)


def rows(db, rounds):
    """Nanoseconds of a row of sets: of flake_batch and of generate_series."""
    sets = {"flake_batch": f"flake_batch('twitter', {ROWS})", "generate_series": f"generate_series(1, {ROWS}::bigint)"}
    queries = {name: f"SELECT count(f) FROM {s} f" for name, s in sets.items()}
    queries |= {f"{name} in SELECT": f"SELECT count(f) FROM (SELECT {s} AS f OFFSET 0) s" for name, s in sets.items()}
    return medians(interleaved(rounds, {name: timed(db, query) for name, query in queries.items()}))


def ids_of_twitter(db):
    """How many the server has in a second."""
    return int(db.execute("SELECT ids_per_second FROM flake_layouts WHERE name = 'twitter'").fetchone()[0])


def own_memory(db):
    """kB that a session has for itself."""
    with open(f"/proc/{db.info.backend_pid}/smaps_rollup") as sizes:
        return sum(int(line.split()[1]) for line in sizes if line.startswith("Private_"))


def memory(connect):
    """kB that a session takes: when it is new, more with the first ID, and more with one in each of ten layouts."""
    with connect() as db:
        db.execute("SELECT count(*) FROM pg_class")
        new = own_memory(db)
        db.execute("SELECT flake_next('twitter')")
        one = own_memory(db)
        for layout in LAYOUTS:
            db.execute(f"SELECT flake_next('{layout}')")
        return {"new": new, "first ID": one - new, "ten layouts": own_memory(db) - one}


def waiting(connect):
    """A lone session of a layout with few IDs in a millisecond: the part of them that it gets, and of a core that it takes."""
    with connect() as db:
        def cpu():
            with open(f"/proc/{db.info.backend_pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        db.execute("SELECT flake_next('si')")
        ids, = db.execute("SELECT (ids_per_second / 1000)::int FROM flake_layouts WHERE name = 'si'").fetchone()
        count = ids * TICKS
        before, begin = cpu(), time.perf_counter()
        db.execute(f"SELECT count(f) FROM (SELECT flake_next('si') f FROM generate_series(1, {count}) OFFSET 0) s")
        lasted = time.perf_counter() - begin
        return {"ids": ids, "rate": count / ids / (lasted * 1000), "cpu": (cpu() - before) / lasted}
