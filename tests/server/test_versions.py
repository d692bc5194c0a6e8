"""Two versions of the library in one running server. Sessions of the newer one find the shared memory of the older one, and make
nothing until the restart, so what the older one knows stays complete."""

import contextlib

import psycopg
import pytest

from clients import KINDS, Made
from standing_clock import at, attempt, make, make_in_all, pass_through, server_at_0
from watermark import OUTBOX, insert, watermark

VERSION = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/dsm.h"
#include "storage/shmem.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(set_version);
Datum set_version(PG_FUNCTION_ARGS)
{
    bool found;
    dsm_handle *handle = ShmemInitStruct("flake", sizeof(dsm_handle), &found);
    dsm_segment *segment = dsm_find_mapping(*handle);
    uint32 *control = dsm_segment_address(segment ? segment : dsm_attach(*handle)), before = *control;
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
    """Lets new sessions find the shared memory of another version."""
    own = server.value("SELECT set_version(99)")
    try:
        yield
    finally:
        server.sql("SELECT set_version(%s)", own)


def is_refused(db, query):
    error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, query).value.diag
    return error.message_primary == "another version of the flake library is in use"


def test_sessions_of_another_version_make_nothing_and_the_others_go_on(server):
    """Sessions of the other version are refused in every proc, also at later instants and when they ask again."""
    made, none = Made(), Made()
    make_in_all(server, made)
    with contextlib.ExitStack() as opened:
        old = [opened.enter_context(server.connect()) for _ in range(3)]
        for db in old:
            make(db, made)
        with another_version(server):
            new = [opened.enter_context(server.connect()) for _ in range(3)]
            for seconds in [0, 2]:
                server.set_clock(at(seconds))
                assert [attempt(db, none) for db in new] == [list(KINDS)] * 3
                for db in old:
                    make(db, made)
        # They look again at each call, and find the memory of their own version.
        for db in new:
            make(db, made)
    assert len(none) == 0
    pass_through(server, made, 2)


def test_ids_continue_at_once_after_sessions_of_another_version(server):
    """The refused ones have changed nothing in the ledger."""
    made = Made()
    with server.session() as db:
        make(db, made)
        with another_version(server), server.session() as other:
            assert attempt(other, Made()) == list(KINDS)
            assert server.value("SELECT sessions FROM flake_stat") is None
    server.restart()
    # The next tick of base64id.
    server.set_clock(at(1.01))
    with server.connect() as db:
        make(db, made)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_an_instant_that_ids_start_above_stays_beside_another_version(server, mode):
    """A session of another version once took a place in the ledger without this instant, and a restart forgot it."""
    made = Made()
    with server.session() as db:
        above = "SELECT flake_start_above(flake_min(clock_timestamp() + interval '3 s'), 'twitter')"
        db.execute(above)
        with another_version(server), server.session() as other:
            for query in [above, "SELECT flake_accept_clock()"]:
                assert is_refused(other, query)
            assert attempt(other, made) == list(KINDS)
    server.restart(mode=mode)
    server.set_clock(at(2.5))
    assert server.value("SELECT flake_next('twitter') > flake_max(timestamptz '2030-01-01 00:00:02.999+00')")
    pass_through(server, made, 3.5)


def test_watermarks_go_on_beside_sessions_of_another_version(server):
    """The other sessions make no IDs, so a watermark need not wait for them. They get none themselves."""
    server.sql(OUTBOX)
    with server.connect() as tailer, server.connect() as writer:
        before = watermark(tailer)
        insert(writer)
        with another_version(server), server.connect() as other:
            for query in ["SELECT flake_watermark()", "SELECT flake_publish_watermark()", "INSERT INTO outbox DEFAULT VALUES"]:
                assert is_refused(other, query)
            server.set_clock(at(4))
            writer.execute("BEGIN")
            id = insert(writer)
            assert before < watermark(tailer) <= id
