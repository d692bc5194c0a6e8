"""Queries about the watermark, by IDs."""

from clients import Made
from standing_clock import at, attempts, make, running
from waiting import wait_until

OUTBOX = "CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), note text)"
# A plan whose workers read all rows of a table, and that table.
WORKERS = {
    "parallel_leader_participation": "off", "parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0,
}  # fmt: skip
PARALLEL = "; ".join(f"SET {name} = {value}" for name, value in WORKERS.items())
WIDE = """CREATE TABLE wide AS SELECT n FROM generate_series(1, 10000) n; ALTER TABLE wide SET (parallel_workers = 2);
          CREATE FUNCTION make_anywhere() RETURNS bigint VOLATILE PARALLEL SAFE
              LANGUAGE plpgsql AS $$ BEGIN RETURN flake_next('twitter'); END $$;
          CREATE FUNCTION ask_anywhere() RETURNS timestamptz STABLE PARALLEL SAFE
              LANGUAGE plpgsql AS $$ BEGIN RETURN flake_watermark(); END $$"""


def one(db, query, *parameters):
    return db.execute(query, parameters or None).fetchone()[0]


def insert(db):
    return one(db, "INSERT INTO outbox DEFAULT VALUES RETURNING id")


def insert_in_transactions(db, count):
    """Inserts rows in transactions of their own, one after another."""
    db.execute(f"DO $$ BEGIN FOR n IN 1..{count} LOOP INSERT INTO outbox DEFAULT VALUES; COMMIT; END LOOP; END $$")


def watermark(db, layout="twitter"):
    return one(db, "SELECT flake_min(flake_watermark(), %s)", layout)


def wait_for_next_tick(db, id, layout="twitter"):
    wait_until(lambda: one(db, "SELECT flake_min(clock_timestamp(), %s) > %s", layout, id))


def holds(db, id, layout="twitter"):
    """Returns whether the watermark stays at or below this ID although the clock is above it."""
    wait_for_next_tick(db, id, layout)
    return watermark(db, layout) <= id


def passes(db, id, layout="twitter"):
    """Waits until the watermark passes this ID, because no transaction holds it."""
    wait_until(lambda: watermark(db, layout) > id)
    return True


def is_above(db, instant, id):
    """Returns whether an instant, given as an expression, is after the tick of a sno."""
    return one(db, f"SELECT sno_min({instant}) > %s::sno", id)


def holds_sno(db, id):
    wait_until(lambda: is_above(db, "clock_timestamp()", id))
    return not is_above(db, "flake_watermark()", id)


def passes_sno(db, id):
    wait_until(lambda: is_above(db, "flake_watermark()", id))
    return True


def take_snapshot(db, level="REPEATABLE READ"):
    """A transaction that keeps the current snapshot until it ends."""
    db.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT FROM outbox")


# The smallest ID of each kind at an instant.
LOWEST = {"twitter": "flake_min({})", "base64id": "flake_min({}, 'base64id')", "sno": "sno_min({})"}
TYPES = {"twitter": "bigint", "base64id": "bigint", "sno": "sno"}


def announce(server, dbname="postgres"):
    """Asks for a watermark, and returns it as text."""
    with server.connect(dbname=dbname) as db:
        return one(db, "SELECT flake_watermark()::text")


def below(server, made, announced):
    """Returns the kinds with IDs below the watermark."""
    found = {}
    for kind, ids in made.ids.items():
        low = LOWEST[kind].format(f"'{announced}'::timestamptz")
        found[kind] = server.value(f"SELECT count(*) FROM unnest(%s::text[]) id WHERE id::{TYPES[kind]} < {low}", list(ids))
    return {kind for kind, count in found.items() if count}


def goes_on(server, announced, *instants, dbname="postgres"):
    """Sets the clock to instants before the watermark, and to one after it. IDs made then must be above the watermark."""
    made = Made()
    for seconds in instants:
        server.set_clock(at(seconds))
        attempts(server, made, dbname=dbname)
    server.set_clock(running(instants[-1] + 8))
    with server.connect(dbname=dbname) as db:
        make(db, made)
    assert all(made.ids.values())
    assert below(server, made, announced) == set()
