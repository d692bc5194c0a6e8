"""managed/flake.sql where PostgreSQL is a library, and as an extension of pg_tle, which services have."""

import json

import pytest

import managed
from database import empty_database, server_of_clients

__all__ = ["empty_database", "server_of_clients"]
TRIED = """
    SELECT count(DISTINCT id), bool_and(flake_timestamp(id) <= clock_timestamp()), (SELECT bool_and(ok) FROM flake_check())
    FROM flake_batch('twitter', 1000) id"""


def test_it_works_in_pglite(empty_database):
    found = json.loads(empty_database.node("managed.mjs", managed.FILE, managed.FILE.with_name("sequences.sql")))
    assert found == {"ids": 1000, "timely": True, "opened": 42, "ok": True, "adopted": True}


def test_it_works_as_an_extension_of_pg_tle(own_servers):
    server = own_servers(extension=False)
    if not server.sql("SELECT FROM pg_available_extensions WHERE name = 'pg_tle'"):
        pytest.skip("pg_tle is not installed, so flake in plain SQL was not tried as its extension")
    server.restart("shared_preload_libraries=pg_tle")
    server.sql("CREATE EXTENSION pg_tle")
    body = managed.FILE.read_text().replace("\nBEGIN;\n", "\n").replace("\nCOMMIT;\n", "\n")
    with server.connect() as db:
        db.execute("SELECT pgtle.install_extension('flake_sql', '1.0', 'flake in SQL', %s)", [body])
        db.execute("CREATE EXTENSION flake_sql")
        assert db.execute(TRIED).fetchone() == (1000, True, True)
