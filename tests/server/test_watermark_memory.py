"""A session without shared memory makes no IDs and returns no watermark, so no watermark can miss its IDs."""

import psycopg
import pytest

from test_ledger import no_memory

WATERMARK = "SELECT flake_watermark()"
INSERT = "INSERT INTO kept DEFAULT VALUES"
NO_MEMORY = "could not get shared memory: could not"


@pytest.fixture
def server(own_servers):
    # Workers of autovacuum would look for the missing memory.
    server = own_servers("dynamic_shared_memory_type=mmap", "autovacuum=off")
    server.sql("CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    server.sql(WATERMARK)
    return server


@pytest.mark.parametrize("call", [INSERT, WATERMARK, "SELECT flake_cover(flake_min(clock_timestamp()), 'twitter')"])
def test_a_session_without_memory_makes_no_ids_and_returns_no_watermark(server, call):
    with server.connect() as db:
        with no_memory(server):
            pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, call).match(NO_MEMORY)
        db.execute(INSERT)
        assert db.execute("SELECT bool_and(flake_timestamp(id) < flake_watermark()) FROM kept").fetchone() == (True,)
