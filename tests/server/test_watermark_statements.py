"""A statement has one watermark, whatever its plan and however often it asks. Parallel workers neither ask for watermarks nor
make IDs."""

import re

import psycopg
import pytest

from conftest import pg_config
from waiting import wait_until
from watermark import OUTBOX, PARALLEL, WIDE, holds, insert, one, passes, take_snapshot, watermark


@pytest.fixture(scope="module")
def server(servers):
    server = servers()
    server.sql(f"{OUTBOX}; {WIDE}")
    server.sql("""
        CREATE TABLE parts (id bigint, n integer) PARTITION BY HASH (n);
        CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
        CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
        INSERT INTO parts SELECT flake_next('twitter'), n FROM generate_series(1, 20) n""")
    server.sql("""SELECT flake_create_layout('tagged', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
        {"name": "t", "bits": 41, "role": "timestamp"}, {"name": "w", "bits": 5, "role": "worker"},
        {"name": "k", "bits": 4, "role": "tag"}, {"name": "s", "bits": 12, "role": "sequence"}]}')""")
    return server


@pytest.fixture
def db(server):
    with server.connect() as db:
        yield db


# Each row would ask for a watermark some milliseconds after the row before.
ASKING = {
    "rows": "SELECT flake_watermark() FROM parts, LATERAL (SELECT pg_sleep(0.002 + 0 * n)) s",
    "filters": """SELECT h FROM parts, LATERAL (SELECT flake_watermark() AS h, pg_sleep(0.002 + 0 * n) OFFSET 0) s
                  WHERE id < flake_min(flake_watermark()) AND h = flake_watermark()""",
    "sub-queries": """SELECT flake_watermark() UNION ALL SELECT (SELECT flake_watermark() FROM pg_sleep(0.002))
                      UNION ALL SELECT h FROM (WITH w AS MATERIALIZED (SELECT flake_watermark() AS h) SELECT h FROM w) s""",
    "functions": "SELECT ask_anywhere() FROM parts, LATERAL (SELECT pg_sleep(0.002 + 0 * n)) s "
    "UNION ALL SELECT flake_watermark()",
}


@pytest.mark.parametrize("query", ASKING)
def test_a_statement_has_one_watermark(db, query):
    rows = db.execute(ASKING[query]).fetchall()
    assert len(rows) >= 3 and len(set(rows)) == 1


def test_a_cursor_has_one_watermark(db):
    db.execute("BEGIN; DECLARE asks CURSOR FOR SELECT flake_watermark() FROM parts")
    first = one(db, "FETCH 1 FROM asks")
    wait_until(lambda: one(db, "SELECT flake_watermark()") > first)
    assert set(db.execute("FETCH ALL FROM asks").fetchall()) == {(first,)}


def test_each_statement_has_a_watermark_of_its_own(server, db):
    """This holds in a function too, whose statements see what was committed before them."""
    with server.connect() as writer:
        writer.execute("BEGIN")
        assert holds(db, insert(writer))
    db.execute("SET statement_timeout = '60s'")
    db.execute("""DO $$ DECLARE first timestamptz := flake_watermark(); BEGIN
                      WHILE flake_watermark() <= first LOOP PERFORM pg_sleep(0.001); END LOOP;
                  END $$""")


def test_rows_that_the_snapshot_does_not_have_are_above_the_watermark(server, db):
    """A snapshot is taken, then rows are committed, and then the watermark is asked for."""
    with server.connect() as writer:
        take_snapshot(db)
        for _ in range(50):
            id = insert(writer)
        assert holds(db, id)
        seen = db.execute("SELECT id FROM outbox WHERE id < flake_min(flake_watermark())").fetchall()
        below = watermark(db)
        assert set(seen) >= set(writer.execute("SELECT id FROM outbox WHERE id < %s", (below,)).fetchall())


@pytest.mark.parametrize("plans", ["force_generic_plan", "force_custom_plan"])
def test_a_prepared_statement_asks_at_each_execution(server, db, plans):
    """Each execution of a plan asks for a watermark, and uses the primary key."""
    db.execute(f"SET plan_cache_mode = {plans}; SET enable_seqscan = off")
    db.execute("PREPARE tail (bigint) AS SELECT count(*) FROM outbox WHERE id > $1 AND id < flake_min(flake_watermark())")
    for _ in range(8):
        id = insert(db)
        wait_until(lambda: one(db, f"EXECUTE tail ({id - 1})") == 1)  # noqa: B023
    plan = "\n".join(line for line, in db.execute("EXPLAIN (COSTS OFF) EXECUTE tail (0)"))
    assert "Index Cond" in plan and "(id < flake_min(flake_watermark(), 'twitter'::text))" in plan
    assert "Filter" not in plan


def test_parallel_workers_do_not_ask_for_a_watermark(db):
    """PostgreSQL prevents such plans, unless another function is wrongly declared parallel safe."""
    db.execute(PARALLEL)
    query = "SELECT count(*) FROM wide WHERE {} IS NOT NULL"
    assert one(db, query.format("flake_watermark()")) == 10000
    with pytest.raises(psycopg.errors.InvalidTransactionState, match=r"flake_watermark\(\)"):
        db.execute(query.format("ask_anywhere()"))


def test_parallel_workers_do_not_cover_ids(db):
    """A worker's hold would end with its part of the transaction."""
    db.execute(PARALLEL)
    db.execute("""CREATE FUNCTION cover_anywhere() RETURNS bigint VOLATILE PARALLEL SAFE
                      LANGUAGE plpgsql AS $$ BEGIN RETURN flake_cover(flake_max(clock_timestamp() + '1 min')); END $$""")
    with pytest.raises(psycopg.errors.InvalidTransactionState, match=r"flake_cover\(\)"):
        db.execute("SELECT count(*) FROM wide WHERE cover_anywhere() IS NOT NULL")


# Each of these is called for each row of `wide`.
MAKING = {
    "flake_next": "flake_next('twitter')", "with a tag": "flake_next('tagged', 7)", "sno_next": "sno_next()::text",
    "flake_batch": "(SELECT max(id) FROM flake_batch('twitter', 3) id)",
}  # fmt: skip


@pytest.mark.parametrize("call", MAKING.values(), ids=MAKING)
def test_parallel_workers_make_no_ids(server, db, call):
    """The leader does not know their IDs, and would not hold watermarks at them."""
    db.execute(f"{PARALLEL}; BEGIN")
    db.execute(f"""CREATE FUNCTION call_anywhere() RETURNS text VOLATILE PARALLEL SAFE
                       LANGUAGE plpgsql AS $$ BEGIN RETURN {call}; END $$""")
    error = pytest.raises(psycopg.errors.InvalidTransactionState, db.execute, "SELECT call_anywhere() FROM wide").value.diag
    assert error.message_primary == "cannot make IDs in a parallel worker"
    assert "watermarks would not wait" in error.message_detail
    assert "PARALLEL RESTRICTED" in error.message_hint
    db.execute("ROLLBACK")
    assert passes(db, insert(db))
    assert db.execute("SELECT * FROM flake_open_transactions").fetchall() == []


@pytest.mark.parametrize("call", MAKING.values(), ids=MAKING)
def test_the_leader_of_parallel_workers_makes_ids(db, call):
    """PostgreSQL calls a parallel restricted function above Gather, while workers scan."""
    db.execute(f"{PARALLEL}; SET max_parallel_workers_per_gather = 2; BEGIN")
    db.execute(f"""CREATE FUNCTION call_in_leader() RETURNS text VOLATILE PARALLEL RESTRICTED
                       LANGUAGE plpgsql AS $$ BEGIN RETURN {call}; END $$""")
    query = "SELECT count(DISTINCT made) FROM (SELECT call_in_leader() AS made FROM wide OFFSET 0) s"
    plan = "\n".join(line for line, in db.execute(f"EXPLAIN (ANALYZE, VERBOSE) {query}"))
    assert re.search("call_in_leader.*Gather .*Workers Launched: [12]", plan, re.S), plan
    assert one(db, query) == 10000
    db.execute("ROLLBACK")


def test_a_transaction_whose_workers_failed_continues(server, db):
    with server.connect() as leader:
        leader.execute(f"{PARALLEL}; BEGIN")
        id = insert(leader)
        leader.execute("SAVEPOINT here")
        with pytest.raises(psycopg.errors.InvalidTransactionState):
            leader.execute("SELECT make_anywhere() FROM wide")
        leader.execute("ROLLBACK TO here")
        assert holds(db, id)
        last = insert(leader)
        leader.execute("COMMIT")
        assert passes(db, last)


def test_the_fields_of_a_snapshot_that_hold_a_note_are_unused():
    """src/postgres/snapshot.rs stores the note in fields that PostgreSQL uses in other kinds of snapshots only."""
    header = (pg_config("--includedir-server") / "utils/snapshot.h").read_text()
    comments = {field: comment for comment, field in re.findall(r"/\*((?:(?!\*/).)*)\*/\s*[\w\s]*[\s*](\w+);", header, re.S)}
    assert "not used in MVCC" in comments["speculativeToken"]
    assert "For SNAPSHOT_NON_VACUUMABLE" in comments["vistest"]


PATHS = {
    "sequential": [], "index": ["seqscan", "bitmapscan"], "bitmap": ["seqscan", "indexscan", "indexonlyscan"],
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_snapshot_with_a_note_sees_the_same_rows(server, path):
    """The note does not change which rows PostgreSQL sees, in any state of a row, before and after it has pruned pages."""
    server.sql("""
        DROP TABLE IF EXISTS states;
        CREATE TABLE states (id int PRIMARY KEY, n int) WITH (fillfactor = 50, autovacuum_enabled = off);
        INSERT INTO states SELECT n, n FROM generate_series(1, 500) n; DELETE FROM states WHERE id % 7 = 0;
        UPDATE states SET n = -n WHERE id % 5 = 0; UPDATE states SET id = id + 1000 WHERE id % 11 = 0""")
    server.sql("BEGIN; DELETE FROM states; INSERT INTO states SELECT n, 0 FROM generate_series(3001, 3100) n; ROLLBACK")
    query = "SELECT * FROM states WHERE id > {} ORDER BY id, n"
    with server.connect() as db, server.connect() as other:
        for method in PATHS[path]:
            db.execute(f"SET enable_{method} = off")
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        before = db.execute(query.format(0)).fetchall()
        other.execute("BEGIN; UPDATE states SET n = 7 WHERE id % 2 = 0; DELETE FROM states WHERE id % 3 = 0")
        other.execute("INSERT INTO states SELECT n, 1 FROM generate_series(5001, 5100) n ON CONFLICT DO NOTHING")
        noted = query.format("(SELECT 0 WHERE flake_watermark() IS NOT NULL)")
        assert db.execute(noted).fetchall() == before != []
        other.execute("COMMIT")
        assert len(other.execute(query.format(0)).fetchall()) < len(before)
        assert db.execute(noted).fetchall() == before
        db.execute("DELETE FROM states WHERE id % 13 = 5 AND id % 3 > 0 AND id % 2 > 0; INSERT INTO states VALUES (9000, 0)")
        assert db.execute(noted).fetchall() == db.execute(query.format(0)).fetchall() != before
        db.execute("COMMIT")
        db.execute("VACUUM states")
        assert db.execute(noted).fetchall() == db.execute(query.format(0)).fetchall()
