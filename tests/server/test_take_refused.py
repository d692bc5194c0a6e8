"""flake_take: refused calls, privileges, and clocks."""

import psycopg
import pytest

from standing_clock import at, server_at_0
from taking import LAST, POSITIONS, TAKE, events, prepared, refused, role, wait_until_complete
from waiting import Waiting


@pytest.fixture
def db(server):
    yield from prepared(server)


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


@pytest.mark.matrix
@pytest.mark.parametrize("table", NO_KEYS)
def test_tables_without_a_key_are_refused(db, table):
    db.execute(f"{NO_KEYS[table]}; INSERT INTO positions VALUES ('mailer', 'x')")
    error = refused(db, "55000", "SELECT * FROM flake_take(NULL::x, 'positions', 'mailer', 1)")
    assert error.diag.message_primary == "table public.x has no key to take its rows by"


def test_a_child_of_another_layout_that_comes_while_a_call_waits_is_refused(server, db):
    db.execute("CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('instagram'))")
    db.execute("INSERT INTO x DEFAULT VALUES; INSERT INTO positions VALUES ('mailer', 'x')")
    wait_until_complete(server, "x", "flake_min(flake_watermark(), 'instagram')")
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
def test_relations_that_are_not_tables_are_refused(db, kind):
    db.execute("CREATE FOREIGN DATA WRAPPER none; CREATE SERVER s FOREIGN DATA WRAPPER none")
    try:
        db.execute(f"CREATE {kind}")
        refused(db, "42809", "SELECT * FROM flake_take(NULL::v, 'positions', 'mailer', 1)")
    finally:
        db.execute("DROP FOREIGN DATA WRAPPER none CASCADE")


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_transactions_with_one_snapshot_are_refused(db, level):
    db.execute(f"BEGIN ISOLATION LEVEL {level}")
    refused(db, "25000")
    db.execute("ROLLBACK; BEGIN ISOLATION LEVEL READ UNCOMMITTED")
    assert len(events(db)) == 10
    db.execute("COMMIT")


def test_a_trigger_that_keeps_the_position_is_an_error(server, db):
    server.sql("""CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
                  CREATE TRIGGER keep BEFORE UPDATE ON positions FOR EACH ROW EXECUTE FUNCTION keep()""")
    refused(db, "55000")


def test_a_position_that_exists_twice_is_an_error(db):
    db.execute("ALTER TABLE positions DROP CONSTRAINT positions_pkey; INSERT INTO positions TABLE positions")
    db.execute("INSERT INTO outbox DEFAULT VALUES")
    assert refused(db, "55000").diag.message_hint == "Create a table with PRIMARY KEY (name, source)."


def test_arguments_that_are_null_or_not_positive_are_refused(db):
    for arguments, sqlstate in {
        "NULL, 'mailer', 1": "22004", "'positions', NULL, 1": "22004", "'positions', 'mailer', NULL": "22004",
        "'positions', 'mailer', 0": "22023", "'positions', 'mailer', -2147483648": "22023", "0, 'mailer', 1": "42804",
        "'positions', '', 1": "42704", "'positions', repeat('x', 10000000), 1": "42704",
    }.items():  # fmt: skip
        refused(db, sqlstate, f"SELECT * FROM flake_take(NULL::outbox, {arguments})")


@pytest.mark.matrix
def test_a_standby_refuses(own_servers):
    primary = own_servers()
    primary.sql(f"{POSITIONS}; CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter')); "
                "INSERT INTO positions VALUES ('mailer', 'outbox')")
    standby = own_servers(standby_of=primary)
    with standby.connect() as there:
        refused(there, "25006")


# Privileges.


def test_each_missing_privilege_is_an_error(server, db):
    """Without any one of them, no row is read and no position moves."""
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


def test_a_consumer_that_cannot_move_its_position_learns_it_before_there_is_a_row(server, db):
    assert len(events(db)) == 10
    with role(server) as consumer:
        db.execute("GRANT SELECT ON outbox, positions TO consumer")
        error = refused(consumer, "42501")
        assert error.diag.message_primary == "permission denied for table positions"
        db.execute("GRANT UPDATE (name) ON positions TO consumer")
        refused(consumer, "42501")
        db.execute("GRANT UPDATE (last) ON positions TO consumer")
        assert events(consumer) == []
        consumer.execute("BEGIN READ ONLY")
        error = refused(consumer, "25006")
        assert error.diag.message_primary == "cannot execute flake_take() in a read-only transaction"


def test_row_security_of_the_table_is_refused(server, db):
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


def test_row_security_of_positions_is_obeyed(server, db):
    """Each role has positions of its own in one table."""
    with role(server) as consumer:
        db.execute("""GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer;
                      ALTER TABLE positions ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON positions USING (name = current_user);
                      INSERT INTO positions VALUES ('consumer', 'outbox')""")
        refused(consumer, "42704")
        assert db.execute(LAST).fetchone() == (None,)
        assert len(events(consumer, TAKE.replace("mailer", "consumer"))) == 10


def test_everything_runs_as_the_caller(server, db):
    """A trigger on the positions and a function of a policy there see the caller's role."""
    with role(server) as consumer:
        db.execute("""
            CREATE TABLE seen (who name); GRANT INSERT ON seen TO PUBLIC;
            CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO seen VALUES (current_user); RETURN NEW; END $$;
            CREATE TRIGGER see BEFORE UPDATE ON positions FOR EACH ROW EXECUTE FUNCTION see();
            GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer""")
        assert len(events(consumer)) == 10
        assert db.execute("SELECT * FROM seen").fetchall() == [("consumer",)]


def test_a_hostile_search_path_is_not_used(server, db):
    """No operator, function, type or table is found through it."""
    db.execute("CREATE SCHEMA evil")
    for type in ["bigint", "text", "regclass", "oid"]:
        db.execute(f"CREATE FUNCTION evil.never({type}, {type}) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''evil''; END'")
        for name in "<=>":
            db.execute(f"CREATE OPERATOR evil.{name} (LEFTARG = {type}, RIGHTARG = {type}, FUNCTION = evil.never)")
    db.execute("""
        CREATE FUNCTION evil.flake_watermark() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION evil.flake_min(timestamptz, text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE TABLE evil.outbox (LIKE outbox INCLUDING ALL); CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false);
        CREATE DOMAIN evil.int8 AS pg_catalog.int8 CHECK (false);
        SET search_path = evil, pg_catalog, public""")
    assert events(db, TAKE.replace("NULL::outbox", "NULL::public.outbox")) == list(range(1, 11))
    db.execute("SET search_path = public; DROP SCHEMA evil CASCADE")


def test_operators_for_a_domain_in_the_schema_of_flake_are_not_used(server, db):
    """Others may be allowed to create objects there. An operator for the domain would fit better than the one of its type."""
    db.execute("""
        CREATE DOMAIN line_id AS sno;
        CREATE TABLE lines (id line_id PRIMARY KEY DEFAULT sno_next(), n int);
        INSERT INTO lines (n) SELECT generate_series(1, 3);
        DROP TABLE positions; CREATE TABLE positions (name text, source regclass, last line_id, PRIMARY KEY (name, source));
        INSERT INTO positions VALUES ('mailer', 'lines');
        CREATE FUNCTION never(line_id, sno) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION never(line_id, line_id) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE OPERATOR > (LEFTARG = line_id, RIGHTARG = sno, FUNCTION = never);
        CREATE OPERATOR < (LEFTARG = line_id, RIGHTARG = sno, FUNCTION = never);
        CREATE OPERATOR > (LEFTARG = line_id, RIGHTARG = line_id, FUNCTION = never)""")
    wait_until_complete(server, "lines", "sno_min(flake_watermark())")
    take = "SELECT * FROM flake_take(NULL::lines, 'positions', 'mailer', 2)"
    assert [events(db, take) for _ in range(3)] == [[1, 2], [3], []]


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_names_in_other_encodings_are_kept(server, encoding):
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


def test_a_clock_behind_after_a_restart_refuses_no_position(own_servers):
    """The restart does not lower the watermark, so the position is not ahead of it."""
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


def test_positions_from_a_clock_that_was_ahead_are_refused(own_servers):
    """After flake_accept_clock, rows appear below the position, which the consumer would never take."""
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
