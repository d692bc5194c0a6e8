"""Installation, dump and restore, and privileges of the extension."""

import json
import re

import psycopg
import pytest

from conftest import ROOT
from next_release import RELEASED, UPGRADES, VERSION, provide

SCHEMA = """
    CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT flake_next('twitter'),
                         created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED);
    CREATE INDEX ON tweets (flake_timestamp(id, 'twitter'));
    CREATE TABLE events (id bigint PRIMARY KEY DEFAULT flake_next('snowflake')) PARTITION BY RANGE (id);
    CREATE TABLE events_old PARTITION OF events FOR VALUES FROM (MINVALUE) TO (flake_min('2026-01-01Z', 'snowflake'));
    CREATE TABLE events_new PARTITION OF events FOR VALUES FROM (flake_min('2026-01-01Z', 'snowflake')) TO (MAXVALUE);
    CREATE VIEW latest AS SELECT (flake_decode(id)).created_at FROM tweets;
    SELECT flake_create_layout('mine', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}');
    SELECT flake_create_layout('Ticks.10', '{"like": "sonyflake", "epoch": "2024-01-01T00:00:00Z", "text": "base62"}');
    COMMENT ON SERVER mine IS 'ours';
    -- Named so that its data is restored first.
    CREATE TABLE aaa (id bigint PRIMARY KEY DEFAULT flake_next('mine'), n int,
                      created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(id, 'mine')) STORED,
                      code text GENERATED ALWAYS AS (flake_to_text(id, 'Ticks.10')) STORED,
                      CHECK (flake_timestamp(id, 'mine') > '2024-01-01Z'));
    CREATE INDEX ON aaa (flake_timestamp(id, 'mine'));
    CREATE TABLE slices (id bigint DEFAULT flake_next('mine')) PARTITION BY RANGE (flake_timestamp(id, 'mine'));
    CREATE TABLE slices_all PARTITION OF slices FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
    CREATE TABLE snos (id sno PRIMARY KEY DEFAULT sno_next(1), at timestamptz GENERATED ALWAYS AS (sno_timestamp(id)) STORED);
    CREATE INDEX ON snos USING hash (id);
    INSERT INTO snos SELECT FROM generate_series(1, 1000);
    INSERT INTO slices SELECT FROM generate_series(1, 10);
    INSERT INTO aaa SELECT FROM generate_series(1, 1000);
    INSERT INTO tweets SELECT FROM generate_series(1, 1000);
    INSERT INTO events SELECT FROM generate_series(1, 1000);
    INSERT INTO events VALUES (flake_min('2025-06-01Z', 'snowflake'));
"""

WHO = "SELECT current_user, session_user, current_setting('role')"


def test_a_restored_dump_has_the_same_rows_and_layouts(server, tmp_path):
    server.sql("CREATE DATABASE original")
    server.sql("CREATE DATABASE restored")
    with server.connect(dbname="original") as db:
        db.execute("CREATE EXTENSION flake")
        db.execute(SCHEMA)
    dump = server.run("pg_dump", "original").stdout
    assert "flake_next(" in dump and "CREATE FUNCTION" not in dump
    server.run("pg_dump", "-Fc", "-f", tmp_path / "dump", "original")
    restored = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "restored", input=dump)
    assert restored.stderr == ""
    server.sql("CREATE DATABASE restored_in_parallel")
    server.run("pg_restore", "-j", 4, "--exit-on-error", "-d", "restored_in_parallel", tmp_path / "dump")
    content = """SELECT (SELECT array_agg(t ORDER BY id) FROM tweets t), (SELECT array_agg(e ORDER BY id) FROM events e),
                        (SELECT array_agg(a ORDER BY id) FROM aaa a), (SELECT array_agg(s ORDER BY id) FROM slices s),
                        (SELECT array_agg(s ORDER BY id) FROM snos s),
                        (SELECT array_agg(l) FROM flake_layouts l)"""
    for restored in ["restored", "restored_in_parallel"]:
        with server.connect(dbname="original") as one, server.connect(dbname=restored) as two:
            assert one.execute(content).fetchone() == two.execute(content).fetchone()
            for table in ["tweets", "events", "aaa", "slices", "snos"]:
                two.execute(f"INSERT INTO {table} DEFAULT VALUES")


def test_a_database_owner_can_install_it(server):
    """The extension is trusted, so no superuser is needed."""
    server.sql("CREATE ROLE owner LOGIN")
    server.sql("CREATE DATABASE owned OWNER owner")
    with server.connect(dbname="owned", user="owner") as db:
        db.execute("CREATE EXTENSION flake")
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)
        with pytest.raises(psycopg.errors.CantChangeRuntimeParam):
            db.execute("SET flake.node_id = 3")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("ALTER SYSTEM SET flake.node_id = 3")
        db.execute("SELECT flake_create_layout('mine', '{\"like\": \"si\"}')")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            db.execute("DROP EXTENSION flake")
        db.execute("DROP EXTENSION flake CASCADE")
        left = db.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'flake%'").fetchone()
        assert left == (0,)


@pytest.mark.matrix
@pytest.mark.parametrize("login, role", [("postgres", "none"), ("boss", "none"), ("postgres", "boss"), ("member", "boss")])
def test_a_role_that_creates_or_upgrades_it_stays_what_it_was(own_servers, login, role):
    """This holds in the transaction of the script too, which runs as initdb's superuser. A user's setting with that name is
    ignored."""
    server = own_servers(extension=False)
    server.sql("""CREATE ROLE boss SUPERUSER LOGIN; CREATE ROLE member LOGIN IN ROLE boss; CREATE ROLE keeper;
                  ALTER DATABASE postgres SET flake_script.role = keeper""")
    with server.connect(user=login, autocommit=False) as db:
        db.execute(f"SET ROLE {role}")
        db.commit()
        before = db.execute(WHO).fetchone()
        assert before == (login if role == "none" else role, login, role)
        db.execute("CREATE EXTENSION flake")
        assert db.execute(WHO).fetchone() == before
        db.execute("DROP EXTENSION flake")
        db.commit()
        provide(server)
        for version, to in UPGRADES:
            server.sql(f"CREATE EXTENSION flake VERSION '{version}'")
            db.execute(f"ALTER EXTENSION flake UPDATE TO '{to}'")
            assert db.execute(WHO).fetchone() == before
            db.execute("DROP EXTENSION flake")
            db.commit()


def test_it_works_in_a_database_without_plpgsql(server):
    server.sql("CREATE DATABASE bare")
    with server.connect(dbname="bare") as db:
        db.execute("DROP EXTENSION plpgsql; CREATE EXTENSION flake")


def test_it_stays_in_the_schema_in_which_it_was_created(server):
    """It has objects in a schema of its own, too, so PostgreSQL does not move it."""
    server.sql("CREATE ROLE mover LOGIN")
    server.sql("CREATE DATABASE moved OWNER mover")
    with server.connect(dbname="moved", user="mover") as db:
        db.execute("CREATE SCHEMA ids; CREATE EXTENSION flake SCHEMA ids; SELECT ids.flake_next('twitter')")
    with server.connect(dbname="moved") as db:
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="does not support SET SCHEMA"):
            db.execute("ALTER EXTENSION flake SET SCHEMA public")
        db.execute("DROP EXTENSION flake; CREATE EXTENSION flake")
        assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'flake_internal'").fetchone() == (1,)
        db.execute("DROP EXTENSION flake")
        assert db.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'flake_internal'").fetchone() == (0,)
        db.execute("CREATE SCHEMA flake_internal")
        with pytest.raises(psycopg.errors.DuplicateSchema, match="flake_internal"):
            db.execute("CREATE EXTENSION flake")


def test_versions_agree(server):
    """The version is in Cargo.toml, and PGXN's metadata repeats it."""
    assert server.value("SELECT extversion FROM pg_extension WHERE extname = 'flake'") == VERSION
    meta = json.loads((ROOT / "META.json").read_text())
    assert (meta["version"], meta["provides"]["flake"]["version"]) == (VERSION, VERSION)
    date = re.search(rf"^## {re.escape(VERSION)} \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert VERSION not in RELEASED or re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    # Pages have the version in commands that install it, and so have the fuzzing programs.
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        named = re.findall(r"(?:flake[_-]|git tag -s v|version \")(\d+\.\d+\.\d+)", page.read_text())
        assert set(named) <= {VERSION}, page.name
    assert f'name = "flake-core"\nversion = "{VERSION}"' in (ROOT / "src/core/fuzz/Cargo.lock").read_text()
