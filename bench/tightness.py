"""Eight sessions that insert some rows at a time: how large the index of IDs becomes, how fast, and in which order."""

import bisect
import operator
import random

from contestants import Contestant
from rounds import compared, interleaved, medians
from sessions import pgbench

CLIENTS, ROWS = 8, 480_000
AT_A_TIME = [5, 20, 100]
LAYOUTS = ["twitter", "snowflake", "si", "sonyflake", "tsid"]
# IDs made closer to each other in time need not be in order, in microseconds.
APART = 50
PAIRS = 100_000
STATEMENTS = 1000


def participants(here):
    """Some of flake's layouts, sno, bigserial, and the server's UUIDs."""
    calls = {f"tight_{layout}": f"flake_next('{layout}')" for layout in LAYOUTS}
    ours = [Contestant(key, call, call, ours=True) for key, call in calls.items()]
    return ours + [c for c in here if c.key in ("sno", "bigserial", "uuid4", "uuid7")]


def create(db, contestants):
    for contestant in contestants:
        db.execute(f"DROP TABLE IF EXISTS {contestant.table}")
        db.execute(f"CREATE TABLE {contestant.table} (id {contestant.type} PRIMARY KEY DEFAULT {contestant.call}, n bigint)")


def indexes(db, contestants, rounds):
    """Of the index the megabytes, and what they are of bigserial's; rows per second, and what they are of bigserial's; for each
    number of rows in a statement."""
    found = {}
    for count in AT_A_TIME:
        sizes = {c.key: [] for c in contestants}

        def job(contestant, count=count, sizes=sizes):
            table = contestant.table

            def run():
                db.execute(f"TRUNCATE {table}")
                db.execute("CHECKPOINT")
                script = f"INSERT INTO {table} (n) SELECT generate_series(1, {count});\n"
                statements = pgbench(script, CLIENTS, transactions=ROWS // CLIENTS // count, synchronous_commit="off")
                made, size = db.execute(f"SELECT count(*), pg_relation_size('{table}_pkey') FROM {table}").fetchone()
                assert made == ROWS
                sizes[contestant.key].append(size / 1e6)
                return statements * count

            return run

        rates = interleaved(rounds, {c.key: job(c) for c in contestants})
        sizes = {key: values[1:] for key, values in sizes.items()}
        found[str(count)] = {
            "sizes": medians(sizes),
            "of sizes": compared(sizes, "bigserial", operator.truediv),
            "rates": medians(rates),
            "of rates": compared(rates, "bigserial", operator.truediv),
        }
    return found


def disorder(db, contestants):
    """Percent of pairs of rows of different sessions, made more than APART microseconds apart, whose IDs are not in order."""
    found = {}
    for contestant in contestants:
        db.execute("DROP TABLE IF EXISTS ordered")
        db.execute(f"CREATE TABLE ordered AS SELECT {contestant.call} AS id, 1 AS pid, now() AS at LIMIT 0")
        columns = f"{contestant.call}, pg_backend_pid(), clock_timestamp()"
        script = f"INSERT INTO ordered SELECT {columns} FROM generate_series(1, 20);\n"
        pgbench(script, CLIENTS, transactions=STATEMENTS, synchronous_commit="off")
        rows = db.execute("""
            SELECT (extract(epoch FROM at) * 1000000)::bigint, rank() OVER (ORDER BY id), pid FROM ordered ORDER BY at
            """).fetchall()
        found[contestant.key] = 100 * share_in_disorder(rows)
    return found


def share_in_disorder(rows):
    """Of rows (time, rank of the ID, session) in the order of time, of random pairs less than a millisecond apart."""
    times, chance = [at for at, _, _ in rows], random.Random(1)
    pairs = wrong = 0
    # On a machine without time, there may be none.
    for _ in range(100 * PAIRS):
        at, rank, session = rows[chance.randrange(len(rows))]
        first, last = bisect.bisect(times, at + APART), bisect.bisect(times, at + 1000)
        if first < last:
            _, other_rank, other_session = rows[chance.randrange(first, last)]
            if other_session != session:
                pairs += 1
                wrong += other_rank < rank
        if pairs == PAIRS:
            break
    return wrong / max(1, pairs)
