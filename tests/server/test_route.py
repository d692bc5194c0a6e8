"""flake_route: the search_path of a database, where an application calls nextval itself; and flake_sequence_faults."""

import re

import psycopg
import pytest

import adopting
from adopting import IS_ID, LARGE, ORDERS, PATH, adopt, db, one, state
from waiting import Background, wait_until

__all__ = ["db"]

DEFAULT = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = %s::regclass"
HAS_PATH = "SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = 'test')"
KINDS = "SELECT DISTINCT kind FROM flake_sequence_faults ORDER BY kind"


@pytest.fixture(scope="module")
def server(servers):
    server = adopting.make(servers("max_prepared_transactions=10"))
    with server.session(dbname="made") as db:
        db.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    return server


def route(db, schemas="'public'"):
    db.execute(f"CALL flake_route({schemas})")


def refusal(db, schemas="'public'"):
    """The reason why a path is refused; nothing was set."""
    error = pytest.raises(psycopg.Error, route, db, schemas).value
    assert error.sqlstate == "55000" and one(db, HAS_PATH) == (0,)
    return error.diag.message_detail


def test_new_sessions_find_the_functions(server, db):
    db.execute(f"""{ORDERS}; CREATE TABLE small (id serial PRIMARY KEY); CREATE SEQUENCE free;
        CREATE TABLE parts (id bigserial, v int) PARTITION BY RANGE (v);
        CREATE TABLE part (id bigserial, v int); ALTER TABLE parts ATTACH PARTITION part DEFAULT;
        CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w;
        CREATE FOREIGN TABLE f (id bigint DEFAULT nextval('free')) SERVER far;
        CREATE TABLE child (own serial, PRIMARY KEY (id)) INHERITS (orders);
        CREATE TEMP TABLE temporary (id serial); CREATE UNLOGGED TABLE unlogged (id serial);
        CREATE VIEW shown AS SELECT id, v FROM orders; ALTER VIEW shown ALTER id SET DEFAULT nextval('free');
        CREATE SCHEMA other; CREATE TABLE other.t (id serial)""")
    assert one(db, "SELECT count(*) FROM flake_unrouted") == (10,)
    route(db, "'other', 'public'")
    assert one(db, "SELECT count(*) FROM flake_unrouted") == (0,)
    with server.session(dbname="test") as new:
        assert one(new, "SHOW search_path") == ("other, public, flake_sequences, pg_catalog",)
        assert one(new, "SELECT current_schema()") == ("other",)
        for table in ("orders", "small", "part", "t"):
            assert one(new, DEFAULT, table) == (f"nextval('{table}_id_seq'::regclass)",)
        assert one(new, DEFAULT, "shown") == ("nextval('free'::regclass)",)
        # Nothing counts otherwise than before.
        assert one(new, "INSERT INTO orders (v) VALUES (1) RETURNING id, lastval(), currval('orders_id_seq')") == (11, 11, 11)
        adopt(new)
        assert one(new, IS_ID) == (True,) and one(new, f"SELECT nextval('orders_id_seq') > {LARGE}") == (True,)
        assert new.execute(KINDS).fetchall() == []


def test_names_of_schemas_and_databases_are_quoted(server, db):
    name = '"Or""der, \\ö"'
    server.sql(f"CREATE DATABASE {name} TEMPLATE made")
    with server.session(dbname='Or"der, \\ö') as other:
        other.execute(f"""CREATE SCHEMA {name}; CREATE TABLE {name}.date (id serial);
            CREATE TABLE {name}.{name} ({name} serial, v int)""")
        error = pytest.raises(psycopg.Error, route, other, f"'{name}', 'public'").value
        assert 'hides one of PostgreSQL' in error.diag.message_detail
        other.execute(f"DROP TABLE {name}.date")
        route(other, f"'{name}', 'public'")
    with server.session(dbname='Or"der, \\ö') as new:
        assert one(new, "SHOW search_path") == (f"{name}, public, flake_sequences, pg_catalog",)
        assert one(new, "SELECT current_schema()") == ('Or"der, \\ö',)
        assert one(new, f"INSERT INTO {name} (v) VALUES (1) RETURNING {name}") == (1,)
        assert one(new, "SELECT count(*) FROM flake_unrouted") == (0,)
    server.sql(f"DROP DATABASE {name}")


@pytest.mark.parametrize("schemas", [
    "'pg_catalog'", "'public', 'flake_sequences'", "NULL", "VARIADIC '{}'", "VARIADIC NULL",
    "VARIADIC ARRAY['public', NULL]::regnamespace[]",
])  # fmt: skip
def test_other_arguments_are_refused(db, schemas):
    assert state(db, f"CALL flake_route({schemas})") == "22023" and one(db, HAS_PATH) == (0,)


def test_it_does_not_run_in_a_transaction_block(db):
    db.execute("BEGIN")
    assert state(db, "CALL flake_route('public')") == "2D000"
    db.execute("ROLLBACK")


# Paths that would not be safe.


CREATORS = {
    "everybody": ("GRANT CREATE ON SCHEMA public TO PUBLIC", "Role PUBLIC may create objects in schema public"),
    "a role": ("GRANT CREATE ON SCHEMA public TO app", "Role app may create objects in schema public"),
    "its owner": ("ALTER SCHEMA public OWNER TO keeper", "Role keeper may create objects in schema public"),
    # They may take the name of a type of PostgreSQL, without a privilege on the schema.
    "an enum": ("CREATE TYPE e AS ENUM ('a'); ALTER TYPE e OWNER TO app", "Role app owns type public.e"),
    "a domain": ("CREATE DOMAIN d AS text; ALTER DOMAIN d OWNER TO app", "Role app owns type public.d"),
    "a composite": ("CREATE TYPE c AS (x int); ALTER TYPE c OWNER TO app", "Role app owns type public.c"),
    "a domain over an array": ("CREATE DOMAIN d AS int[]; ALTER DOMAIN d OWNER TO app", "Role app owns type public.d"),
}  # fmt: skip


@pytest.mark.parametrize("kind", CREATORS)
def test_a_schema_in_which_others_create_is_refused(db, kind):
    statements, detail = CREATORS[kind]
    db.execute(statements)
    assert detail in refusal(db)


def test_an_unsafe_path_is_refused_before_it_is_set(server, db):
    """Afterwards, the call would wait for this session."""
    db.execute("GRANT CREATE ON SCHEMA public TO PUBLIC; SET statement_timeout = '20s'")
    with server.session(dbname="test"):
        assert "Role PUBLIC may create" in refusal(db)


def test_the_owner_of_the_database_may_create(server, db):
    """And roles that may become its owner. Another role cannot rename a table."""
    db.execute("""ALTER DATABASE test OWNER TO keeper; GRANT keeper TO reader; GRANT CREATE ON SCHEMA public TO keeper, reader;
        CREATE TABLE t (id int); ALTER TABLE t OWNER TO app""")
    route(db)
    assert db.execute(KINDS).fetchall() == []
    # A privilege that is given later is found.
    db.execute("GRANT CREATE ON SCHEMA public TO app")
    assert db.execute(KINDS).fetchall() == [("creator",)]


@pytest.mark.parametrize("statement", [
    "CREATE TABLE date (d int)", "CREATE VIEW pg_class AS SELECT 1", "CREATE DOMAIN money AS text",
    "CREATE FUNCTION version() RETURNS text LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION version(x int DEFAULT 1) RETURNS text LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION lower(text) RETURNS text LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION same(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
    "CREATE OPERATOR = (LEFTARG = int, RIGHTARG = int, FUNCTION = same)",
    "CREATE TEXT SEARCH CONFIGURATION english (COPY = simple)", "CREATE TEXT SEARCH DICTIONARY simple (TEMPLATE = simple)",
])  # fmt: skip
def test_a_name_of_postgresql_is_refused(db, statement):
    db.execute(statement)
    assert re.search(r"hides one of PostgreSQL", refusal(db))


@pytest.mark.parametrize("function", [
    "lower(VARIADIC text[]) RETURNS text", "jsonb_set(jsonb, text[], jsonb) RETURNS text", "make_interval(days int) RETURNS text",
    "abs(VARIADIC int[]) RETURNS text",
])  # fmt: skip
def test_a_function_of_another_role_needs_a_name_of_its_own(db, function):
    db.execute(f"CREATE FUNCTION {function} LANGUAGE sql AS 'SELECT 1'")
    name = function.partition("(")[0]
    db.execute(f"ALTER FUNCTION public.{name} OWNER TO app")
    assert re.search(rf"function public.{name}\(.* hides one of PostgreSQL", refusal(db))
    db.execute(f"ALTER FUNCTION public.{name} RENAME TO harmless")
    route(db)


@pytest.mark.parametrize("ends", ["COMMIT", "COMMIT PREPARED 'lower'"])
def test_what_is_open_while_it_looks_takes_the_path_away_again(server, db, ends):
    with server.session(dbname="test") as old:
        old.execute("BEGIN; CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
        if "PREPARED" in ends:
            old.execute("PREPARE TRANSACTION 'lower'")
            old.close()
        call = Background(lambda: route(db))
        with pytest.raises(psycopg.Error, match="hides") as error, call:
            wait_until(lambda: server.value(HAS_PATH) == 1)
            with server.session(dbname="test") as new:
                (new if old.closed else old).execute(ends)
            old.close()
    assert error.value.sqlstate == "55000" and "public.lower(text) hides" in error.value.diag.message_detail
    assert server.value(HAS_PATH) == 0


def test_a_schema_that_does_not_exist_is_a_fault(db):
    db.execute("CREATE SCHEMA gone")
    route(db, "'public', 'gone'")
    assert db.execute(KINDS).fetchall() == []
    db.execute("DROP SCHEMA gone")
    assert "has schema gone before pg_catalog, which does not exist" in one(db, "SELECT fault FROM flake_sequence_faults")[0]


@pytest.mark.parametrize("change", [
    "START 1 NO MAXVALUE RESTART", "START 1 NO MINVALUE NO MAXVALUE RESTART", "NO MAXVALUE", "CYCLE",
])  # fmt: skip
def test_what_is_left_of_a_range_shows_that_it_was_opened(db, change):
    db.execute(ORDERS)
    adopt(db)
    db.execute(f"ALTER SEQUENCE orders_id_seq {change}")
    # The page says that an owner who changes all three makes it a sequence like any other.
    assert db.execute(KINDS).fetchall() == ([] if "NO MINVALUE NO" in change else [("open",)])


def test_the_hint_of_the_check_keeps_inserts_going(db):
    """It leaves out the sequence of lastval(), which each session sets."""
    row = "SELECT ok FROM flake_check() WHERE name = 'pg_upgrade'"
    assert one(db, row) == (True,)
    db.execute("GRANT UPDATE ON ALL SEQUENCES IN SCHEMA flake_internal TO app")
    assert one(db, row) == (False,)


def test_names_of_other_arguments_are_no_danger(db):
    db.execute("""CREATE DOMAIN citext_like AS text; CREATE TABLE dates (date date, name name);
        CREATE FUNCTION lower(citext_like, int) RETURNS text LANGUAGE sql AS 'SELECT 1';
        CREATE FUNCTION nextval(text, text) RETURNS bigint LANGUAGE sql AS 'SELECT 1'""")
    route(db)


def test_an_extension_may_have_a_name_of_postgresql(db):
    """PostgreSQL has gen_random_uuid() itself since pgcrypto has it. Its owner must not be another role."""
    if not one(db, "SELECT count(*) FROM pg_available_extensions WHERE name = 'pgcrypto'")[0]:
        pytest.skip("this PostgreSQL has no pgcrypto")
    db.execute("CREATE EXTENSION pgcrypto; ALTER FUNCTION public.gen_random_uuid() OWNER TO app")
    assert "function public.gen_random_uuid() hides one of PostgreSQL" in refusal(db)
    db.execute("ALTER FUNCTION public.gen_random_uuid() OWNER TO CURRENT_USER")
    route(db)
    assert db.execute(KINDS).fetchall() == []


def test_a_table_of_another_role_is_named(db):
    db.execute(f"{ORDERS}; ALTER DATABASE test OWNER TO keeper; SET ROLE keeper")
    assert "The default of column public.orders.id calls PostgreSQL's nextval()." in refusal(db)
    assert state(db, "ALTER DATABASE postgres SET search_path = public") == "42501"


def test_others_do_not_set_the_path(db):
    db.execute("SET ROLE app")
    assert state(db, "CALL flake_route('public')") == "42501"
    db.execute("RESET ROLE")
    assert one(db, HAS_PATH) == (0,)


# Sessions from before, and other paths.


def test_it_waits_for_sessions_from_before(server, db):
    db.execute(ORDERS)
    notices = []
    db.add_notice_handler(lambda notice: notices.append(notice.message_detail))
    with server.session(dbname="test") as old:
        pid, = one(old, "SELECT pg_backend_pid()")
        with Background(lambda: route(db)) as call:
            wait_until(lambda: server.value(HAS_PATH) == 1)
            with server.session(dbname="test") as new:
                assert one(new, "SHOW search_path") == (PATH,)
                wait_until(lambda: notices)
                call.threads[0].join(0.5)
                assert call.threads[0].is_alive()
                old.close()
    assert re.search(rf"\b{pid} since 2", notices[0])


def test_it_waits_for_sessions_of_which_the_owner_sees_little(server, db):
    """Only roles with a privilege see which sessions are clients'."""
    db.execute("ALTER DATABASE test OWNER TO keeper; SET ROLE keeper")
    notices = []
    db.add_notice_handler(lambda notice: notices.append(notice.message_detail))
    with server.session(dbname="test") as old:
        pid, = one(old, "SELECT pg_backend_pid()")
        with Background(lambda: route(db)) as call:
            wait_until(lambda: notices or not call.threads[0].is_alive())
            old.close()
    assert re.search(rf"They are: .*\b{pid}\b", "".join(notices))


def test_a_path_without_the_schema_is_a_fault(server, db):
    db.execute(f"""{ORDERS};
        CREATE FUNCTION own() RETURNS bigint LANGUAGE sql SET search_path = public AS 'SELECT nextval(''orders_id_seq'')';
        CREATE FUNCTION fine() RETURNS bigint LANGUAGE sql SET search_path = {PATH} AS 'SELECT nextval(''orders_id_seq'')';
        CREATE SEQUENCE s;
        CREATE FUNCTION atomic(regclass) RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT nextval($1); END;
        CREATE VIEW v AS SELECT nextval('s'); CREATE VIEW w AS SELECT setval('s', 5, false);
        ALTER ROLE reader IN DATABASE test SET search_path = public; ALTER ROLE app IN DATABASE test SET search_path = {PATH};
        ALTER ROLE keeper SET search_path = 'flake_sequences, pg_catalog'""")
    notices = []
    db.add_notice_handler(lambda notice: notices.append((notice.severity_nonlocalized, notice.message_detail)))
    route(db)
    db.execute("ALTER ROLE keeper RESET search_path")
    severity, detail = notices[0]
    assert severity == "WARNING" and detail.split(". ") == [
        "Role keeper has a search_path of its own, without flake_sequences",
        "Role reader has a search_path of its own, without flake_sequences",
        "The function public.atomic(regclass) is bound to PostgreSQL's functions of sequences",
        "The function public.own() has a search_path of its own, and finds PostgreSQL's functions of sequences first",
        "The rule _RETURN on view public.v is bound to PostgreSQL's functions of sequences",
        "The rule _RETURN on view public.w is bound to PostgreSQL's functions of sequences.",
    ]  # fmt: skip


def test_a_user_schema_before_pg_catalog_is_a_fault(db):
    db.execute("""ALTER DATABASE test SET search_path = "$user", public, flake_sequences, pg_catalog""")
    assert '"$user"' in one(db, "SELECT fault FROM flake_sequence_faults")[0]


def test_a_free_sequence_without_the_path_is_a_fault(server, db):
    """As in a restored dump, which has the sequences and not the path."""
    db.execute("CREATE SEQUENCE s")
    adopt(db, "s")
    assert db.execute(KINDS).fetchall() == [("path",)]
    route(db)
    assert db.execute(KINDS).fetchall() == []
    server.sql("DROP DATABASE IF EXISTS copied")
    dump = server.run("pg_dump", "test").stdout
    server.sql("CREATE DATABASE copied")
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "copied", input=dump)
    with server.session(dbname="copied") as copy:
        assert copy.execute(KINDS).fetchall() == [("path",)] and state(copy, "SELECT nextval('s')") == "2200H"
    server.sql("DROP DATABASE copied")
    db.execute(f"ALTER SEQUENCE s CYCLE; {ORDERS}")
    assert db.execute(KINDS).fetchall() == [("default",), ("open",)]


def test_the_check_has_a_row(server, db):
    row = "SELECT ok, detail FROM flake_check() WHERE name = 'sequences'"
    db.execute("CREATE SEQUENCE s; CREATE VIEW v AS SELECT nextval('s')")
    assert one(db, row) == (True, "Adopted sequences: 0. They are closed, and no search_path misses them.")
    db.execute(f"DROP VIEW v; {ORDERS}")
    adopt(db)
    adopt(db, "s")
    assert one(db, row) == (False, "No default uses sequence s, which was adopted, and no search_path of this database has "
                            "flake_sequences before pg_catalog.")  # fmt: skip
    route(db)
    assert one(db, row) == (True, "Adopted sequences: 2. They are closed, and no search_path misses them.")
    db.execute("ALTER SEQUENCE orders_id_seq NO MAXVALUE; CREATE TABLE later (id bigserial); SET ROLE app")
    assert one(db, row) == (False, "The default of column later.id calls PostgreSQL's nextval(). "
                            "The sequence orders_id_seq was adopted, and its range has been changed.")  # fmt: skip
