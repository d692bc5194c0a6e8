"""Readers that record the watermark of each statement and the rows below it. At the end, the table must have the same rows there.

They ask in all the ways in which a statement can ask: with snapshots of any age, while foreign keys act, and after they have
locked the table, because the table is rewritten in the meantime.
"""

import bisect
import contextlib
import dataclasses
import functools
import random
import time

import psycopg

# Rows that foreign keys act on. Each action asks for a watermark with a snapshot of its own, and inserts a row.
FAMILIES = """
    CREATE TABLE parents (id bigint PRIMARY KEY);
    CREATE TABLE children (
        parent bigint REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE, made timestamptz DEFAULT '-infinity');
    CREATE INDEX ON children (parent);
    CREATE FUNCTION note_child() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO of_bigint DEFAULT VALUES;
        INSERT INTO of_sno DEFAULT VALUES;
        RETURN COALESCE(NEW, OLD);
    END $$;
    CREATE TRIGGER noted BEFORE UPDATE OR DELETE ON children FOR EACH ROW
        WHEN (OLD.made < flake_watermark()) EXECUTE FUNCTION note_child()
"""
BEGET = "WITH one AS (INSERT INTO parents VALUES ({0}) RETURNING id) SELECT FROM one; INSERT INTO children VALUES ({0}), ({0})"
# Statements with an action of a foreign key change a family.
ACTIONS = ["DELETE FROM parents WHERE id = {0}", "UPDATE parents SET id = -id WHERE id = {0}"]
# The ways to rewrite the table.
REWRITES = [
    "ALTER TABLE {0} ALTER filler TYPE bigint", "ALTER TABLE {0} ALTER filler TYPE integer", "VACUUM FULL {0}",
    "CLUSTER {0} USING {0}_pkey", "REINDEX TABLE {0}",
]  # fmt: skip
# The window below the watermark that a statement reads.
ABOVE, BELOW = "{min}(flake_watermark() - interval '2 s')", "{min}(flake_watermark())"
WINDOW = f"id >= {ABOVE} AND id < {BELOW}"
# The hash of a row, so that windows can be compared.
HASH = "hashtextextended(id::text, 0)"
FOUND = f"{ABOVE}::text, {BELOW}::text, count(*), COALESCE(bit_xor({HASH}), 0)"
# Each returns the window, the number of rows in it, and their checksum.
STATEMENTS = {
    "plain": f"SELECT {FOUND} FROM {{table}} WHERE {WINDOW}",
    "span": f"""SELECT {FOUND} FROM {{table}}
                WHERE {WINDOW} AND {{during}}(id, tstzrange(flake_watermark() - interval '1 h', flake_watermark()))""",
    "nested spans": f"""
        SELECT {FOUND} FROM {{table}}
        WHERE {WINDOW} AND {{during}}(id, (
            SELECT CASE WHEN {{during}}({{min}}(h), tstzrange(h - interval '1 h', CASE WHEN {{during}}(
                {{min}}(h - interval '1 min'), tstzrange(h - interval '1 h', h)) THEN 'infinity'::timestamptz END))
            THEN tstzrange(h - interval '1 h', h, '[]') END FROM (SELECT flake_watermark() AS h OFFSET 0) s))""",
    "grouping sets": f"""
        SELECT {ABOVE}::text, {BELOW}::text, COALESCE(sum(rows) FILTER (WHERE kind = 3), 0)::bigint,
            CASE WHEN bit_xor(sums) FILTER (WHERE kind = 1) IS NOT DISTINCT FROM bit_xor(sums) FILTER (WHERE kind = 2)
                  AND COALESCE(sum(rows) FILTER (WHERE kind = 1), 0) = COALESCE(sum(rows) FILTER (WHERE kind = 3), 0)
            THEN COALESCE(bit_xor(sums) FILTER (WHERE kind = 3), 0) END
        FROM (
            SELECT GROUPING(part, is_late) AS kind, count(*) AS rows, bit_xor(hash) AS sums FROM (
                SELECT {HASH} AS hash, {HASH} % 7 AS part,
                    {{during}}(id, tstzrange(flake_watermark() - interval '1 s', flake_watermark())) AS is_late
                FROM {{table}} WHERE {WINDOW}
            ) s GROUP BY GROUPING SETS ((part), (is_late), ())
        ) t""",
    "function": "SELECT * FROM found_in_{table}()",
    "sub-queries": f"""
        WITH asked AS MATERIALIZED (SELECT flake_watermark() AS h)
        SELECT {FOUND} FROM {{table}}
        WHERE id >= {ABOVE} AND id < (SELECT {{min}}(h) FROM asked) AND EXISTS (SELECT FROM asked WHERE h = flake_watermark())""",
}  # fmt: skip
LEVELS = ["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "REPEATABLE READ", "SERIALIZABLE"]


@dataclasses.dataclass(frozen=True)
class Kind:
    """The functions of a table's IDs, and how to read an ID from text."""

    min: str
    during: str
    parse: type

    @functools.cached_property
    def names(self):
        return {"min": self.min, "during": self.during}


KINDS = {"of_bigint": Kind("flake_min", "flake_during", int), "of_sno": Kind("sno_min", "sno_during", str)}


@dataclasses.dataclass(frozen=True)
class Record:
    table: str
    what: str
    above: object
    below: object
    rows: int
    checksum: int


def prepare(server):
    server.sql(FAMILIES)
    for table, kind in KINDS.items():
        server.sql(f"ALTER TABLE {table} ADD filler integer")
        found = STATEMENTS["plain"].format(table=table, **kind.names)
        server.sql(f"""CREATE FUNCTION found_in_{table}(OUT above text, OUT below text, OUT rows bigint, OUT checksum bigint)
                       STABLE LANGUAGE plpgsql AS $$ BEGIN {found.replace('FROM', 'INTO above, below, rows, checksum FROM', 1)};
                       END $$""")


def record(server, stopped):
    """Records the results of statements until the writers have stopped."""
    records, family = [], random.randrange(1, 2**62)
    while not stopped.is_set():
        # PostgreSQL may refuse a serializable transaction.
        with contextlib.suppress(psycopg.errors.SerializationFailure), server.connect() as db:
            while not stopped.is_set():
                family += 1
                records += record_in_transaction(db, family)
    return records


def record_in_transaction(db, family):
    table, level = random.choice(list(KINDS)), random.choice(LEVELS)
    kind, acts = KINDS[table], random.random() < 0.5
    if acts:
        db.execute(BEGET.format(family))
    # The lock comes before the snapshot, so that the table is not rewritten between the two.
    db.execute(f"BEGIN ISOLATION LEVEL {level}; LOCK TABLE {table} IN ACCESS SHARE MODE; SELECT")
    time.sleep(random.choice([0, 0, random.random() * 0.1]))
    for number in range(random.randint(1, 3)):
        if acts and number == 0:
            db.execute(random.choice(ACTIONS).format(family))
        what = random.choice(list(STATEMENTS))
        found = db.execute(STATEMENTS[what].format(table=table, **kind.names)).fetchone()
        above, below, rows, checksum = found
        yield Record(table, f"{what} in {level}, {acts=}", kind.parse(above), kind.parse(below), rows, checksum)
    db.execute("COMMIT")


def write_anew(server, ends):
    """Rewrites the tables, one after another, until the end."""
    while not ends.wait(0.7):
        with contextlib.suppress(psycopg.OperationalError), server.connect() as db:
            db.execute("SET lock_timeout = '1s'")
            db.execute(random.choice(REWRITES).format(random.choice(list(KINDS))))


class Truth:
    """The rows of a table at the end."""

    def __init__(self, server, table):
        rows = server.sql(f"SELECT id::text, {HASH} FROM {table}")
        rows = sorted((KINDS[table].parse(id), checksum) for id, checksum in rows)
        self.ids, self.checksums = [id for id, _ in rows], [0]
        for _, checksum in rows:
            self.checksums.append(self.checksums[-1] ^ checksum)

    def agrees(self, record):
        low, high = (bisect.bisect_left(self.ids, id) for id in (record.above, record.below))
        high = max(low, high)
        return (record.rows, record.checksum) == (high - low, self.checksums[high] ^ self.checksums[low])
