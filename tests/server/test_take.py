"""flake_take: the next rows of a table, a position that moves over them, and who may do that."""

import contextlib
import subprocess
import threading
import time

import psycopg
import pytest

from conftest import as_server, bindir
from standing_clock import at, server_at_0
from waiting import wait_until

POSITIONS = "CREATE TABLE positions (name text, source regclass, last bigint, PRIMARY KEY (name, source))"
TAKE = "SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100)"
LAST = "SELECT last FROM positions WHERE name = 'mailer'"
WAITS = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"


@pytest.fixture
def db(server):
    """A session of a superuser, with an outbox of ten rows below the horizon, and a consumer that has taken none."""
    server.sql(f"""
        DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC;
        CREATE EXTENSION flake; {POSITIONS};
        CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text);
        INSERT INTO outbox (event) SELECT n FROM generate_series(1, 10) n;
        INSERT INTO positions VALUES ('mailer', 'outbox')""")
    wait_until_complete(server)
    with server.session() as db:
        yield db


def wait_until_complete(server, table="outbox", horizon="flake_min(flake_horizon(), 'twitter')"):
    wait_until(lambda: server.value(f"SELECT COALESCE(max(id) < {horizon}, true) FROM {table}"))


@contextlib.contextmanager
def role(server, name="consumer"):
    """A session of a role that has no privileges, and is gone after the block."""
    server.sql(f"CREATE ROLE {name} LOGIN")
    try:
        with server.session(user=name) as db:
            yield db
    finally:
        server.sql(f"SET lock_timeout = '10s'; DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


def events(db, take=TAKE):
    return [int(row[-1]) for row in db.execute(take).fetchall()]


def refused(db, sqlstate, take=TAKE):
    error = pytest.raises(psycopg.Error, db.execute, take).value
    assert error.sqlstate == sqlstate, error
    return error


class Waiting(threading.Thread):
    """A session that executes something, and waits for a lock when this is made."""

    def __init__(self, server, db, execute):
        super().__init__()
        self.result, self.execute, self.error = None, execute, None
        self.db = db
        self.start()
        wait_until(lambda: not self.is_alive() or server.sql(WAITS, db.info.backend_pid))

    def run(self):
        try:
            self.result = self.execute(self.db)
        except psycopg.Error as error:
            self.error = error

    def end(self):
        self.join()
        if self.error:
            raise self.error
        return self.result


# Rows.


def test_each_row_comes_once_and_in_order(db):
    few = TAKE.replace("100", "3")
    assert [events(db, few) for _ in range(5)] == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10], []]
    assert db.execute(LAST).fetchone() == db.execute("SELECT max(id) FROM outbox").fetchone()


def test_rows_that_are_not_below_the_horizon_stay(server, db):
    """Not even the first one of the tick in which it lies."""
    with server.session() as writer:
        writer.execute("BEGIN; INSERT INTO outbox (event) VALUES (11)")
        db.execute("INSERT INTO outbox SELECT flake_min(flake_horizon(), 'twitter'), 0")
        db.execute("INSERT INTO outbox SELECT flake_next('twitter'), 12")
        assert events(db) == list(range(1, 11))
        writer.execute("COMMIT")
    wait_until_complete(server)
    assert events(db) == [0, 11, 12]


def test_rows_are_as_the_table_has_them(server, db):
    """Columns that were dropped or added, values out of line, names that have to be quoted, or that queries use."""
    server.sql("""
        CREATE SCHEMA "S ""ß";
        CREATE TABLE "S ""ß"."T {key}" (gone text, t text, p int DEFAULT 7, large text,
                                        "I d" bigint PRIMARY KEY DEFAULT flake_next('twitter'),
                                        twice int GENERATED ALWAYS AS (p * 2) STORED);
        ALTER TABLE "S ""ß"."T {key}" ALTER large SET STORAGE EXTERNAL, DROP gone, ADD added text DEFAULT 'new';
        INSERT INTO "S ""ß"."T {key}" (t, large) SELECT n, repeat('x', n * 100000) FROM generate_series(1, 3) n;
        INSERT INTO positions VALUES ('mailer', '"S ""ß"."T {key}"')""")
    wait_until(lambda: server.value("""SELECT max("I d") < flake_min(flake_horizon(), 'twitter') FROM "S ""ß"."T {key}" """))
    take = """SELECT * FROM flake_take(NULL::"S ""ß"."T {key}", 'positions', 'mailer', 100)"""
    assert db.execute(take).fetchall() == db.execute("""SELECT * FROM "S ""ß"."T {key}" ORDER BY "I d" """).fetchall() != []


def test_in_any_place_of_a_query(db):
    assert events(db, "SELECT (flake_take(NULL::outbox, 'positions', 'mailer', 3)).event") == [1, 2, 3]
    db.execute("UPDATE positions SET last = NULL")
    below = "SELECT (r).event FROM (SELECT flake_take(NULL::outbox, 'positions', 'mailer', 3) OFFSET 0) q(r)"
    assert events(db, below) == [1, 2, 3]
    joined = "SELECT o.event FROM outbox o JOIN flake_take(NULL::outbox, 'positions', 'mailer', 3) USING (id) ORDER BY id"
    assert events(db, joined) == [4, 5, 6]
    db.execute("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT event FROM flake_take(NULL::outbox, 'positions', 'mailer', 3)")
    assert events(db, "FETCH 2 FROM c") == [7, 8]
    assert events(db, "FETCH BACKWARD 1 FROM c") == [7]
    db.execute("COMMIT")
    assert events(db) == [10]


@pytest.mark.parametrize("kind", ["PARTITION BY HASH (id)", "INHERITS (base)"])
def test_partitions_and_children(server, db, kind):
    """A partition may have its columns in another order."""
    join = "ATTACH PARTITION part FOR VALUES WITH (MODULUS 1, REMAINDER 0)"
    server.sql(f"""
        CREATE TABLE base (); CREATE TABLE log (id bigint DEFAULT flake_next('twitter'), event int) {kind};
        CREATE UNIQUE INDEX ON log (id);
        CREATE TABLE part (event int, id bigint NOT NULL DEFAULT flake_next('twitter'), gone int); ALTER TABLE part DROP gone;
        {f"ALTER TABLE log {join}" if "HASH" in kind else "ALTER TABLE part INHERIT log"};
        INSERT INTO log (event) SELECT generate_series(1, 5); INSERT INTO part (event) SELECT generate_series(6, 9);
        INSERT INTO positions VALUES ('mailer', 'log')""")
    wait_until_complete(server, "log")
    assert events(db, "SELECT * FROM flake_take(NULL::log, 'positions', 'mailer', 7)") == list(range(1, 8))
    assert events(db, "SELECT * FROM flake_take(NULL::log, 'positions', 'mailer', 7)") == [8, 9]


def test_more_rows_than_fit_in_memory(server, db):
    db.execute("INSERT INTO outbox (event) SELECT repeat('x', 1000) || n FROM generate_series(1, 20000) n")
    wait_until_complete(server)
    db.execute("SET work_mem = '64kB'")
    plan = db.execute("EXPLAIN (ANALYZE, BUFFERS) " + TAKE.replace("100", "2147483647")).fetchall()
    assert "temp read=" in str(plan)
    assert db.execute(LAST).fetchone() == db.execute("SELECT max(id) FROM outbox").fetchone()
    assert events(db) == []


def test_a_consumer_that_begins_with_what_is_new(server, db):
    db.execute("""INSERT INTO positions SELECT 'auditor', 'outbox', max(id) FROM outbox
                  WHERE id < flake_min(flake_horizon(), 'twitter')""")
    take = TAKE.replace("mailer", "auditor")
    assert events(db, take) == []
    db.execute("INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(server)
    assert events(db, take) == [11]


# Transactions.


def test_the_position_and_what_is_done_commit_together(server, db):
    db.execute("BEGIN")
    assert events(db, TAKE.replace("100", "4")) == [1, 2, 3, 4]
    assert events(db, TAKE.replace("100", "1")) == [5]
    db.execute("SAVEPOINT a")
    assert events(db, TAKE.replace("100", "1")) == [6]
    db.execute("ROLLBACK TO a")
    assert events(db, TAKE.replace("100", "1")) == [6]
    db.execute("ROLLBACK")
    db.execute("BEGIN")
    assert events(db) == list(range(1, 11))
    db.execute("COMMIT")
    assert events(db) == []


def test_an_empty_result_writes_nothing_and_waits_for_nobody(server, db):
    events(db)
    db.execute("BEGIN")
    assert events(db) == []
    assert db.execute("SELECT pg_current_xact_id_if_assigned()").fetchone() == (None,)
    with server.session() as other:
        other.execute("SET lock_timeout = '5s'")
        other.execute("SELECT FROM positions FOR UPDATE")
        assert events(other) == []
    db.execute("COMMIT")
    with db.transaction():
        db.execute("SET TRANSACTION READ ONLY")
        assert events(db) == []
    db.execute("UPDATE positions SET last = NULL")
    with db.transaction():
        db.execute("SET TRANSACTION READ ONLY")
        refused(db, "25006")


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_turns(server, db, end):
    """The second one goes on where the first one has stopped."""
    with server.session() as other:
        db.execute("BEGIN")
        assert events(db, TAKE.replace("100", "6")) == [1, 2, 3, 4, 5, 6]
        waiting = Waiting(server, other, events)
        db.execute(end)
        assert waiting.end() == ([7, 8, 9, 10] if end == "COMMIT" else list(range(1, 11)))
    assert events(db) == []


def test_other_consumers_do_not_wait(server, db):
    db.execute("INSERT INTO positions VALUES ('auditor', 'outbox')")
    db.execute("BEGIN")
    events(db)
    with server.session() as other:
        other.execute("SET lock_timeout = '5s'")
        assert events(other, TAKE.replace("mailer", "auditor")) == list(range(1, 11))
    db.execute("COMMIT")


def test_a_consumer_that_is_canceled_while_it_waits(server, db):
    with server.session() as other:
        db.execute("BEGIN")
        events(db, TAKE.replace("100", "6"))
        waiting = Waiting(server, other, events)
        other.cancel()
        with pytest.raises(psycopg.errors.QueryCanceled):
            waiting.end()
        db.execute("ROLLBACK")
        assert events(other) == list(range(1, 11))


def test_a_position_that_is_dropped_meanwhile(server, db):
    with server.session() as other:
        db.execute("BEGIN; DELETE FROM positions")
        waiting = Waiting(server, other, events)
        db.execute("COMMIT")
        with pytest.raises(psycopg.errors.UndefinedObject):
            waiting.end()


def test_another_table_that_gets_the_name_meanwhile(server, db):
    """A schema can be renamed while a consumer waits for its turn."""
    server.sql("""CREATE SCHEMA a; ALTER TABLE outbox SET SCHEMA a""")
    take = TAKE.replace("outbox", "a.outbox")
    with server.session() as other:
        db.execute("BEGIN")
        assert events(db, take.replace("100", "1")) == [1]
        waiting = Waiting(server, other, lambda other: events(other, take))
        server.sql("""ALTER SCHEMA a RENAME TO b; CREATE SCHEMA a;
                      CREATE TABLE a.outbox (small smallint, id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
                      INSERT INTO a.outbox DEFAULT VALUES; SELECT pg_sleep(0.01)""")
        server.sql("SELECT pg_sleep(0.01)")
        db.execute("COMMIT")
        with pytest.raises(psycopg.errors.WrongObjectType):
            waiting.end()
    assert events(db, take.replace("a.outbox", "b.outbox")) == list(range(2, 11))
    server.sql("DROP SCHEMA a, b CASCADE")


def test_a_function_whose_snapshot_is_older(server, db):
    """It has waited for the transaction that inserts, which its statement does not see."""
    server.sql("""
        CREATE FUNCTION late() RETURNS SETOF outbox STABLE LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(1);
            RETURN QUERY SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100);
        END $$""")
    events(db)
    with server.session() as writer:
        writer.execute("BEGIN; SELECT pg_advisory_xact_lock(1); INSERT INTO outbox (event) VALUES (11)")
        waiting = Waiting(server, db, lambda db: events(db, "SELECT * FROM late()"))
        writer.execute("COMMIT")
        found = waiting.end()
    wait_until_complete(server)
    assert found + events(db) == [11]


@pytest.mark.parametrize("rewrite", [
    "ALTER TABLE outbox SET UNLOGGED", "ALTER TABLE outbox ALTER event TYPE varchar(10)",
    "CREATE TEMP TABLE was AS TABLE outbox; TRUNCATE outbox; INSERT INTO outbox TABLE was",
])  # fmt: skip
def test_a_table_that_is_rewritten_meanwhile(server, db, rewrite):
    with server.session() as other:
        db.execute(f"BEGIN; {rewrite}")
        waiting = Waiting(server, other, lambda other: events(other, TAKE.replace("*", "event")))
        db.execute("COMMIT")
        # The statement that has waited has the old type of the rows; it may be refused, but not lose any.
        with contextlib.suppress(psycopg.errors.DatatypeMismatch):
            assert waiting.end() == list(range(1, 11))
            return
    assert events(db) == list(range(1, 11))


# What a position means.


def test_a_position_belongs_to_a_table(server, db):
    server.sql("CREATE TABLE other (LIKE outbox INCLUDING ALL); INSERT INTO other DEFAULT VALUES")
    wait_until_complete(server, "other")
    error = refused(db, "42704", TAKE.replace("outbox", "other"))
    assert error.diag.message_primary == 'consumer "mailer" has no position for table public.other in public.positions'
    assert events(db) == list(range(1, 11))


def test_a_position_above_a_horizon_that_is_held(server, db):
    """Horizons can go back a little: a transaction holds them from the moment before it has looked how far they were."""
    with server.session() as writer:
        writer.execute("BEGIN; INSERT INTO outbox (event) VALUES (11)")
        db.execute("UPDATE positions SET last = flake_min(clock_timestamp(), 'twitter')")
        assert events(db) == []
        writer.execute("ROLLBACK")


def test_a_position_ahead_of_the_clock(db):
    """Rows below it would be skipped."""
    db.execute("UPDATE positions SET last = flake_min(now() + interval '1 minute', 'twitter')")
    refused(db, "55000")
    db.execute("UPDATE positions SET last = NULL; ALTER TABLE outbox ALTER id SET DEFAULT flake_next('instagram')")
    db.execute("UPDATE positions SET last = 2 * (SELECT max(id) FROM outbox)")
    refused(db, "55000")


@pytest.mark.parametrize("kind", ["float8", "integer", "numeric", "text", "sno", None])
def test_positions_of_another_type(db, kind):
    """A float would be rounded up, over rows."""
    db.execute("ALTER TABLE positions DROP last")
    if kind:
        db.execute(f"ALTER TABLE positions ADD last {kind}")
    assert "last bigint" in refused(db, "42804").diag.message_hint


def test_renamed(server, db):
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
    server.sql('ALTER SCHEMA "My schema" RENAME TO mine; CREATE SCHEMA ids; ALTER EXTENSION flake SET SCHEMA ids')
    few = few.replace('"My schema"', "mine").replace("flake_take", "ids.flake_take")
    assert events(db, few) == [5]
    server.sql("ALTER EXTENSION flake SET SCHEMA public; DROP SCHEMA mine CASCADE; DROP SCHEMA ids; DROP ROLE renamed")


def test_dropped_and_created_again(server, db):
    """The position is of a table that is gone; a session that has called before raises an error instead of using the old type."""
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


def test_a_dump(server, own_servers, tmp_path, db):
    """A position that was restored goes on."""
    assert events(db, TAKE.replace("100", "4")) == [1, 2, 3, 4]
    server.run("pg_dump", "-f", tmp_path / "dump.sql")
    restored = own_servers(extension=False)
    restored.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", tmp_path / "dump.sql")
    restored.sql("INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(restored)
    with restored.connect() as there:
        assert events(there) == [5, 6, 7, 8, 9, 10, 11]


def test_pg_upgrade(own_servers):
    old = own_servers()
    old.sql(f"""{POSITIONS}; CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text);
                INSERT INTO outbox (event) SELECT generate_series(1, 10); INSERT INTO positions VALUES ('mailer', 'outbox')""")
    wait_until_complete(old)
    with old.connect() as there:
        assert events(there, TAKE.replace("100", "4")) == [1, 2, 3, 4]
    old.stop()
    # The new one has no checksums, which are the default from 18 on.
    disable = as_server(bindir() / "pg_checksums", "--disable", "-D", old.dir / "data")
    subprocess.run(disable, check=False, capture_output=True)
    new = own_servers(upgrade_of=old)
    new.launch()
    new.sql("INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(new)
    with new.connect() as there:
        assert events(there) == [5, 6, 7, 8, 9, 10, 11]


# What a session keeps from call to call.

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
    """More of them than custom plans."""
    return [events(db, take.replace("100", "1")) for _ in range(6)]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_two_calls(server, db, change):
    assert calls(db) == [[1], [2], [3], [4], [5], [6]]
    server.sql(CHANGES[change])
    assert events(db, TAKE.replace("*", "event")) == [7, 8, 9, 10]


def test_another_layout_between_two_calls(server, db):
    """Its IDs are above those of the horizon in the old one."""
    calls(db)
    server.sql("ALTER TABLE outbox ALTER id SET DEFAULT flake_next('instagram'); INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(server, horizon="flake_min(flake_horizon(), 'instagram')")
    assert events(db) == [7, 8, 9, 10, 11]


def test_another_type_of_keys_between_two_calls(server, db):
    """Some of the queries have the same text. The driver prepares none, whose result would have another type."""
    db.prepare_threshold = None
    calls(db)
    server.sql("""DROP TABLE outbox; CREATE TABLE outbox (id sno PRIMARY KEY DEFAULT sno_next(), event text);
                  INSERT INTO outbox (event) SELECT generate_series(1, 8);
                  DELETE FROM positions; ALTER TABLE positions ALTER last TYPE sno USING NULL;
                  INSERT INTO positions VALUES ('mailer', 'outbox')""")
    wait_until(lambda: server.value("SELECT (SELECT id FROM outbox ORDER BY id DESC LIMIT 1) < sno_min(flake_horizon())"))
    assert [*calls(db), events(db)] == [[1], [2], [3], [4], [5], [6], [7, 8]]


def test_another_role_between_two_calls(server, db):
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
def test_row_security_between_two_calls(server, db, secured):
    with role(server) as consumer:
        server.sql("GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer")
        calls(consumer)
        server.sql(f"UPDATE positions SET last = NULL; ALTER TABLE {secured} ENABLE ROW LEVEL SECURITY")
        refused(consumer, "42501" if secured == "outbox" else "42704")
        assert events(db) == list(range(1, 11))


def test_another_search_path_between_two_calls(server, db):
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


def test_the_extension_again_between_two_calls(server, db):
    """In another schema, and as another one."""
    calls(db)
    take = TAKE.replace("flake_take", "ids.flake_take")
    server.sql("CREATE SCHEMA ids; ALTER EXTENSION flake SET SCHEMA ids")
    assert events(db, take.replace("100", "1")) == [7]
    server.sql("DROP EXTENSION flake CASCADE; CREATE EXTENSION flake SCHEMA ids")
    refused(db, "55000", take)
    server.sql("ALTER TABLE outbox ALTER id SET DEFAULT ids.flake_next('twitter')")
    assert events(db, take) == [8, 9, 10]
    server.sql("ALTER EXTENSION flake SET SCHEMA public; DROP SCHEMA ids")


def test_a_plan_from_when_the_table_was_empty(server, db):
    """It does not read all rows of what comes later."""
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


def test_how_many_plans_a_session_keeps(server, db):
    """Of the tables that come first."""
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


# What is refused.

NO_KEYS = {
    "no default": "CREATE TABLE x (id bigint PRIMARY KEY)",
    "another default": "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT 1)",
    "no index": "CREATE TABLE x (id bigint DEFAULT flake_next('twitter'))",
    "an index of some rows": "CREATE TABLE x (id bigint DEFAULT flake_next('twitter')); CREATE INDEX ON x (id) WHERE id > 0",
    "an index without order": "CREATE TABLE x (id bigint DEFAULT flake_next('twitter')); CREATE INDEX ON x USING hash (id)",
    "the second column of an index": "CREATE TABLE x (a int, id bigint DEFAULT flake_next('twitter'), PRIMARY KEY (a, id))",
    "two keys": "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), b bigint UNIQUE DEFAULT flake_next('si'))",
    "one of two layouts": "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT greatest(flake_next('si'), flake_next('twitter')))",
    "any layout": "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next(current_setting('search_path')))",
    "a text": "CREATE TABLE x (id text PRIMARY KEY DEFAULT flake_next('twitter'))",
    "another function of the name": "CREATE FUNCTION flake_next(text, text) RETURNS bigint LANGUAGE sql RETURN 1; "
                                    "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('twitter', 'a'))",
    "an index that is not valid": "CREATE TABLE x (id bigint DEFAULT flake_next('twitter'), p int) PARTITION BY LIST (p); "
                                  "CREATE TABLE x1 PARTITION OF x FOR VALUES IN (1); CREATE INDEX ON ONLY x (id)",
    "a child of another layout": "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('instagram')); "
                                 "CREATE TABLE x1 (id bigint DEFAULT flake_next('twitter')) INHERITS (x)",
    "a partition of another layout": "CREATE TABLE x (a int, id bigint PRIMARY KEY DEFAULT flake_next('si')) "
                                     "PARTITION BY HASH (id); "
                                     "CREATE TABLE x1 (id bigint NOT NULL DEFAULT flake_next('twitter'), a int); "
                                     "ALTER TABLE x ATTACH PARTITION x1 FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    "a child of any layout": "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('instagram')); "
                             "CREATE TABLE x1 (id bigint DEFAULT flake_next(current_setting('search_path'))) INHERITS (x)",
    "a child of one of two layouts": "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('instagram')); CREATE TABLE x1 "
                                     "(id bigint DEFAULT greatest(flake_next('si'), flake_next('twitter'))) INHERITS (x)",
    "a partition of a table of another layout":
        "CREATE TABLE parent (id bigint DEFAULT flake_next('twitter')) PARTITION BY HASH (id); "
        "CREATE TABLE x (id bigint NOT NULL UNIQUE DEFAULT flake_next('instagram')); "
        "ALTER TABLE parent ATTACH PARTITION x FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    "two keys, one with a child of another layout":
        "CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), b bigint UNIQUE DEFAULT flake_next('instagram')); "
        "CREATE TABLE x1 (id bigint DEFAULT flake_next('si')) INHERITS (x)",
    "snos as text": "CREATE TABLE x (id text PRIMARY KEY DEFAULT sno_next())",
}  # fmt: skip


@pytest.mark.parametrize("table", NO_KEYS)
def test_tables_without_a_key(db, table):
    db.execute(f"{NO_KEYS[table]}; INSERT INTO positions VALUES ('mailer', 'x')")
    error = refused(db, "55000", "SELECT * FROM flake_take(NULL::x, 'positions', 'mailer', 1)")
    assert error.diag.message_primary == "table public.x has no key to take its rows by"


def test_a_child_of_another_layout_that_comes_while_a_call_waits(server, db):
    db.execute("CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('instagram'))")
    db.execute("INSERT INTO x DEFAULT VALUES; INSERT INTO positions VALUES ('mailer', 'x')")
    wait_until_complete(server, "x", "flake_min(flake_horizon(), 'instagram')")
    take = "SELECT * FROM flake_take(NULL::x, 'positions', 'mailer', 9)"
    with server.connect() as first, server.connect() as second:
        first.execute("BEGIN; SELECT FROM positions WHERE name = 'mailer' AND source = 'x'::regclass FOR UPDATE")
        waiting = Waiting(server, second, lambda db: db.execute(take).fetchall())
        db.execute("CREATE TABLE x1 (id bigint DEFAULT flake_next('twitter')) INHERITS (x)")
        first.execute("COMMIT")
        assert pytest.raises(psycopg.Error, waiting.end).value.sqlstate == "55000"
    assert db.execute("SELECT last FROM positions WHERE name = 'mailer' AND source = 'x'::regclass").fetchone() == (None,)


def test_another_column_with_a_default_does_not_matter(server, db):
    db.execute("ALTER TABLE outbox ADD other bigint DEFAULT flake_next('si'); ALTER TABLE outbox ADD n bigint DEFAULT 1 + 1")
    db.execute("CREATE INDEX ON outbox (event, other); CREATE INDEX ON outbox (n)")
    assert len(db.execute(TAKE).fetchall()) == 10


@pytest.mark.parametrize("kind", [
    "VIEW v AS SELECT 1::bigint AS id", "MATERIALIZED VIEW v AS TABLE outbox", "TYPE v AS (id bigint)", "DOMAIN v AS outbox",
    "FOREIGN TABLE v (id bigint) SERVER s",
])  # fmt: skip
def test_what_is_no_table(db, kind):
    db.execute("CREATE FOREIGN DATA WRAPPER none; CREATE SERVER s FOREIGN DATA WRAPPER none")
    try:
        db.execute(f"CREATE {kind}")
        refused(db, "42809", "SELECT * FROM flake_take(NULL::v, 'positions', 'mailer', 1)")
    finally:
        db.execute("DROP FOREIGN DATA WRAPPER none CASCADE")


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_isolation(db, level):
    db.execute(f"BEGIN ISOLATION LEVEL {level}")
    refused(db, "25000")
    db.execute("ROLLBACK; BEGIN ISOLATION LEVEL READ UNCOMMITTED")
    assert len(events(db)) == 10
    db.execute("COMMIT")


def test_a_trigger_that_keeps_the_position(server, db):
    server.sql("""CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
                  CREATE TRIGGER keep BEFORE UPDATE ON positions FOR EACH ROW EXECUTE FUNCTION keep()""")
    refused(db, "55000")


def test_a_position_twice(db):
    db.execute("ALTER TABLE positions DROP CONSTRAINT positions_pkey; INSERT INTO positions TABLE positions")
    refused(db, "21000")


def test_arguments_that_are_null_or_not_positive(db):
    for arguments, sqlstate in {
        "NULL, 'mailer', 1": "22004", "'positions', NULL, 1": "22004", "'positions', 'mailer', NULL": "22004",
        "'positions', 'mailer', 0": "22023", "'positions', 'mailer', -2147483648": "22023", "0, 'mailer', 1": "42804",
        "'positions', '', 1": "42704", "'positions', repeat('x', 10000000), 1": "42704",
    }.items():  # fmt: skip
        refused(db, sqlstate, f"SELECT * FROM flake_take(NULL::outbox, {arguments})")


def test_a_standby(own_servers):
    primary = own_servers()
    primary.sql(f"{POSITIONS}; CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter')); "
                "INSERT INTO positions VALUES ('mailer', 'outbox')")
    standby = own_servers(standby_of=primary)
    with standby.connect() as there:
        refused(there, "25006")


# Privileges.


def test_privileges(server, db):
    """Without each of them nothing is read and nothing moves."""
    with role(server) as consumer:
        for grant in ["SELECT ON positions", "UPDATE ON positions", "SELECT (id) ON outbox"]:
            refused(consumer, "42501")
            db.execute(f"GRANT {grant} TO consumer")
        refused(consumer, "42501")
        assert db.execute(LAST).fetchone() == (None,)
        db.execute("GRANT SELECT ON outbox TO consumer")
        assert len(events(consumer)) == 10
        db.execute("REVOKE UPDATE ON positions FROM consumer; UPDATE positions SET last = NULL")
        refused(consumer, "42501")
        assert db.execute(LAST).fetchone() == (None,)


def test_row_security_of_the_table(server, db):
    with role(server) as consumer:
        db.execute("""GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer;
                      ALTER TABLE outbox ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON outbox USING (event = '3')""")
        for setting in "on", "off":
            consumer.execute(f"SET row_security = {setting}")
            refused(consumer, "42501")
        assert db.execute(LAST).fetchone() == (None,)
        assert len(events(db, TAKE.replace("100", "4"))) == 4
        db.execute("ALTER ROLE consumer BYPASSRLS")
        assert len(events(consumer)) == 6


def test_row_security_that_comes_meanwhile(server, db):
    """The consumer knows the type of the rows, which it would otherwise look up under a lock of the table."""
    with role(server) as consumer:
        db.execute("GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer")
        assert len(events(consumer)) == 10
        db.execute("UPDATE positions SET last = NULL")
        db.execute("BEGIN; ALTER TABLE outbox ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON outbox USING (event = '3')")
        waiting = Waiting(server, consumer, events)
        db.execute("COMMIT")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row security"):
            waiting.end()
        assert db.execute(LAST).fetchone() == (None,)


def test_row_security_of_positions(server, db):
    """Each role has positions of its own in one table."""
    with role(server) as consumer:
        db.execute("""GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer;
                      ALTER TABLE positions ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON positions USING (name = current_user);
                      INSERT INTO positions VALUES ('consumer', 'outbox')""")
        refused(consumer, "42704")
        assert db.execute(LAST).fetchone() == (None,)
        assert len(events(consumer, TAKE.replace("mailer", "consumer"))) == 10


def test_nothing_runs_as_somebody_else(server, db):
    """A trigger of the positions and a function of a policy there see the caller."""
    with role(server) as consumer:
        db.execute("""
            CREATE TABLE seen (who name); GRANT INSERT ON seen TO PUBLIC;
            CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO seen VALUES (current_user); RETURN NEW; END $$;
            CREATE TRIGGER see BEFORE UPDATE ON positions FOR EACH ROW EXECUTE FUNCTION see();
            GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer""")
        assert len(events(consumer)) == 10
        assert db.execute("SELECT * FROM seen").fetchall() == [("consumer",)]


def test_a_hostile_search_path(server, db):
    """No operator, function, type or table is found by it."""
    db.execute("""
        CREATE SCHEMA evil;
        CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION evil.never(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION evil.never(regclass, regclass) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION evil.never(oid, oid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never);
        CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.never);
        CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never);
        CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = evil.never);
        CREATE OPERATOR evil.= (LEFTARG = regclass, RIGHTARG = regclass, FUNCTION = evil.never);
        CREATE FUNCTION evil.flake_horizon() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION evil.flake_min(timestamptz, text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE TABLE evil.outbox (LIKE outbox INCLUDING ALL); CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false);
        CREATE DOMAIN evil.int8 AS pg_catalog.int8 CHECK (false);
        SET search_path = evil, pg_catalog, public""")
    assert events(db, TAKE.replace("NULL::outbox", "NULL::public.outbox")) == list(range(1, 11))
    db.execute("SET search_path = public; DROP SCHEMA evil CASCADE")


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_names_in_other_encodings(server, encoding):
    name = {"LATIN1": "chr(228)", "EUC_JP": "convert_from('\\xa4a2', 'EUC_JP')", "SQL_ASCII": "chr(200)"}[encoding]
    database = f"take_{encoding.lower()}"
    server.sql(f"CREATE DATABASE {database} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with server.connect(dbname=database) as db:
        db.execute(f"""
            CREATE EXTENSION flake; {POSITIONS};
            DO $$ BEGIN
                EXECUTE format('CREATE TABLE %I (%I bigint PRIMARY KEY DEFAULT flake_next(%L))', {name}, {name}, 'twitter');
                EXECUTE format('INSERT INTO %I DEFAULT VALUES; INSERT INTO positions VALUES (%L, %L)', {name}, {name}, {name});
            END $$""")
        db.execute("SELECT pg_sleep(0.01)")
        db.execute(f"""DO $$ DECLARE n integer; BEGIN
            EXECUTE format('SELECT count(*) FROM flake_take(NULL::%I, %L, %L, 1)', {name}, 'positions', {name}) INTO n;
            ASSERT n = 1;
        END $$""")
        with pytest.raises(psycopg.errors.UndefinedObject) as error:
            db.execute(f"""DO $$ BEGIN
                EXECUTE format('SELECT FROM flake_take(NULL::%I, %L, %L, 1)', {name}, 'positions', 'x'); END $$""")
        assert "has no position for table public." in error.value.diag.message_primary


def test_a_clock_that_is_behind_after_a_restart(own_servers):
    """The horizon does not go back by that, so the position is not ahead of it."""
    server = server_at_0(own_servers)
    server.sql(f"""{POSITIONS}; CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text);
                   INSERT INTO outbox (event) VALUES (1); INSERT INTO positions VALUES ('mailer', 'outbox')""")
    server.set_clock(at(1))
    with server.connect() as there:
        assert events(there) == [1]
    server.restart(mode="immediate", while_stopped=lambda: server.set_clock(at(-60)))
    with server.connect() as there:
        assert events(there) == []
        server.set_clock(at(20))
        there.execute("INSERT INTO outbox (event) VALUES (2)")
        server.set_clock(at(21))
        assert events(there) == [2]


def test_a_clock_that_was_ahead(own_servers):
    """After flake_accept_clock, rows come below the position, which would never be taken."""
    server = server_at_0(own_servers)
    server.sql(f"{POSITIONS}; CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text)")
    server.set_clock(at(3600))
    server.sql("INSERT INTO outbox (event) VALUES (1); INSERT INTO positions VALUES ('mailer', 'outbox')")
    server.set_clock(at(3601))
    with server.connect() as there:
        assert events(there) == [1]
        server.set_clock(at(10))
        there.execute("SELECT flake_accept_clock()")
        there.execute("INSERT INTO outbox (event) VALUES (2)")
        server.set_clock(at(20))
        refused(there, "55000")
        there.execute("UPDATE positions SET last = NULL")
        assert events(there) == [2]
