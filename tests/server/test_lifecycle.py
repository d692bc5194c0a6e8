"""Install, dump and restore, privileges: what happens to an extension besides being called."""

import psycopg
import pytest

SCHEMA = """
    CREATE TABLE tweets (id bigint PRIMARY KEY DEFAULT flake_next('twitter'),
                         created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED);
    CREATE INDEX ON tweets (flake_timestamp(id, 'twitter'));
    CREATE TABLE events (id bigint PRIMARY KEY DEFAULT flake_next('snowflake')) PARTITION BY RANGE (id);
    CREATE TABLE events_old PARTITION OF events FOR VALUES FROM (MINVALUE) TO (flake_min('2026-01-01Z', 'snowflake'));
    CREATE TABLE events_new PARTITION OF events FOR VALUES FROM (flake_min('2026-01-01Z', 'snowflake')) TO (MAXVALUE);
    CREATE VIEW latest AS SELECT (flake_decode(id)).created_at FROM tweets;
    INSERT INTO tweets SELECT FROM generate_series(1, 1000);
    INSERT INTO events SELECT FROM generate_series(1, 1000);
    INSERT INTO events VALUES (flake_min('2025-06-01Z', 'snowflake'));
"""


def test_dump_and_restore(server, tmp_path):
    server.sql("CREATE DATABASE original")
    server.sql("CREATE DATABASE restored")
    with server.connect(dbname="original") as db:
        db.execute("CREATE EXTENSION flake")
        db.execute(SCHEMA)
    dump = server.run("pg_dump", "original").stdout
    assert "flake_next(" in dump and "CREATE FUNCTION" not in dump
    restored = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "restored", input=dump)
    assert restored.stderr == ""
    content = "SELECT (SELECT array_agg(t ORDER BY id) FROM tweets t), (SELECT array_agg(e ORDER BY id) FROM events e)"
    with server.connect(dbname="original") as one, server.connect(dbname="restored") as two:
        assert one.execute(content).fetchone() == two.execute(content).fetchone()
        two.execute("INSERT INTO tweets DEFAULT VALUES; INSERT INTO events DEFAULT VALUES")


def test_a_database_owner_can_install_it(server):
    """It is trusted: no superuser is needed."""
    server.sql("CREATE ROLE owner LOGIN")
    server.sql("CREATE DATABASE owned OWNER owner")
    with server.connect(dbname="owned", user="owner") as db:
        db.execute("CREATE EXTENSION flake")
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)
        with pytest.raises(psycopg.errors.CantChangeRuntimeParam):
            db.execute("SET flake.node_id = 3")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("ALTER SYSTEM SET flake.node_id = 3")
        db.execute("DROP EXTENSION flake")
        left = db.execute("SELECT count(*) FROM pg_class WHERE relname LIKE 'flake%'").fetchone()
        assert left == (0,)


def test_dropped_and_created_again_while_a_session_goes_on(server):
    server.sql("CREATE DATABASE again")
    with server.connect(dbname="again") as db, server.connect(dbname="again") as other:
        made = []
        for _ in range(3):
            other.execute("CREATE EXTENSION flake")
            made += db.execute("SELECT flake_next('twitter') FROM generate_series(1, 1000)").fetchall()
            other.execute("DROP EXTENSION flake")
        assert len(set(made)) == 3000


def test_preloading_the_library_changes_nothing(servers):
    server = servers("shared_preload_libraries=flake", "flake.node_id=1", "flake.node_count=2")
    assert server.value("SELECT (flake_decode(flake_next('twitter'))).worker >= 512")


def test_versions_agree(server):
    """Cargo.toml is the only place with a version; PGXN's metadata repeats it."""
    import json
    import re

    from conftest import ROOT

    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    assert server.value("SELECT extversion FROM pg_extension WHERE extname = 'flake'") == version
    meta = json.loads((ROOT / "META.json").read_text())
    assert (meta["version"], meta["provides"]["flake"]["version"]) == (version, version)
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()
