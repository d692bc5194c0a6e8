"""Tables of a million rows: how long they take to fill, how large they become, how fast they are read."""

import time

import psycopg

from rounds import interleaved, medians

ROWS = 1_000_000
LOOKUPS = 50_000
RANGES, RANGE = 200, 1000


def wal(db):
    return int(db.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()[0])


def fill(db, contestants, rounds):
    """Seconds of an INSERT of all rows, bytes of WAL for each, and those who made an ID twice."""
    logged = {c.key: [] for c in contestants}
    repeated = set()

    def insert(contestant):
        def run():
            db.execute(f"TRUNCATE {contestant.table}")
            before, begin = wal(db), time.perf_counter()
            try:
                db.execute(contestant.fill(ROWS))
            except psycopg.errors.UniqueViolation:
                repeated.add(contestant.key)
            lasted = time.perf_counter() - begin
            logged[contestant.key].append((wal(db) - before) / ROWS)
            return lasted

        return run

    seconds, logged = medians(interleaved(rounds, {c.key: insert(c) for c in contestants})), medians(logged)
    for key in repeated:
        del seconds[key], logged[key]
    return seconds, logged, sorted(repeated)


def copy(db, contestants, rounds):
    """Seconds of a COPY of all rows, IDs by default."""
    lines = "".join(f"{n}\n" for n in range(ROWS)).encode()

    def load(contestant):
        def run():
            db.execute(f"TRUNCATE {contestant.table}")
            begin = time.perf_counter()
            with db.cursor() as cursor, cursor.copy(f"COPY {contestant.table} (n) FROM STDIN") as stream:
                stream.write(lines)
            return time.perf_counter() - begin

        return run

    return medians(interleaved(rounds, {c.key: load(c) for c in contestants if not c.insert}))


def on_disk(db, contestants):
    """Megabytes of the table and its indexes."""
    size = "SELECT pg_total_relation_size('{}') / 1e6"
    return {c.key: float(db.execute(size.format(c.table)).fetchone()[0]) for c in contestants}


def sizes(db, contestants):
    """Megabytes of the index of IDs, and how full its leaves are, in percent, where pgstattuple is installed."""
    if db.execute("SELECT count(*) FROM pg_available_extensions WHERE name = 'pgstattuple'").fetchone() == (1,):
        db.execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")
        density = "(SELECT avg_leaf_density FROM pgstatindex('{0}_pkey'))"
    else:
        density = "NULL"
    found = {}
    for contestant in contestants:
        query = f"SELECT pg_relation_size('{{0}}_pkey') / 1e6, {density}".format(contestant.table)
        size, full = db.execute(query).fetchone()
        found[contestant.key] = (float(size), full)
    return found


def reads(db, contestants, rounds):
    """Nanoseconds to find a row by its ID, and microseconds to read a thousand rows whose IDs follow each other."""
    db.execute("""SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_bitmapscan = off;
                  SET enable_material = off; SET enable_seqscan = off""")
    points, ranges = {}, {}
    for contestant in contestants:
        table = contestant.table
        db.execute(f"CREATE TEMP TABLE point_{table} AS SELECT id FROM {table} ORDER BY random() LIMIT {LOOKUPS}")
        db.execute(f"""
            CREATE TEMP TABLE range_{table} AS SELECT low, high FROM (
                SELECT id AS low, lead(id, {RANGE - 1}) OVER (ORDER BY id) AS high, row_number() OVER (ORDER BY id) AS n
                FROM {table}) s WHERE n % {RANGE} = 1 AND high IS NOT NULL ORDER BY random() LIMIT {RANGES}""")
        for of in "", "point_", "range_":
            db.execute(f"VACUUM ANALYZE {of}{table}")

        def query(text, count):
            def run():
                begin = time.perf_counter()
                assert db.execute(text).fetchone() == (count,)
                return time.perf_counter() - begin

            return run

        points[contestant.key] = query(
            f"SELECT count(t.n) FROM point_{table} JOIN {table} t USING (id)", LOOKUPS)  # fmt: skip
        ranges[contestant.key] = query(
            f"SELECT count(t.n) FROM range_{table} r JOIN {table} t ON t.id BETWEEN low AND high", RANGES * RANGE)  # fmt: skip
    found = medians(interleaved(rounds, points)), medians(interleaved(rounds, ranges))
    db.execute("RESET ALL")
    return (
        {key: seconds / LOOKUPS * 1e9 for key, seconds in found[0].items()},
        {key: seconds / RANGES * 1e6 for key, seconds in found[1].items()},
    )
