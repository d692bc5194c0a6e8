"""Two versions of the library in one running server: sessions of the newer one find the ledger of the older one."""

import concurrent.futures
import contextlib

import psycopg
import pytest

from clients import KINDS, Made
from horizon import OUTBOX, insert
from standing_clock import at, attempt, attempts, make, make_in_all, pass_through, server_at_0, sessions

VERSION = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/shmem.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(set_version);
Datum set_version(PG_FUNCTION_ARGS)
{
    bool found;
    uint32 *control = ShmemInitStruct("flake", 4096, &found), before = *control;
    *control = PG_GETARG_INT32(0);
    PG_RETURN_INT32(before);
}
"""


@pytest.fixture
def server(own_servers):
    server = server_at_0(own_servers)
    library = server.compile("version", VERSION)
    server.sql(f"CREATE FUNCTION set_version(integer) RETURNS integer STRICT LANGUAGE c AS '{library}'")
    return server


@contextlib.contextmanager
def another_version(server):
    """Lets new sessions find another version's ledger."""
    own = server.value("SELECT set_version(99)")
    try:
        yield
    finally:
        server.sql("SELECT set_version(%s)", own)


def begin(server, dbs, made):
    """Sessions that find another version's ledger. They begin above the current instant, so there are no IDs yet."""
    with another_version(server), concurrent.futures.ThreadPoolExecutor(len(dbs)) as pool:
        assert list(pool.map(lambda db: attempt(db, made), dbs)) == [list(KINDS)] * len(dbs)


def test_sessions_of_two_versions_make_no_id_twice(server):
    """Sessions that begin later make none of these IDs either."""
    made = Made()
    make_in_all(server, made)
    with sessions(server) as dbs:
        begin(server, dbs, made)
        server.set_clock(at(2))
        for db in dbs:
            make(db, made)
    assert "twitter" in attempts(server, made)
    pass_through(server, made, 2)


def test_a_restart_beside_sessions_of_another_version_makes_no_id_twice(server):
    """The last session that knows the ledger has exited before."""
    made = Made()
    with contextlib.ExitStack() as opened:
        dbs = [opened.enter_context(server.connect()) for _ in range(5)]
        begin(server, dbs, made)
        server.set_clock(at(2))
        for db in dbs:
            make(db, made)
        server.set_clock(at(3))
        with server.connect() as db:
            make(db, made)
        # This instant lies in the granted time.
        server.set_clock(at(4.9))
        for db in dbs:
            make(db, made)
        server.stop()
    server.launch()
    pass_through(server, made, 4.9)


def test_a_clock_accepted_after_a_restart_makes_none_of_their_ids(server):
    """Time that they have used below an earlier mark counts as used."""
    made = Made()
    server.set_clock(at(60))
    make_in_all(server, made)
    server.set_clock(at(0))
    with sessions(server) as dbs:
        begin(server, dbs, made)
        server.set_clock(at(2))
        for db in dbs:
            make(db, made)
    server.restart()
    server.sql("SELECT flake_accept_clock()")
    pass_through(server, made, 2, 60)


def test_beside_another_version_there_is_no_horizon(server):
    """Such sessions do not publish what they have made."""
    server.sql(OUTBOX)
    with server.connect() as tailer, server.connect() as writer:
        tailer.execute("SELECT flake_horizon()")
        begin(server, [writer], Made())
        server.set_clock(at(4))
        writer.execute("BEGIN")
        insert(writer)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="version"):
            tailer.execute("SELECT flake_horizon()")
