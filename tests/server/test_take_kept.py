"""flake_take: the state that a session keeps between calls, and changes between two calls."""

import time

import psycopg
import pytest

from taking import TAKE, events, prepared, refused, role, wait_until_complete
from waiting import wait_until


@pytest.fixture
def db(server):
    yield from prepared(server)


CHANGES = {
    "columns": "ALTER TABLE outbox ADD was text DEFAULT 'x'; ALTER TABLE outbox DROP was, ALTER event TYPE varchar(9)",
    "the name of the key": "ALTER TABLE outbox RENAME id TO number",
    "the index": "ALTER TABLE outbox DROP CONSTRAINT outbox_pkey; CREATE UNIQUE INDEX ON outbox (id)",
    "other positions": "ALTER TABLE positions RENAME TO old; CREATE TABLE positions (last bigint, source oid, name varchar(20)); "
                       "INSERT INTO positions SELECT last, source, name FROM old; DROP TABLE old",
    "a function in its place": "ALTER FUNCTION flake_min(timestamptz, text) RENAME TO was; "
                               "CREATE FUNCTION flake_min(timestamptz, text) RETURNS bigint STABLE RETURN was($1, $2)",
    "other statistics": "ANALYZE outbox, positions",
}  # fmt: skip


def calls(db, take=TAKE):
    """Makes more calls than PostgreSQL tries custom plans."""
    return [events(db, take.replace("100", "1")) for _ in range(6)]


@pytest.mark.parametrize("change", CHANGES)
def test_changes_between_two_calls_lose_no_row(server, db, change):
    assert calls(db) == [[1], [2], [3], [4], [5], [6]]
    server.sql(CHANGES[change])
    assert events(db, TAKE.replace("*", "event")) == [7, 8, 9, 10]


def test_another_layout_between_two_calls_is_noticed(server, db):
    """The new layout's IDs are above the old layout's IDs at the watermark."""
    calls(db)
    server.sql("ALTER TABLE outbox ALTER id SET DEFAULT flake_next('instagram'); INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(server, watermark="flake_min(flake_watermark(), 'instagram')")
    assert events(db) == [7, 8, 9, 10, 11]


def test_another_type_of_keys_between_two_calls_is_noticed(server, db):
    """Some queries have the same text. The driver must not prepare a query whose result would have another type."""
    db.prepare_threshold = None
    calls(db)
    server.sql("""DROP TABLE outbox; CREATE TABLE outbox (id sno PRIMARY KEY DEFAULT sno_next(), event text);
                  INSERT INTO outbox (event) SELECT generate_series(1, 8);
                  DELETE FROM positions; ALTER TABLE positions ALTER last TYPE sno USING NULL;
                  INSERT INTO positions VALUES ('mailer', 'outbox')""")
    wait_until(lambda: server.value("SELECT (SELECT id FROM outbox ORDER BY id DESC LIMIT 1) < sno_min(flake_watermark())"))
    assert [*calls(db), events(db)] == [[1], [2], [3], [4], [5], [6], [7, 8]]


def test_another_role_between_two_calls_is_noticed(server, db):
    with role(server):
        calls(db)
        db.execute("SET ROLE consumer")
        for grant in ["SELECT ON positions", "UPDATE ON positions", "SELECT ON outbox"]:
            refused(db, "42501")
            server.sql(f"GRANT {grant} TO consumer")
        assert events(db, TAKE.replace("100", "1")) == [7]
        server.sql("REVOKE SELECT ON outbox FROM consumer")
        refused(db, "42501")
        db.execute("RESET ROLE")
        assert events(db) == [8, 9, 10]


@pytest.mark.parametrize("secured", ["outbox", "positions"])
def test_row_security_between_two_calls_is_noticed(server, db, secured):
    with role(server) as consumer:
        server.sql("GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer")
        calls(consumer)
        server.sql(f"UPDATE positions SET last = NULL; ALTER TABLE {secured} ENABLE ROW LEVEL SECURITY")
        refused(consumer, "42501" if secured == "outbox" else "42704")
        assert events(db) == list(range(1, 11))


def test_another_search_path_between_two_calls_changes_nothing(server, db):
    calls(db)
    server.sql("""CREATE SCHEMA other; CREATE TABLE other.outbox (LIKE outbox INCLUDING ALL);
                  CREATE TABLE other.positions (LIKE positions); INSERT INTO other.outbox (event) VALUES (100);
                  INSERT INTO other.positions VALUES ('mailer', 'other.outbox')""")
    wait_until_complete(server, "other.outbox")
    db.execute("SET search_path = other, public")
    assert events(db) == [100]
    db.execute("RESET search_path")
    assert events(db) == [7, 8, 9, 10]
    server.sql("DROP SCHEMA other CASCADE")


def test_an_extension_recreated_between_two_calls_is_noticed(server, db):
    """The extension is created again in another schema."""
    calls(db)
    take = TAKE.replace("flake_take", "ids.flake_take")
    server.sql("CREATE SCHEMA ids; DROP EXTENSION flake CASCADE; CREATE EXTENSION flake SCHEMA ids")
    refused(db, "55000", take)
    server.sql("ALTER TABLE outbox ALTER id SET DEFAULT ids.flake_next('twitter')")
    assert events(db, take) == [7, 8, 9, 10]
    server.sql("DROP SCHEMA ids CASCADE; CREATE EXTENSION flake")
    server.sql("ALTER TABLE outbox ALTER id SET DEFAULT flake_next('twitter')")


def test_a_plan_from_when_the_table_was_empty_reads_by_the_index(server, db):
    """The plan does not read all rows that were inserted since."""
    db.execute("DELETE FROM outbox")
    db.execute("VACUUM ANALYZE outbox")
    assert [events(db) for _ in range(6)] == [[]] * 6
    server.sql("INSERT INTO outbox (event) SELECT generate_series(1, 10000)")
    wait_until_complete(server)
    scans = "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'outbox'"
    db.execute("BEGIN")
    before = db.execute(scans).fetchone()
    assert events(db) == list(range(1, 101))
    assert db.execute(scans).fetchone() == before
    db.execute("COMMIT")


@pytest.mark.matrix
def test_a_session_keeps_a_limited_number_of_plans(server, db):
    """The session keeps the plans of the tables that come first."""
    kept = "SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'CachedPlanSource'"
    calls(db)
    few = db.execute(kept).fetchone()[0]
    assert few >= 4
    calls(db)
    assert db.execute(kept).fetchone()[0] == few
    for n in range(150):
        server.sql(f"CREATE TABLE t{n} (LIKE outbox INCLUDING ALL); INSERT INTO positions VALUES ('mailer', 't{n}')")
        server.sql(f"INSERT INTO t{n} (event) VALUES (1)")
    time.sleep(0.01)
    assert [events(db, TAKE.replace("outbox", f"t{n}")) for n in range(150)] == [[1]] * 150
    assert db.execute(kept).fetchone()[0] < 210


def test_calls_continue_after_renames(server, db):
    server.sql("CREATE ROLE reader LOGIN")
    server.sql("GRANT SELECT ON outbox TO reader; GRANT SELECT, UPDATE ON positions TO reader")
    few = TAKE.replace("100", "1")
    with server.session(user="reader") as reader:
        assert events(reader, few) == [1]
    server.sql("ALTER ROLE reader RENAME TO renamed")
    server.sql("ALTER TABLE outbox RENAME id TO number")
    with server.session(user="renamed") as reader:
        assert events(reader, few) == [2]
    server.sql("ALTER TABLE outbox RENAME TO events; CREATE TABLE outbox (LIKE events INCLUDING ALL)")
    assert events(db, few.replace("outbox", "events")) == [3]
    server.sql("""CREATE SCHEMA "My schema"; ALTER TABLE events SET SCHEMA "My schema";
                  ALTER TABLE positions SET SCHEMA "My schema" """)
    few = """SELECT * FROM flake_take(NULL::"My schema".events, '"My schema".positions', 'mailer', 1)"""
    assert events(db, few) == [4]
    server.sql('ALTER SCHEMA "My schema" RENAME TO mine')
    few = few.replace('"My schema"', "mine")
    assert events(db, few) == [5]
    server.sql("DROP SCHEMA mine CASCADE; DROP ROLE renamed")


def test_a_table_dropped_and_created_again_is_an_error(server, db):
    """The position belongs to a table that was dropped. A session that has called before raises an error instead of using the
    old type."""
    server.sql("""CREATE FUNCTION again() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN
                      RETURN QUERY SELECT event::text FROM flake_take(NULL::outbox, 'positions', 'mailer', 1); END $$""")
    assert events(db, "SELECT again()") == [1]
    server.sql("""DROP TABLE outbox; CREATE TABLE outbox (event int, id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
                  INSERT INTO outbox SELECT generate_series(1, 3)""")
    wait_until_complete(server)
    pytest.raises(psycopg.Error, db.execute, "SELECT again()")
    with server.session() as new:
        refused(new, "42704", "SELECT again()")
        server.sql("DELETE FROM positions; INSERT INTO positions VALUES ('mailer', 'outbox')")
        pytest.raises(psycopg.Error, db.execute, "SELECT again()")
        assert events(new, "SELECT again()") == [1]
