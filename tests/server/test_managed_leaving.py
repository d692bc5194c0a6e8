"""The way from managed/flake.sql to the extension: a dump without the edition fits a database that has the extension."""

import os
import re
import subprocess

import psycopg
import pytest

import managed
import pages
from conftest import bindir

# Names and kinds that lines of the edition have in the list of a dump, and privileges of others.
AWKWARD = """
    CREATE SCHEMA flakes;
    CREATE SCHEMA "flake x";
    CREATE FUNCTION "flake x".f() RETURNS integer LANGUAGE sql RETURN 1;
    CREATE SEQUENCE "flake x".s;
    CREATE FUNCTION flakes.flake_next(text) RETURNS bigint LANGUAGE sql RETURN 1;
    COMMENT ON FUNCTION flakes.flake_next(text) IS 'a function';
    CREATE FUNCTION flake_next() RETURNS bigint LANGUAGE sql RETURN 1;
    CREATE FUNCTION flake_timestamp(numeric) RETURNS bigint LANGUAGE sql RETURN 1;
    COMMENT ON FUNCTION flake_timestamp(numeric) IS 'another one';
    REVOKE EXECUTE ON FUNCTION flake_timestamp(numeric) FROM PUBLIC;
    CREATE AGGREGATE flake_last(bigint) (SFUNC = int8larger, STYPE = bigint);
    REVOKE EXECUTE ON FUNCTION flake_last(bigint) FROM PUBLIC;
    CREATE VIEW flakes.flake_layouts AS SELECT 1 AS n;
    COMMENT ON COLUMN flakes.flake_layouts.n IS 'a column';
    CREATE TYPE "flake x".flake_parts AS (n integer);
    CREATE TYPE "flake_parts x" AS (n integer);
    CREATE VIEW "flake_layouts old" AS SELECT 1 AS n;
    CREATE SCHEMA "flake key";
    CREATE TABLE "flake key".t (n integer PRIMARY KEY);
    CREATE TYPE flakes.flake AS ENUM ('a');
    COMMENT ON TYPE flakes.flake IS 'a type';
    REVOKE USAGE ON TYPE flakes.flake FROM PUBLIC;
    CREATE FUNCTION flake_mine() RETURNS integer LANGUAGE sql RETURN 1;
    CREATE FUNCTION "größe"() RETURNS integer LANGUAGE sql RETURN 1;
    CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE SEQUENCE flakes.flake_parts;
    COMMENT ON SEQUENCE flakes.flake_parts IS 'a sequence';
    GRANT USAGE ON SEQUENCE flakes.flake_parts TO app;
    CREATE TABLE flake (id integer, key serial CONSTRAINT key UNIQUE);
    CREATE TABLE flakes.gate (n integer);
    CREATE TABLE flakes.key (n integer);
    CREATE TABLE flake_layouts_of_mine (n integer);
    CREATE TRIGGER key BEFORE INSERT ON flake FOR EACH ROW EXECUTE FUNCTION changed();
    CREATE RULE key AS ON DELETE TO flake DO INSTEAD NOTHING;
    CREATE POLICY gate ON flake USING (true);
    CREATE PUBLICATION flake FOR TABLE flakes.gate;
    CREATE MATERIALIZED VIEW flake_mv AS SELECT 1 AS n WITH NO DATA;
    ALTER DEFAULT PRIVILEGES IN SCHEMA flakes GRANT SELECT ON TABLES TO app;
    INSERT INTO flakes.key VALUES (1)"""
# All that is not the edition's or the extension's.
OBJECTS = """
    SELECT pg_describe_object(classid, objid, 0) AS object, obj_description(objid, classid::regclass::name) AS comment, acl::text
    FROM (SELECT 'pg_class'::regclass AS classid, c.oid AS objid, relacl AS acl FROM pg_class c WHERE c.oid >= 16384
          UNION SELECT 'pg_proc'::regclass, p.oid, proacl FROM pg_proc p WHERE p.oid >= 16384
          UNION SELECT 'pg_type'::regclass, t.oid, typacl FROM pg_type t WHERE t.oid >= 16384
          UNION SELECT 'pg_constraint'::regclass, o.oid, NULL FROM pg_constraint o WHERE o.oid >= 16384
          UNION SELECT 'pg_attrdef'::regclass, d.oid, NULL FROM pg_attrdef d WHERE d.oid >= 16384
          UNION SELECT 'pg_trigger'::regclass, t.oid, NULL FROM pg_trigger t WHERE NOT tgisinternal AND t.oid >= 16384
          UNION SELECT 'pg_rewrite'::regclass, r.oid, NULL FROM pg_rewrite r WHERE r.oid >= 16384
          UNION SELECT 'pg_policy'::regclass, p.oid, NULL FROM pg_policy p
          UNION SELECT 'pg_publication_rel'::regclass, p.oid, NULL FROM pg_publication_rel p
          UNION SELECT 'pg_default_acl'::regclass, d.oid, defaclacl FROM pg_default_acl d) o
    WHERE NOT EXISTS (SELECT FROM pg_depend d WHERE d.deptype IN ('e', 'i') AND (d.classid, d.objid) = (o.classid, o.objid)
                      AND d.refclassid IN ('pg_extension'::regclass, 'pg_class'::regclass, 'pg_type'::regclass))
    ORDER BY 1"""
USED = """
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'),
                         at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED,
                         CHECK (flake_timestamp(id) > '2020-01-01Z'));
    CREATE INDEX by_time ON orders (flake_timestamp(id, 'leaf'));
    CREATE TABLE parted (id bigint DEFAULT flake_next('si')) PARTITION BY RANGE (flake_timestamp(id, 'si'));
    CREATE TABLE parted_all PARTITION OF parted FOR VALUES FROM ('2020-01-01Z') TO ('2055-01-01Z');
    CREATE VIEW shown AS SELECT id, (flake_decode(id)).worker, flake_to_text(id) AS text FROM orders;
    CREATE DOMAIN key AS bigint DEFAULT flake_next('base64id');
    CREATE TABLE others (id key PRIMARY KEY);
    GRANT INSERT, SELECT ON orders TO app;
    GRANT EXECUTE ON FUNCTION flake_seal(bigint, text) TO app;
    GRANT SELECT ON flake_layouts TO app;
    DO $$
    DECLARE
        one regprocedure;
    BEGIN
        FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = 'flake'::regnamespace OR proname ~ '^flake_' LOOP
            EXECUTE format('COMMENT ON FUNCTION %1$s IS ''its comment''; GRANT EXECUTE ON FUNCTION %1$s TO app', one);
        END LOOP;
    END $$;
    COMMENT ON SCHEMA flake IS 'its schema';
    COMMENT ON COLUMN flake_layouts.name IS 'its column';
    GRANT SELECT (name) ON flake_layouts TO app;
    COMMENT ON TYPE flake_parts IS 'its type';
    COMMENT ON COLUMN flake_parts.worker IS 'its attribute';
    COMMENT ON TABLE flake.key IS 'its table';
    COMMENT ON CONSTRAINT key_pkey ON flake.key IS 'its key';
    GRANT SELECT (name) ON flake.key TO app;
    INSERT INTO orders SELECT FROM generate_series(1, 100);
    INSERT INTO parted SELECT FROM generate_series(1, 100);
    INSERT INTO others SELECT FROM generate_series(1, 100)"""
TABLES = ("orders", "parted", "others")
OWNER = {"user": "shop_owner"}


@pytest.fixture
def server(own_servers):
    """The database of the edition and the one that takes its place can be on the same server."""
    server = own_servers("flake.node_id=1", "flake.node_count=4", extension=False)
    server.sql("CREATE ROLE shop_owner LOGIN; CREATE ROLE app LOGIN; ALTER DATABASE postgres OWNER TO shop_owner")
    managed.create_pgcrypto(server)
    managed.install(server, node=(1, 4), user="shop_owner")
    return server


def steps(server, directory, schema="public", changed=lambda command: command):
    """The commands of the page, each as a function of its role."""
    commands = [changed(command) for command in pages.recipe(managed.PAGE, "To the extension", "shell")]
    (directory / "managed").symlink_to(managed.FILE.parent)

    def run(command, role):
        environment = server.client_environment | {
            "PATH": f"{bindir()}:{os.environ['PATH']}", "PGUSER": role, "OLD": f"host={server.dir} dbname=postgres",
            "SCHEMA": schema,
        }  # fmt: skip
        shell = ["bash", "-euo", "pipefail", "-c", command]
        return subprocess.run(shell, cwd=directory, env=environment, text=True, capture_output=True, check=False)

    roles = ["shop_owner", "postgres", "shop_owner"]
    return [lambda command=command, role=role: run(command, role) for command, role in zip(commands, roles, strict=True)]


def leave(server, directory, schema="public"):
    for step in steps(server, directory, schema):
        done = step()
        assert done.returncode == 0, done.stderr


@pytest.mark.matrix
def test_everything_that_uses_the_functions_comes_along(server, tmp_path):
    with server.connect(**OWNER) as old:
        old.execute(USED)
        old.execute("SELECT flake_create_key('usr', 'twitter')")
        sealed, = old.execute("SELECT flake_seal(42, 'usr')").fetchone()
        shown = old.execute("SELECT * FROM shown ORDER BY id").fetchall()
        rows = {table: old.execute(f"SELECT id FROM {table} ORDER BY id").fetchall() for table in TABLES}
    leave(server, tmp_path)
    with server.connect(dbname="shop", **OWNER) as db:
        assert db.execute("SELECT * FROM shown ORDER BY id").fetchall() == shown
        for table in TABLES:
            assert db.execute(f"SELECT id FROM {table} ORDER BY id").fetchall() == rows[table]
            db.execute(f"INSERT INTO {table} SELECT FROM generate_series(1, 100)")
            count = f"SELECT count(*), count(*) FILTER (WHERE id > {rows[table][-1][0]}) FROM {table}"
            assert db.execute(count).fetchone() == (200, 100)
        assert db.execute("SELECT count(*) FROM orders WHERE at = flake_timestamp(id)").fetchone() == (200,)
        assert db.execute("SELECT flake_unseal(%s, 'usr')", [sealed]).fetchone() == (42,)
        assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'flake'").fetchone() == (0,)
        foreign = "SELECT count(*) FROM pg_proc WHERE proname ~ '^flake_' AND proowner = 'shop_owner'::regrole"
        assert db.execute(foreign).fetchone() == (0,)
        assert db.execute("SELECT * FROM flake_check() WHERE NOT ok AND name <> 'rates'").fetchall() == []
        db.execute("GRANT USAGE ON FOREIGN SERVER usr TO app; SET enable_seqscan = off; SET enable_bitmapscan = off")
        plan = db.execute("EXPLAIN SELECT id FROM orders WHERE flake_timestamp(id) > now() - interval '1 hour'").fetchall()
        assert "orders_pkey" in str(plan)
    with server.connect(dbname="shop", user="app") as app:
        app.execute("INSERT INTO orders VALUES (DEFAULT)")
        assert app.execute("SELECT flake_seal(42, 'usr')").fetchone() == (sealed,)


def test_the_functions_can_be_in_another_schema(own_servers, tmp_path):
    server = own_servers(extension=False)
    server.sql("CREATE ROLE shop_owner LOGIN; ALTER DATABASE postgres OWNER TO shop_owner")
    managed.create_pgcrypto(server)
    server.sql("CREATE SCHEMA ids AUTHORIZATION shop_owner")
    managed.install(server, user="shop_owner", schema="ids")
    with server.connect(**OWNER) as old:
        old.execute("""
            CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT ids.flake_next('twitter'));
            CREATE FUNCTION flake_next(text) RETURNS bigint LANGUAGE sql RETURN 1;
            CREATE FUNCTION ids.mine() RETURNS integer LANGUAGE sql RETURN 1;
            SET search_path = ids; SELECT flake_create_key('usr', 'twitter')""")
        sealed, = old.execute("SELECT flake_seal(42, 'usr')").fetchone()
    leave(server, tmp_path, "ids")
    with server.connect(dbname="shop", **OWNER) as db:
        db.execute("INSERT INTO orders VALUES (DEFAULT); CREATE TABLE ids.own ()")
        called = db.execute("SELECT ids.flake_unseal(%s, 'usr'), public.flake_next('twitter'), ids.mine()", [sealed])
        assert called.fetchone() == (42, 1, 1)


def test_objects_of_member_roles_are_restored_in_any_schema(server, tmp_path):
    """PostgreSQL gives an object to a role only if that role may create objects in the schema."""
    server.sql("CREATE ROLE clerk LOGIN; GRANT clerk TO shop_owner")
    with server.connect(**OWNER) as old:
        old.execute("CREATE SCHEMA sales; GRANT ALL ON SCHEMA sales TO clerk; GRANT CREATE ON SCHEMA public TO clerk")
        old.execute("SET ROLE clerk")
        for name in ("sales.t", "public.t"):
            old.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    leave(server, tmp_path)
    with server.connect(dbname="shop", user="clerk") as db:
        db.execute("INSERT INTO sales.t VALUES (DEFAULT); INSERT INTO public.t VALUES (DEFAULT)")


def test_rows_that_need_a_key_are_restored(server, tmp_path):
    with server.connect(**OWNER) as old:
        old.execute("SELECT flake_create_key('usr', 'twitter')")
        old.execute("""
            CREATE TABLE orders (id bigint DEFAULT flake_next('twitter'), public text, CHECK (flake_unseal(public, 'usr') = id));
            INSERT INTO orders SELECT id, flake_seal(id, 'usr') FROM flake_batch('twitter', 3) id;
            CREATE MATERIALIZED VIEW sealed AS SELECT flake_seal(id, 'usr') FROM orders""")
    leave(server, tmp_path)
    assert server.of_client("shop_owner", "shop", "").value("SELECT count(*) FROM sealed") == 3


@pytest.mark.matrix
@pytest.mark.parametrize("schema", ["information_schema", "pg_catalog", 'x"; ALTER ROLE shop_owner SUPERUSER; --'])
def test_a_superuser_gives_no_schema_away(server, tmp_path, schema):
    _, second, _ = steps(server, tmp_path, schema)
    (tmp_path / "last_id").write_text("1")
    done = second()
    owner = server.value("SELECT datdba::regrole::text FROM pg_database WHERE datname = 'shop'")
    assert (done.returncode != 0) == (owner == "postgres") == (schema[0] != "x"), done.stderr
    assert server.sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'shop_owner'") == [(False,)]


@pytest.mark.matrix
def test_no_function_of_others_gets_the_secrets(server, tmp_path):
    server.sql("GRANT CREATE ON SCHEMA public TO app")
    with server.connect(user="app") as other:
        other.execute("CREATE FUNCTION format(text, text, text, text, bytea) RETURNS text LANGUAGE sql RETURN 'SELECT stolen'")
    with server.connect(**OWNER) as old:
        old.execute("SELECT flake_create_key('usr', 'twitter')")
    *_, restore = [step() for step in steps(server, tmp_path)]
    assert re.search('must be .* "app"', restore.stderr), restore.stderr
    assert server.of_client("shop_owner", "shop", "").value("SELECT count(*) FROM flake_keys") == 1


def test_no_other_user_of_the_machine_can_read_the_secrets(server, tmp_path):
    for name in "keys.sql", "shop.dump":
        (tmp_path / name).touch(0o666)
    with server.connect(**OWNER) as old:
        old.execute("SELECT flake_create_key('usr', 'twitter'); CREATE TABLE flake.notes (t text)")
    removes = "rm -f keys.sql shop.dump' EXIT"
    done = [step() for step in steps(server, tmp_path, changed=lambda command: command.replace(
        removes, f"stat -c %a keys.sql shop.dump > modes; {removes}"))]  # fmt: skip
    assert done[-1].returncode
    assert (tmp_path / "modes").read_text().split() == ["600", "600"]
    # The error leaves none of them.
    assert not any((tmp_path / name).exists() for name in ("keys.sql", "shop.dump"))


def test_all_other_objects_come_along(server, tmp_path):
    """Also those whose lines in the list of the dump are nearly the edition's."""
    with server.connect(**OWNER) as old:
        before = set(old.execute(OBJECTS).fetchall())
        old.execute(AWKWARD)
        own = set(old.execute(OBJECTS).fetchall()) - before
        kinds = "constraint default function index materialized policy publication rule sequence table trigger type view"
        assert {name.split()[0] for name, *_ in own} == set(kinds.split())
    leave(server, tmp_path)
    with server.connect(dbname="shop") as db:
        assert own <= set(db.execute(OBJECTS).fetchall())
        assert db.execute("SELECT count(*) FROM flakes.key").fetchone() == (1,)


@pytest.mark.matrix
@pytest.mark.parametrize("layout, back", [("twitter", 0), ("si", 3), ("base64id", 0)])
def test_no_id_of_the_edition_is_made_again_where_the_clock_is_behind(own_servers, tmp_path, layout, back):
    """The new server has the number of the edition, and would make the same IDs. One layout can be ahead of others."""
    server = own_servers(extension=False, clock="+0")
    server.sql("CREATE ROLE shop_owner LOGIN; ALTER DATABASE postgres OWNER TO shop_owner")
    managed.install(server, user="shop_owner")
    with server.connect(**OWNER) as old:
        old.execute(f"CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('{layout}'))")
        old.execute("INSERT INTO orders SELECT FROM generate_series(1, 1000)")
        greatest, = old.execute("SELECT max(id) FROM orders").fetchone()
    server.set_clock(f"-{back}")
    first, *others = steps(server, tmp_path)
    assert first().returncode == 0
    server.set_clock(f"-{back + 1}")
    for step in others:
        done = step()
        assert done.returncode == 0, done.stderr
    assert server.of_client("shop_owner", "shop", "").value(f"SELECT flake_next('{layout}')") > greatest


@pytest.mark.matrix
@pytest.mark.parametrize("using", [
    "CREATE TABLE t (id bigint, at timestamptz GENERATED ALWAYS AS (flake.start_of(id, 'twitter')) STORED)",
    "CREATE TABLE t (d flake.division)", "CREATE TABLE t (id bigint DEFAULT nextval('flake.si'))",
    "CREATE TABLE flake.notes (t text)",
])  # fmt: skip
def test_nothing_is_left_out_silently(server, tmp_path, using):
    with server.connect(**OWNER) as old:
        old.execute(using)
    *begin, restore = steps(server, tmp_path)
    assert [step().returncode for step in begin] == [0, 0]
    done = restore()
    assert done.returncode and re.search('(schema|relation|type) "flake', done.stderr), done.stderr


def test_a_superuser_runs_nothing_of_the_owners(server, tmp_path):
    """The owner hands over a number, and the database is new."""
    _, second, _ = steps(server, tmp_path)
    (tmp_path / "last_id").write_text("1, 'twitter'); ALTER ROLE shop_owner SUPERUSER; --")
    done = second()
    assert done.returncode and "invalid input syntax for type bigint" in done.stderr
    assert server.sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'shop_owner'") == [(False,)]
    # A database that is there already may have anything.
    (tmp_path / "last_id").write_text("1")
    done = second()
    assert done.returncode and 'database "shop" already exists' in done.stderr
    assert server.sql("SELECT datdba::regrole::text FROM pg_database WHERE datname = 'shop'") == [("postgres",)]


def test_the_role_whose_tables_would_be_in_its_schema_cannot_install_it(own_servers):
    server = own_servers(extension=False)
    server.sql("CREATE ROLE flake LOGIN; ALTER DATABASE postgres OWNER TO flake")
    failed = pytest.raises(subprocess.CalledProcessError, managed.install, server, user="flake").value
    assert 'role "flake" cannot own this edition' in failed.stderr
    assert server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'flake'") == [(0,)]
    with pytest.raises(psycopg.errors.UndefinedFunction):
        server.sql("SELECT flake_next('twitter')")
