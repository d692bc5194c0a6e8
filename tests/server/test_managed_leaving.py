"""The way from managed/flake.sql to the extension: a dump without the edition fits a database that has the extension."""

import os
import re
import subprocess

import psycopg
import pytest

import managed
import pages
from conftest import bindir

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
    COMMENT ON FUNCTION flake_next(text) IS 'makes an ID';
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


def steps(server, directory):
    """The commands of the page, each as a function of its role."""
    commands = pages.recipe(managed.PAGE, "To the extension", "shell")

    def run(command, role):
        environment = server.client_environment | {
            "PATH": f"{bindir()}:{os.environ['PATH']}", "PGUSER": role, "OLD": f"host={server.dir} dbname=postgres",
        }  # fmt: skip
        shell = ["bash", "-euo", "pipefail", "-c", command]
        return subprocess.run(shell, cwd=directory, env=environment, text=True, capture_output=True, check=False)

    roles = ["shop_owner", "postgres", "shop_owner"]
    return [lambda command=command, role=role: run(command, role) for command, role in zip(commands, roles, strict=True)]


def leave(server, directory):
    for step in steps(server, directory):
        done = step()
        assert done.returncode == 0, done.stderr


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


def test_no_id_of_the_edition_is_made_again_where_the_clock_is_behind(own_servers, tmp_path):
    """The new server has the edition's number, and would make the same IDs."""
    server = own_servers(extension=False, clock="+0")
    server.sql("CREATE ROLE shop_owner LOGIN; ALTER DATABASE postgres OWNER TO shop_owner")
    managed.install(server, user="shop_owner")
    with server.connect(**OWNER) as old:
        old.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
        old.execute("INSERT INTO orders SELECT FROM generate_series(1, 1000)")
        greatest, = old.execute("SELECT max(id) FROM orders").fetchone()
    first, *others = steps(server, tmp_path)
    assert first().returncode == 0
    server.set_clock("-1")
    for step in others:
        done = step()
        assert done.returncode == 0, done.stderr
    assert server.of_client("shop_owner", "shop", "").value("SELECT flake_next('twitter')") > greatest


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
    first, second, _ = steps(server, tmp_path)
    server.sql("""CREATE OR REPLACE FUNCTION flake_next(layout text) RETURNS bigint LANGUAGE plpgsql AS $$
                  BEGIN RAISE 'raised'; END $$""")
    done = first()
    assert done.returncode and "raised" in done.stderr
    (tmp_path / "last_id").write_text("1, 'twitter'); ALTER ROLE shop_owner SUPERUSER; --")
    done = second()
    assert done.returncode and "invalid input syntax for type bigint" in done.stderr
    assert server.sql("SELECT rolsuper FROM pg_roles WHERE rolname = 'shop_owner'") == [(False,)]
    assert server.sql("SELECT datdba::regrole::text FROM pg_database WHERE datname = 'shop'") == [("postgres",)]


def test_the_role_whose_tables_would_be_in_its_schema_cannot_install_it(own_servers):
    server = own_servers(extension=False)
    server.sql("CREATE ROLE flake LOGIN; ALTER DATABASE postgres OWNER TO flake")
    failed = pytest.raises(subprocess.CalledProcessError, managed.install, server, user="flake").value
    assert 'role "flake" cannot own this edition' in failed.stderr
    assert server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'flake'") == [(0,)]
    with pytest.raises(psycopg.errors.UndefinedFunction):
        server.sql("SELECT flake_next('twitter')")
