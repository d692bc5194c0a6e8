"""COPY of a million rows whose IDs are defaults, beside bigserial; and a table whose key holds its time beside one that has a
column for it."""

import operator
import time

from contestants import Contestant
from rounds import compared, interleaved, medians
from sessions import pgbench
from tables import wal

ROWS = 1_000_000
CLIENTS = 8
KEYS = {"twitter": ("bigint", "flake_next('twitter')"), "si": ("bigint", "flake_next('si')"), "sno": ("sno", "sno_next()")}
# Files of the server: all rows, and the rows of one client.
WHOLE, PART = "load_whole", "load_part"
# A row of every second, and how many seconds a query looks back.
HOUR = 3600


def participants():
    ours = [Contestant(f"load_{key}", call, call, of_type, ours=True) for key, (of_type, call) in KEYS.items()]
    setup = "CREATE SEQUENCE load_numbers"
    return [*ours, Contestant("load_bigserial", "nextval() (bigserial)", "nextval('load_numbers')", setup=setup)]


def create(db, contestants, key):
    """Tables with or without an index on their IDs."""
    db.execute("DROP SEQUENCE IF EXISTS load_numbers CASCADE")
    for contestant in contestants:
        db.execute(f"DROP TABLE IF EXISTS {contestant.table}")
        db.execute(contestant.create() if key else contestant.create().replace("PRIMARY KEY", ""))


def measure(db, rounds):
    """Of COPY by one client, with and without a key, and by eight clients at once: seconds, bytes of WAL for each row, and
    megabytes of the index, of bigserial, and how many times these the others take."""
    for file, rows in (WHOLE, ROWS), (PART, ROWS // CLIENTS):
        db.execute(f"COPY (SELECT generate_series(1, {rows})) TO PROGRAM 'cat > {file}'")
    contestants = participants()
    found = {"labels": {c.key: c.label for c in contestants}}
    for way, key, clients in ("with a key", True, 1), ("without a key", False, 1), ("eight at once", True, CLIENTS):
        create(db, contestants, key)
        found[way] = loaded(db, contestants, rounds, key, clients)
    return found


def loaded(db, contestants, rounds, key, clients):
    logged, sizes = {c.key: [] for c in contestants}, {c.key: [] for c in contestants}

    def load(contestant):
        table = contestant.table

        def run():
            db.execute(f"TRUNCATE {table}")
            db.execute("CHECKPOINT")
            before, begin = wal(db), time.perf_counter()
            if clients == 1:
                db.execute(f"COPY {table} (n) FROM '{WHOLE}'")
            else:
                pgbench(f"COPY {table} (n) FROM '{PART}';\n", clients, transactions=1)
            lasted = time.perf_counter() - begin
            logged[contestant.key].append((wal(db) - before) / ROWS)
            index = f"pg_relation_size('{table}_pkey') / 1e6" if key else "0"
            count, size = db.execute(f"SELECT count(*), {index} FROM {table}").fetchone()
            assert count == ROWS // clients * clients
            sizes[contestant.key].append(float(size))
            return lasted

        return run

    values = {"seconds": interleaved(rounds, {c.key: load(c) for c in contestants}), "WAL": without_first(logged)}
    if key:
        values["index"] = without_first(sizes)
    base = "load_bigserial"
    return {
        name: {"bigserial": medians(each)[base], "of bigserial": compared(each, base, operator.truediv)}
        for name, each in values.items()
    }


def without_first(values):
    """The first round does not count."""
    return {key: found[1:] for key, found in values.items()}


def last_hour(db, rounds):
    """Of a table of a million rows, whose times are in their keys or in a column with an index: milliseconds of a query for the
    rows of an hour, and megabytes. Both find the same rows. Rows of one COPY have one time, which an index stores once for many
    of them, so the sizes are measured with different times."""
    db.execute(f"""
        DROP TABLE IF EXISTS of_keys, of_columns CASCADE;
        CREATE TABLE of_keys (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), n bigint);
        CREATE VIEW with_time AS SELECT *, flake_timestamp(id) AS created_at FROM of_keys;
        CREATE TABLE of_columns (id bigserial PRIMARY KEY, n bigint, created_at timestamptz NOT NULL DEFAULT now());
        CREATE INDEX ON of_columns (created_at);
        INSERT INTO of_columns (n, created_at)
            SELECT n, date_trunc('second', now()) - ({ROWS} - n) * interval '1 second' FROM generate_series(1, {ROWS}) n;
        INSERT INTO of_keys SELECT flake_min(created_at) + n % 4096, n FROM of_columns ORDER BY created_at""")
    db.execute("VACUUM ANALYZE of_keys, of_columns")
    since, = db.execute(f"SELECT max(created_at) - interval '{HOUR} seconds' FROM of_columns").fetchone()
    query = "SELECT count(*), sum(n), min(created_at) FROM {} WHERE created_at > %s"
    answers = {db.execute(query.format(table), [since]).fetchone() for table in ("with_time", "of_columns")}
    assert len(answers) == 1 and {count for count, *_ in answers} == {min(HOUR, ROWS)}, answers

    def ask(table):
        def run():
            begin = time.perf_counter()
            db.execute(query.format(table), [since]).fetchone()
            return (time.perf_counter() - begin) * 1e3

        return run

    size = "SELECT pg_total_relation_size('{}') / 1e6"
    tables = {"flake": "of_keys", "timed": "of_columns"}
    return {
        "ms": medians(interleaved(rounds * 20, {"flake": ask("with_time"), "timed": ask("of_columns")})),
        "MB": {key: float(db.execute(size.format(table)).fetchone()[0]) for key, table in tables.items()},
    }
