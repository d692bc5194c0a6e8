"""What tests ask of the horizon, by IDs."""

from standing_clock import wait_until

OUTBOX = "CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), note text)"
# Plans whose workers make or read all rows of a table, and a table for them.
WORKERS = {
    "parallel_leader_participation": "off", "parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0,
}  # fmt: skip
PARALLEL = "; ".join(f"SET {name} = {value}" for name, value in WORKERS.items())
WIDE = """CREATE TABLE wide AS SELECT n FROM generate_series(1, 10000) n; ALTER TABLE wide SET (parallel_workers = 2);
          CREATE FUNCTION make_anywhere() RETURNS bigint VOLATILE PARALLEL SAFE
              LANGUAGE plpgsql AS $$ BEGIN RETURN flake_next('twitter'); END $$;
          CREATE FUNCTION ask_anywhere() RETURNS timestamptz STABLE PARALLEL SAFE
              LANGUAGE plpgsql AS $$ BEGIN RETURN flake_horizon(); END $$"""


def one(db, query, *parameters):
    return db.execute(query, parameters or None).fetchone()[0]


def insert(db):
    return one(db, "INSERT INTO outbox DEFAULT VALUES RETURNING id")


def insert_in_transactions(db, count):
    """As many of them, one after another in this session."""
    db.execute(f"DO $$ BEGIN FOR n IN 1..{count} LOOP INSERT INTO outbox DEFAULT VALUES; COMMIT; END LOOP; END $$")


def horizon(db, layout="twitter"):
    return one(db, "SELECT flake_min(flake_horizon(), %s)", layout)


def holds(db, id, layout="twitter"):
    """Whether the horizon is not above this ID although the clock is."""
    wait_until(lambda: one(db, "SELECT flake_min(clock_timestamp(), %s) > %s", layout, id))
    return horizon(db, layout) <= id


def passes(db, id, layout="twitter"):
    """The horizon goes above this ID, as nothing holds it."""
    wait_until(lambda: horizon(db, layout) > id)
    return True


def take_snapshot(db, level="REPEATABLE READ"):
    """A transaction that sees what is there now until it ends."""
    db.execute(f"BEGIN ISOLATION LEVEL {level}; SELECT FROM outbox")
