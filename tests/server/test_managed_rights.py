"""managed/flake.sql and managed/to_extension.sql run nothing that others have written: by the owner, or by a superuser."""

import psycopg
import pytest

import managed

# Functions and operators that fit the types of calls better than PostgreSQL's own, and a function of this edition's name.
PLANTED = """
    CREATE FUNCTION public.steal() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO mine.loot VALUES (current_user);
        IF current_setting('is_superuser') = 'on' THEN ALTER ROLE mallory SUPERUSER; END IF;
        EXCEPTION WHEN insufficient_privilege OR object_not_in_prerequisite_state OR read_only_sql_transaction THEN NULL;
    END $$;
    CREATE FUNCTION public.times(bigint, interval) RETURNS interval LANGUAGE sql AS $$
        SELECT public.steal(); SELECT $1::float8 * $2 $$;
    CREATE OPERATOR public.* (LEFTARG = bigint, RIGHTARG = interval, FUNCTION = public.times);
    CREATE FUNCTION public.cat(text, integer) RETURNS text LANGUAGE sql AS $$ SELECT public.steal(); SELECT concat($1, $2) $$;
    CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = integer, FUNCTION = public.cat);
    CREATE FUNCTION public.div(numeric, bigint) RETURNS numeric LANGUAGE sql AS $$
        SELECT public.steal(); SELECT trunc($1 / $2) $$;
    CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE sql AS $$
        SELECT public.steal(); SELECT pg_catalog.format($1, $2) $$;
    CREATE FUNCTION public.cardinality(integer[]) RETURNS integer LANGUAGE sql AS $$
        SELECT public.steal(); SELECT pg_catalog.cardinality($1) $$;
    CREATE FUNCTION mine.flake_set_node(integer, integer) RETURNS void LANGUAGE sql AS $$ SELECT public.steal() $$"""
# Queries of a table run policies, and expressions of its indexes when they are planned.
BAIT = """
    CREATE FUNCTION mine.reads(bigint) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM public.steal();
        RETURN true;
    END $$;
    CREATE TABLE mine.policed (id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
    CREATE TABLE mine.indexed (id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
    ALTER TABLE mine.policed ENABLE ROW LEVEL SECURITY;
    CREATE POLICY policy ON mine.policed USING (mine.reads(id));
    CREATE INDEX ON mine.indexed (mine.reads(1));
    INSERT INTO mine.policed DEFAULT VALUES;
    INSERT INTO mine.indexed DEFAULT VALUES;
    GRANT SELECT ON mine.policed, mine.indexed TO PUBLIC;
    TRUNCATE mine.loot"""


@pytest.fixture
def server(own_servers):
    """The owner of the database is not a superuser, and mallory may create objects where the edition is installed.
    Names of roles need quotes."""
    server = own_servers(extension=False)
    server.sql('CREATE EXTENSION pgcrypto; CREATE ROLE "Owner" LOGIN; CREATE ROLE "App" LOGIN; CREATE ROLE mallory LOGIN')
    server.sql('ALTER DATABASE postgres OWNER TO "Owner"; GRANT CREATE ON SCHEMA public TO "Owner", mallory')
    server.sql("CREATE SCHEMA mine AUTHORIZATION mallory; GRANT USAGE ON SCHEMA mine TO PUBLIC")
    server.sql("CREATE TABLE mine.loot (who text); GRANT ALL ON mine.loot TO PUBLIC; ALTER TABLE mine.loot OWNER TO mallory")
    return server


def act(server, role, *statements):
    with server.connect(user=role) as db:
        for statement in statements:
            db.execute(statement)


def test_nothing_in_the_schema_of_its_functions_is_called(server):
    act(server, "mallory", PLANTED)
    managed.install(server, user="Owner")
    assert server.value("SELECT flake_timestamp(flake_next('twitter')) <= clock_timestamp()")
    assert server.value("SELECT count(*) FROM flake_layouts WHERE ids_per_second > 0") > 10
    server.sql("CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension")
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres", "-f", managed.LEAVING)
    assert server.value("SELECT flake_next('twitter') > 0")
    assert server.sql("SELECT who FROM mine.loot") == []
    assert server.value("SELECT NOT rolsuper FROM pg_roles WHERE rolname = 'mallory'")


def test_the_check_calls_nothing_of_the_owners_of_tables(server):
    managed.install(server, user="Owner")
    act(
        server, "mallory",
        "CREATE FUNCTION public.steal() RETURNS void LANGUAGE sql AS 'INSERT INTO mine.loot VALUES (current_user)'",
    )  # fmt: skip
    act(server, "mallory", BAIT)
    for role in ("Owner", "postgres"):
        act(server, role, "SELECT flake_check()")
    assert server.sql("SELECT who FROM mine.loot") == []
    act(server, "Owner", "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))",
        "INSERT INTO orders DEFAULT VALUES")  # fmt: skip
    with server.connect(user="Owner") as db:
        found = dict(db.execute("SELECT name, ok FROM flake_check() WHERE name LIKE 'greatest%'").fetchall())
    names = {"public.orders.id": True, "mine.policed.id": None, "mine.indexed.id": None}
    assert found == {f"greatest ID of {name}": ok for name, ok in names.items()}


@pytest.mark.parametrize("id", [-1, 2**53])
def test_the_check_names_an_id_of_another_layout(server, id):
    managed.install(server, user="Owner")
    act(server, "Owner", "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT flake_next('si'))", f"INSERT INTO t VALUES ({id})")
    with server.connect(user="Owner") as db:
        found = db.execute("SELECT ok, detail FROM flake_check() WHERE name = 'greatest ID of public.t.id'").fetchone()
    assert found == (False, f'ID {id} is not possible in layout "si".')


def test_leaving_calls_nothing_of_the_owner_and_roles_continue_to_seal(server):
    managed.install(server, user="Owner")
    act(
        server, "Owner", "SELECT flake_create_key('usr', 'twitter')",
        'GRANT EXECUTE ON FUNCTION flake_seal(bigint, text) TO "App"',
        """CREATE OR REPLACE FUNCTION flake.names() RETURNS text[] LANGUAGE plpgsql AS $$
           BEGIN
               IF current_setting('is_superuser') = 'on' THEN ALTER ROLE "Owner" SUPERUSER; END IF;
               RETURN '{twitter}';
           END $$""",
    )  # fmt: skip
    with server.connect(user="App") as db:
        sealed = db.execute("SELECT flake_seal(42, 'usr')").fetchone()
        server.sql("CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension")
        server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres", "-f", managed.LEAVING)
        assert db.execute("SELECT flake_seal(42, 'usr')").fetchone() == sealed
    assert server.value("SELECT NOT rolsuper FROM pg_roles WHERE rolname = 'Owner'")


@pytest.mark.parametrize("added", [
    "CREATE INDEX ON flake.key ((runs(1)))", "CREATE INDEX ON flake.key (name) WHERE runs(1)",
    "ALTER TABLE flake.key ADD CHECK (runs(1))", "CREATE STATISTICS s ON runs(1), name FROM flake.key",
    "ALTER TABLE flake.key RENAME TO old; CREATE VIEW flake.key AS SELECT * FROM flake.old WHERE runs(1)",
    "CREATE TYPE of_owner AS (of text); ALTER TABLE flake.key ALTER layout TYPE of_owner USING ROW(layout)::of_owner",
    "ALTER TABLE flake.key ADD ran boolean GENERATED ALWAYS AS (runs(1)) STORED",
])  # fmt: skip
def test_leaving_reads_no_secrets_where_that_runs_functions(server, added):
    managed.install(server, user="Owner")
    act(server, "Owner", "CREATE FUNCTION runs(integer) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true'", added)
    server.sql("CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is not the table"):
        server.sql(managed.LEAVING.read_text())


def test_secrets_stay_where_they_are_when_pgcrypto_is_dropped(server):
    """Its owner cannot put another function in the place of the one that enciphers."""
    server.sql("DROP EXTENSION pgcrypto; GRANT CREATE ON DATABASE postgres TO mallory")
    act(server, "mallory", "CREATE EXTENSION pgcrypto SCHEMA mine")
    managed.install(server, user="Owner")
    act(server, "Owner", "SELECT flake_create_key('usr', 'twitter')")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        act(server, "mallory", "DROP EXTENSION pgcrypto")
    act(
        server, "mallory", "DROP EXTENSION pgcrypto CASCADE",
        """CREATE FUNCTION mine.encrypt(bytea, secret bytea, text) RETURNS bytea LANGUAGE sql AS $$
           INSERT INTO mine.loot VALUES (secret::text) RETURNING '\\x00000000000080008000000000000000'::bytea $$""",
    )  # fmt: skip
    with pytest.raises(psycopg.errors.UndefinedFunction):
        act(server, "Owner", "SELECT flake_seal(42, 'usr')")
    assert server.sql("SELECT who FROM mine.loot") == []


def test_default_privileges_give_no_right_on_what_the_edition_keeps(server):
    kinds = ("TABLES", "SEQUENCES")
    act(server, "Owner", *(f'ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO "App", PUBLIC' for kind in kinds))
    managed.install(server, user="Owner")
    for statement in ("SELECT setval('flake.twitter', 1)", "SELECT FROM flake.key", "TRUNCATE flake.gate"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            act(server, "App", statement)
    with server.connect(user="Owner") as db:
        assert db.execute("SELECT ok FROM flake_check() WHERE name = 'rights'").fetchone() == (True,)


def test_default_privileges_let_no_role_put_functions_in_the_place_of_the_editions(server):
    act(server, "Owner", 'ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO "App"')
    managed.install(server, user="Owner")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        act(server, "App", "CREATE FUNCTION flake.raised(regclass, bigint, integer, integer, integer) RETURNS bigint "
            "LANGUAGE sql AS 'SELECT 1::bigint'")  # fmt: skip
    act(server, "App", "SELECT flake_next('twitter')")
    check = "SELECT ok, detail FROM flake_check() WHERE name = 'rights'"
    with server.connect(user="Owner") as db:
        assert db.execute(check).fetchone()[0] is True
        db.execute('GRANT CREATE ON SCHEMA flake TO "App"')
        assert db.execute(check).fetchone() == (False, "Roles other than the owner have privileges: App on schema flake.")


def test_default_privileges_neither_let_roles_seal_nor_keep_them_from_making_ids(server):
    act(
        server, "Owner", "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
        "ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC",
        'ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO "App"',
        'ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO "App"',
    )  # fmt: skip
    managed.install(server, user="Owner")
    act(server, "Owner", "SELECT flake_create_key('usr', 'twitter')")
    act(server, "mallory", "SELECT (flake_decode(flake_next('twitter'))).worker", "SELECT FROM flake_layouts")
    for role in ("App", "mallory"):
        for call in ("flake_seal(1, 'usr')", "flake_seal_uuid(1, 'usr')", "flake_unseal('x', 'usr')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                act(server, role, f"SELECT {call}")
