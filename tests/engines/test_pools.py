"""Pools of connections: many clients share few sessions."""

import pytest

from bouncer import bouncer, load
from clients import MAKE

CLIENTS, SESSIONS = 1000, 20
MADE = "CREATE UNLOGGED TABLE pooled (a text, b text, c text, session int DEFAULT pg_backend_pid())"
COUNTS = "SELECT count(*), count(DISTINCT a), count(DISTINCT b), count(DISTINCT c), count(DISTINCT session) FROM pooled"


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_clients_that_share_sessions_get_no_id_twice(own_servers, mode):
    """Sessions change hands after every transaction, so each session makes IDs for all clients in turn."""
    server = own_servers()
    server.sql(MADE)
    with bouncer(server, mode, CLIENTS, SESSIONS) as directory:
        load(server, directory, f"INSERT INTO pooled {MAKE % 5};\n", CLIENTS, transactions=20)
    (*counts, sessions), = server.sql(COUNTS)
    assert counts == [CLIENTS * 20 * 5] * 4 and sessions <= SESSIONS


@pytest.mark.parametrize("preloaded", [False, True])
def test_transactions_with_a_session_each_get_no_id_twice(own_servers, preloaded):
    """Each transaction has a new session, as behind a pool that keeps none. So procs change hands under load."""
    server = own_servers(*["shared_preload_libraries=flake"] if preloaded else [])
    server.sql(MADE)
    script = f"INSERT INTO pooled {MAKE % 5};\n"
    server.pgbench(script, "-C", "-c", SESSIONS, "-j", 2, "-t", 200)
    (*counts, sessions), = server.sql(COUNTS)
    assert counts == [SESSIONS * 200 * 5] * 4 and sessions > SESSIONS
