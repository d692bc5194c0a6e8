"""managed/flake.sql runs nothing that others have written: by the owner, or by a superuser."""

import re
import subprocess

import psycopg
import pytest

import managed
import pages
from conftest import ROOT

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
    CREATE FUNCTION public.format(text, integer) RETURNS text LANGUAGE sql AS $$
        SELECT public.steal(); SELECT 'stolen' $$;
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


# Functions and operators of these names for the types that arguments in the files have, so that each call has one that fits.
OVERLOADS = """
    DO $$
    DECLARE
        types text[] := '{text,name,oid,regclass,bigint,integer,numeric,bytea}';
        call record;
    BEGIN
        FOR call IN
            SELECT f.proname AS name, concat_ws(', ', a, b, c) AS types, max(f.prorettype::regtype::text) AS result
            FROM pg_proc f, unnest(types) a, unnest(array_append(types, NULL)) b, unnest(array_append(types[:5], NULL)) c
            WHERE f.pronamespace = 'pg_catalog'::regnamespace AND f.proname = ANY ('{functions}') AND f.prokind = 'f'
                AND f.pronargs = num_nonnulls(a, b, c) AND (b IS NOT NULL OR c IS NULL)
                AND f.prorettype NOT IN (SELECT oid FROM pg_type WHERE typtype = 'p')
            GROUP BY f.proname, a, b, c
        LOOP
            EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE sql RETURN NULL::%3$s',
                call.name, call.types, call.result);
        END LOOP;
        FOR call IN SELECT a, b FROM unnest(types) a, unnest(types) b LOOP
            EXECUTE format('CREATE FUNCTION public.planted(%s, %s) RETURNS boolean LANGUAGE sql RETURN true', call.a, call.b);
        END LOOP;
        FOR call IN SELECT o, a, b FROM unnest('{operators}'::text[]) o, unnest(types) a, unnest(types) b LOOP
            EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.planted)',
                call.o, call.a, call.b);
        END LOOP;
    END $$"""
# Objects of the edition that depend on mallory's.
BOUND = """
    SELECT pg_describe_object(d.classid, d.objid, 0), pg_describe_object(d.refclassid, d.refobjid, 0) FROM pg_depend d
    WHERE (d.refclassid, d.refobjid) IN (
        SELECT 'pg_proc'::regclass, oid FROM pg_proc WHERE proowner = 'mallory'::regrole
        UNION ALL SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprowner = 'mallory'::regrole)
    AND (d.classid, d.objid) NOT IN (SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprowner = 'mallory'::regrole)"""


@pytest.fixture
def server(own_servers):
    """The owner of the database is not a superuser, and mallory may create objects where the edition is installed.
    Names of roles need quotes."""
    server = own_servers(extension=False)
    managed.create_pgcrypto(server)
    server.sql('CREATE ROLE "Owner" LOGIN; CREATE ROLE "App" LOGIN; CREATE ROLE mallory LOGIN')
    server.sql('ALTER DATABASE postgres OWNER TO "Owner"; GRANT CREATE ON SCHEMA public TO "Owner", mallory')
    server.sql("CREATE SCHEMA mine AUTHORIZATION mallory; GRANT USAGE ON SCHEMA mine TO PUBLIC")
    server.sql("CREATE TABLE mine.loot (who text); GRANT ALL ON mine.loot TO PUBLIC; ALTER TABLE mine.loot OWNER TO mallory")
    return server


def act(server, role, *statements):
    with server.connect(user=role) as db:
        for statement in statements:
            db.execute(statement)


@pytest.mark.matrix
def test_nothing_in_the_schema_of_its_functions_is_called(server):
    act(server, "mallory", PLANTED)
    managed.install(server, user="Owner")
    assert server.value("SELECT flake_timestamp(flake_next('twitter')) <= clock_timestamp()")
    assert server.value("SELECT count(*) FROM flake_layouts WHERE ids_per_second > 0") > 10
    error = pytest.raises(psycopg.errors.InvalidParameterValue, server.sql, "SELECT flake_batch('twitter', -1)").value
    assert error.diag.message_detail == "The count is -1; the valid range is 0 to 2147483647."
    assert server.sql("SELECT who FROM mine.loot") == []
    assert server.value("SELECT NOT rolsuper FROM pg_roles WHERE rolname = 'mallory'")


def test_the_owner_of_the_edition_runs_both_files(server):
    """Otherwise the one could replace functions that run as the other."""
    managed.install(server, user="Owner")
    sequences = ROOT / "managed/sequences.sql"
    error = pytest.raises(subprocess.CalledProcessError, server.run, "psql", "-X", "-v", "ON_ERROR_STOP=1", "-f", sequences).value
    assert 'schema "flake" belongs to another role' in error.stderr
    assert server.value("SELECT to_regnamespace('flake_sequences') IS NULL")


@pytest.mark.matrix
@pytest.mark.parametrize("named", ["convert_to =", "all that the files call"])
def test_no_body_is_bound_to_what_others_have_made_for_its_types(server, named):
    """A body of standard SQL keeps the function that it found when it was created, and one of them runs as the owner."""
    sequences = ROOT / "managed/sequences.sql"
    code = "".join(re.sub(r"--.*|'[^']*'", "", file.read_text()) for file in (managed.FILE, sequences))
    functions = set(re.findall(r"(?<![\w.])([a-z]\w*)\(", code))
    operators = set(re.findall(r"(?<= )([-+*/%&|<>=~!]+)(?= )", code)) - {"=>"}
    if named.startswith("convert_to"):
        functions, operators = functions & {"convert_to"}, operators & {"="}
    act(
        server, "mallory",
        OVERLOADS.replace("{functions}", f"{{{','.join(functions)}}}").replace("{operators}", f"{{{','.join(operators)}}}"),
    )  # fmt: skip
    planted = "to_regprocedure('convert_to(text, text)') IS NOT NULL AND to_regoperator('=(oid, regclass)') IS NOT NULL"
    assert server.value(f"SELECT {planted}")
    managed.install(server, user="Owner")
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "Owner", "-f", sequences)
    with server.connect() as db:
        db.execute("SET search_path = pg_catalog")
        assert db.execute(BOUND).fetchall() == []
    act(server, "Owner", "CREATE TABLE orders (id bigserial PRIMARY KEY)", "CALL flake_adopt('orders', 'twitter')")
    assert server.value("INSERT INTO orders DEFAULT VALUES RETURNING id") > 2**53


def test_the_check_calls_nothing_of_the_owners_of_tables(server):
    managed.install(server, user="Owner")
    act(
        server, "mallory",
        "CREATE FUNCTION public.steal() RETURNS void LANGUAGE sql AS 'INSERT INTO mine.loot VALUES (current_user)'",
    )  # fmt: skip
    act(server, "mallory", BAIT)
    # Owners of a table and of its partitions can differ: the superuser does this, or a role that both are members of.
    act(server, "Owner", "CREATE TABLE parted (id bigint PRIMARY KEY DEFAULT flake_next('twitter')) PARTITION BY RANGE (id)",
        "CREATE TABLE part PARTITION OF parted DEFAULT", "INSERT INTO parted DEFAULT VALUES")
    by_function = "PARTITION BY LIST ((id > 0 AND mine.reads(1)))"
    act(server, "mallory", f"CREATE TABLE mine.above (id bigint DEFAULT flake_next('twitter')) {by_function}",
        "CREATE TABLE leaf PARTITION OF mine.above DEFAULT", "CREATE INDEX ON leaf (id)", "INSERT INTO mine.above DEFAULT VALUES")
    server.sql('ALTER TABLE part OWNER TO mallory; ALTER TABLE leaf OWNER TO "Owner"')
    server.sql("ALTER DATABASE postgres SET constraint_exclusion = on")
    act(server, "mallory", "CREATE INDEX ON part (mine.reads(1))", "TRUNCATE mine.loot")
    for role in ("Owner", "postgres"):
        act(server, role, "SELECT flake_check()")
    assert server.sql("SELECT who FROM mine.loot") == []
    act(server, "Owner", "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))",
        "INSERT INTO orders DEFAULT VALUES")  # fmt: skip
    with server.connect(user="Owner") as db:
        found = dict(db.execute("SELECT name, ok FROM flake_check() WHERE name LIKE 'greatest%'").fetchall())
    names = {"public.orders.id": True, "mine.policed.id": None, "mine.indexed.id": None, "public.parted.id": None,
             "public.part.id": None, "mine.above.id": None, "public.leaf.id": True}  # fmt: skip
    assert found == {f"greatest ID of {name}": ok for name, ok in names.items()}


def test_the_check_reads_no_table_in_a_schema_of_another_role(server):
    """The owner of a schema can drop any table there, and make another one of the same name while the check runs."""
    managed.install(server, user="Owner")
    server.sql("CREATE SCHEMA ours")
    for schema in ("public", "mine", "ours"):
        server.sql(f"""CREATE TABLE {schema}.whole (id bigint PRIMARY KEY DEFAULT flake_next('twitter')) PARTITION BY RANGE (id);
            CREATE TABLE {schema}.part_{schema} PARTITION OF {schema}.whole DEFAULT; INSERT INTO {schema}.whole DEFAULT VALUES""")
    server.sql("ALTER TABLE ours.part_ours SET SCHEMA mine")
    found = dict(server.sql("SELECT name, ok FROM flake_check() WHERE name LIKE 'greatest%'"))
    names = ["public.whole", "public.part_public", "mine.whole", "mine.part_mine", "mine.part_ours", "ours.whole"]
    assert found == {f"greatest ID of {name}.id": None for name in names}
    # The check reads the tables of a superuser in a schema of another superuser.
    server.sql("CREATE ROLE other SUPERUSER; ALTER SCHEMA ours OWNER TO other; ALTER TABLE mine.part_ours SET SCHEMA ours")
    found = server.sql("SELECT name, ok FROM flake_check() WHERE name LIKE 'greatest%' AND ok")
    assert sorted(found) == [("greatest ID of ours.part_ours.id", True), ("greatest ID of ours.whole.id", True)]
    # In a schema of the caller's own, a table of another role is not read.
    server.sql("""CREATE TABLE ours.hers (id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
        ALTER TABLE ours.hers OWNER TO mallory; INSERT INTO ours.hers DEFAULT VALUES""")
    assert server.sql("SELECT ok FROM flake_check() WHERE name = 'greatest ID of ours.hers.id'") == [(None,)]


@pytest.mark.parametrize("id", [-1, 2**53])
def test_the_check_names_an_id_of_another_layout(server, id):
    managed.install(server, user="Owner")
    act(server, "Owner", "CREATE TABLE t (id bigint PRIMARY KEY DEFAULT flake_next('si'))", f"INSERT INTO t VALUES ({id})")
    with server.connect(user="Owner") as db:
        found = db.execute("SELECT ok, detail FROM flake_check() WHERE name = 'greatest ID of public.t.id'").fetchone()
    assert found == (False, f'ID {id} is not possible in layout "si".')


def test_settings_of_a_database_do_not_matter(server):
    server.sql("ALTER DATABASE postgres SET quote_all_identifiers = on; ALTER DATABASE postgres SET plpgsql.extra_errors = 'all'")
    managed.install(server, user="Owner")
    with server.connect(user="Owner") as db:
        db.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter')); INSERT INTO orders DEFAULT VALUES")
        assert ('greatest ID of "public"."orders"."id"', True) in db.execute("SELECT name, ok FROM flake_check()").fetchall()
        assert db.execute("SELECT (flake_decode(flake_next('twitter'))).layout").fetchone() == ("twitter",)
        assert len(db.execute("SELECT FROM flake_batch('twitter', 3)").fetchall()) == 3


def test_no_name_in_a_body_is_looked_up_in_the_path_of_a_caller(server):
    """Bodies of SQL, views and defaults name what they call when they are written, bodies of PL/pgSQL when they run."""
    managed.install(server, user="Owner")
    assert sorted(server.sql("""
        WITH RECURSIVE called (oid) AS (
            SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND proname LIKE 'flake%'
            UNION SELECT refobjid FROM pg_depend d JOIN pg_rewrite r ON (d.classid, d.objid) = ('pg_rewrite'::regclass, r.oid)
            WHERE r.ev_class = 'flake_layouts'::regclass AND d.refclassid = 'pg_proc'::regclass
            UNION SELECT d.refobjid FROM called JOIN pg_proc p USING (oid)
                JOIN pg_depend d ON (d.classid, d.objid, d.refclassid) = ('pg_proc'::regclass, p.oid, 'pg_proc'::regclass)
            WHERE p.proconfig IS NULL)
        SELECT p.oid::regprocedure::text FROM called JOIN pg_proc p USING (oid) JOIN pg_language l ON l.oid = p.prolang
        WHERE l.lanname = 'plpgsql' AND COALESCE(array_to_string(p.proconfig, ','), '') NOT LIKE '%search_path%'
    """)) == [("flake.known(text)",), ("flake_next(text)",)]  # fmt: skip


def test_the_functions_that_make_ids_name_the_schema_of_all_that_they_call(server):
    """To set the search_path would take longer than to make an ID."""
    managed.install(server, user="Owner")
    bodies = server.sql("SELECT proname, prosrc FROM pg_proc WHERE proname ~ '^next_' OR proname = 'flake_next'")
    assert len(bodies) == 17
    for name, body in bodies:
        code = re.sub(r"OPERATOR\(pg_catalog\.[^)\w]+\)|'[^']*'|:=|(?<= )-(?=\d)", ",", body)
        assert re.findall(r"[-+*/%&|<>=~!]+", code) == [], name
        assert set(re.findall(r"(?<![\w.])([a-z]\w*) *\(", code)) <= {"bit"}, name
        assert set(re.findall(r"::(?!pg_catalog\.)(\w+)", code)) <= {"bigint", "bit"}, name


def test_a_client_that_reads_nothing_holds_no_lock(server):
    """The server would wait for it at a message that it sends while the lock is held."""
    managed.install(server, user="Owner")
    server.sql('GRANT "Owner" TO "App"')
    sent = []
    with server.connect(user="App") as db:
        db.add_notice_handler(lambda diag: sent.append(diag.message_primary))
        db.execute("SET client_min_messages = debug5")
        db.execute("DO $$ BEGIN BEGIN RAISE SQLSTATE 'XXXXX'; EXCEPTION WHEN OTHERS THEN END; END $$")
        assert [text for text in sent if text.startswith("AbortSubTransaction")]
        sent.clear()
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)
        assert sent and not [text for text in sent if "SubTransaction" in text]
        sent.clear()
        db.execute('SET ROLE "Owner"; SELECT flake_start_above(1, \'twitter\')')
        assert sent and not [text for text in sent if "SubTransaction" in text]


@pytest.mark.matrix
@pytest.mark.parametrize("given", ["postgres", '"App"'])
def test_a_dump_without_privileges_lets_nobody_open(server, tmp_path, given):
    managed.install(server, user="Owner")
    act(server, "Owner", "SELECT flake_create_key('usr', 'twitter')")
    with server.connect(user="Owner") as db:
        sealed, = db.execute("SELECT flake_seal(42, 'usr')").fetchone()
    server.sql("CREATE DATABASE copy")
    # They are given to new functions, which have a list of privileges then.
    act(server, "postgres", 'ALTER DATABASE copy OWNER TO "Owner"')
    server.run("psql", "-X", "-q", "-d", "copy", "-c", f"ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO {given}")
    server.run("pg_dump", "--no-owner", "--no-privileges", "-f", tmp_path / "dump", "postgres")
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "copy", "-f", tmp_path / "dump")
    opens = f"SELECT flake_unseal('{sealed}', 'usr')"
    for role in ("mallory", "postgres"):
        with server.connect(dbname="copy", user=role) as db, pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as error:
            db.execute(opens)
    reads, layouts = "SELECT (flake_decode(42)).layout", "SELECT count(*) > 20 FROM flake_layouts"
    for query in (reads, layouts):
        with server.connect(dbname="copy", user="mallory") as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(query)
    with server.connect(dbname="copy") as db:
        assert "REVOKE EXECUTE ON FUNCTION flake_seal(bigint, text)" in error.value.diag.message_hint
        db.execute(next(code for code in pages.recipe(managed.PAGE, "Dumps, copies, upgrades") if "REVOKE" in code))
        assert db.execute(opens).fetchone() == (42,)
    with server.connect(dbname="copy", user="mallory") as db:
        assert db.execute(reads).fetchone() == ("twitter",)
        assert db.execute(layouts).fetchone() == (True,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(opens)


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


def test_no_function_takes_the_place_of_pgcryptos_while_a_key_is_created(server):
    """A transaction that keeps its first snapshot sees the extension in its old schema, and the functions that are there now."""
    server.sql("DROP EXTENSION pgcrypto; GRANT CREATE ON DATABASE postgres TO mallory")
    act(server, "mallory", "CREATE EXTENSION pgcrypto SCHEMA mine")
    managed.install(server, user="Owner")
    with server.connect(user="Owner") as db:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        act(
            server, "mallory", "DROP EXTENSION pgcrypto",
            *(f"CREATE FUNCTION mine.{name}(bytea, secret bytea, text) RETURNS bytea LANGUAGE sql RETURN $1"
              for name in ("encrypt", "decrypt")),
        )  # fmt: skip
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='extension "pgcrypto" is being replaced'):
            db.execute("SELECT flake_create_key('usr', 'twitter')")


def test_default_privileges_give_no_right_on_what_the_edition_keeps(server):
    """No role can put functions in the place of the edition's, either. The check names what was granted afterwards."""
    kinds = ("TABLES", "SEQUENCES", "SCHEMAS")
    act(server, "Owner", *(f'ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO "App", PUBLIC' for kind in kinds))
    managed.install(server, user="Owner")
    function = "flake.raised(regclass, bigint, integer, integer) RETURNS bigint LANGUAGE sql RETURN 1"
    for statement in (
        "SELECT setval('flake.twitter', 1)", "SELECT FROM flake.key", "TRUNCATE flake.gate", f"CREATE FUNCTION {function}",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            act(server, "App", statement)
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
