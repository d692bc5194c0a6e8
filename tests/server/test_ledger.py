"""The ledger: its memory, its view, and what happens without it."""

import contextlib
import re

import psycopg
import pytest

from bouncer import bouncer, load
from clients import MAKE, Made
from conftest import ROOT
from memory import peak_memory
from standing_clock import at, cancelled
from test_faults import kill_a_backend
from waiting import cancelled_once, wait_until

GENERATING = "SELECT name FROM flake_layouts WHERE generates AND ends_at > now() ORDER BY name"


@contextlib.contextmanager
def no_memory(server):
    """Sessions that begin here find no shared memory."""
    segments = server.dir / "data" / "pg_dynshmem"
    away = segments.rename(segments.with_suffix(".away"))
    try:
        yield
    finally:
        away.rename(segments)


def has_no_memory(db, made):
    error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, made.make, db, 1).value.diag
    return error.message_primary.startswith("could not get shared memory: could not") and "/dev/shm" in error.message_hint


def test_a_session_without_the_segment_gets_an_error(servers):
    """The error comes before any time is used, and the next call tries again. The session makes no IDs and returns no watermark,
    so no watermark can miss its IDs."""
    server, made = servers("dynamic_shared_memory_type=mmap", "autovacuum=off"), Made()
    for first in ["flake_next('twitter')", "flake_watermark()", "flake_cover(flake_min(clock_timestamp()))", "flake_check()"]:
        with server.connect() as db:
            with no_memory(server):
                pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, f"SELECT {first}")
                assert has_no_memory(db, made)
                assert has_no_memory(db, made)
            made.make(db, 10)
            below = "SELECT flake_timestamp(%s) < flake_watermark()"
            id, = db.execute("SELECT flake_next('twitter')").fetchone()
            wait_until(lambda: db.execute(below, (id,)).fetchone()[0])  # noqa: B023


def test_the_first_session_without_memory_leaves_the_next_call_to_create_the_segment(servers):
    """A failed attempt leaves nothing behind, also where a block catches the error."""
    server, made = servers("dynamic_shared_memory_type=mmap"), Made()
    server.restart()
    with server.connect() as db:
        with no_memory(server):
            db.execute("""DO $$ BEGIN PERFORM flake_next('twitter'); RAISE 'made'; EXCEPTION
                WHEN object_not_in_prerequisite_state THEN PERFORM count(*) FROM pg_class; END $$""")
            assert has_no_memory(db, made)
        made.make(db, 10)


GREEDY = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/shmem.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(take_shared_memory);
Datum take_shared_memory(PG_FUNCTION_ARGS)
{
    while (ShmemAllocNoError(1024) != NULL);
    while (ShmemAllocNoError(1) != NULL);
    PG_RETURN_VOID();
}
"""


def test_a_server_that_preloads_the_library_has_the_memory_from_its_start(servers):
    """Any role can use up the dynamic segments of the server, by a query with many parallel parts."""
    server, made = servers("dynamic_shared_memory_type=mmap", "shared_preload_libraries=flake"), Made()
    server.restart()
    with server.connect() as db, no_memory(server):
        made.make(db, 10)
    # The server ends all processes, and fills the memory again.
    kill_a_backend(server, made)
    with server.connect() as db, no_memory(server):
        made.make(db, 10)


def test_a_server_that_preloads_the_library_asks_for_the_room(servers):
    """The memory takes nothing of what the main segment has left for others."""
    server = servers()
    left = "SELECT size FROM pg_shmem_allocations WHERE name IS NULL"
    before = server.value(left)
    server.restart("shared_preload_libraries=flake")
    taken = server.value("SELECT allocated_size FROM pg_shmem_allocations WHERE name = 'flake'")
    assert taken > 200_000
    assert server.value(left) > before - taken / 2


def test_a_session_without_the_control_block_makes_no_ids(servers):
    """Other sessions could not know of its IDs, so it makes none. Its error says what helps."""
    server = servers()
    server.restart()
    server.sql(f"CREATE FUNCTION take_shared_memory() RETURNS void LANGUAGE c AS '{server.compile('greedy', GREEDY)}'")
    server.sql("SELECT take_shared_memory()")
    with server.connect() as db:
        for _ in range(2):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as error:
                db.execute("SELECT flake_next('twitter')")
            assert error.value.diag.message_primary.startswith("could not get shared memory: not enough shared memory ")
            assert "shared_preload_libraries" in error.value.diag.message_hint
    server.restart("shared_preload_libraries=flake")
    server.sql("SELECT take_shared_memory()")
    assert server.value("SELECT flake_next('twitter')") > 0


OTHER_VERSION = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/dsm.h"
#include "storage/shmem.h"
PG_MODULE_MAGIC;
void _PG_init(void);
void _PG_init(void)
{
    bool found;
    dsm_segment *segment = dsm_create(4096, 0);
    uint32 *control = dsm_segment_address(segment);
    memset(control, 0xff, 4096);
    control[0] = FORM;
    control[1] = DIVISION;
    dsm_pin_segment(segment);
    *(dsm_handle *) ShmemInitStruct("flake", sizeof(dsm_handle), &found) = dsm_segment_handle(segment);
}
"""


def constant(path, name):
    return int(re.search(rf"const {name}: u32 = (\d+);", (ROOT / path).read_text())[1])


# The numbers of this version.
FORM, DIVISION = constant("src/ledger/control.rs", "VERSION"), constant("src/core/lane.rs", "DIVISION_VERSION")
OTHERS = pytest.mark.parametrize("form, division", [(99, DIVISION), (FORM, 99), (98, 99)], ids=["form", "division", "both"])


def put_other_version(server, form=99, division=DIVISION):
    """Lets the next sessions find the shared memory of another version of the library."""
    source = OTHER_VERSION.replace("FORM", str(form)).replace("DIVISION", str(division))
    server.sql(f"LOAD '{server.compile('other', source)}'")


# Everything that needs the shared memory.
IN_SHARED_MEMORY = [
    "SELECT flake_next('twitter')", "SELECT flake_next('si')", "SELECT flake_batch('twitter', 3)", "SELECT sno_next()",
    "SELECT sno_next(0, 1)", "SELECT flake_start_above(flake_min(now()), 'twitter')", "SELECT flake_accept_clock()",
    "SELECT flake_watermark()", "SELECT flake_publish_watermark()",
    "SELECT flake_cover(flake_min(now()))", "INSERT INTO made DEFAULT VALUES",
]  # fmt: skip


@pytest.mark.matrix
@OTHERS
def test_a_session_beside_another_version_of_the_library_is_refused(servers, form, division):
    """An upgrade in a running server: the new library finds the shared memory of the old one. Neither knows which IDs the other
    makes, so the new one makes none, and changes nothing, until the restart."""
    server, made = servers(), Made()
    server.sql("CREATE TABLE made (id bigint DEFAULT flake_next('twitter'))")
    # By now the mark would not stay as it is if the library changed it.
    mark = "SELECT (SELECT last_value FROM flake_internal.flake_mark), (SELECT last_value FROM flake_internal.flake_mark_until)"
    before = server.sql(mark)
    put_other_version(server, form, division)
    with server.connect() as db:
        for query in IN_SHARED_MEMORY * 2:
            error = pytest.raises(psycopg.Error, db.execute, query).value
            assert error.sqlstate == "55000", query
            assert error.diag.message_primary == "another version of the flake library is in use"
            assert error.diag.message_detail.startswith(f"The server's shared memory has form {form} with division {division},")
            assert error.diag.message_hint.startswith("Restart the server")
        assert db.execute("SELECT ledger, node_id, issued FROM flake_stat").fetchone() == ("none", None, None)
        # Functions that read IDs need no shared memory.
        assert db.execute("SELECT flake_timestamp(0, 'twitter')").fetchone()[0].year == 2010
    assert server.sql("TABLE made") == []
    assert server.sql(mark) == before
    server.restart()
    with server.connect() as db:
        made.make(db, 10)


@pytest.mark.matrix
@OTHERS
def test_the_extension_can_be_created_beside_another_version_of_the_library(servers, form, division):
    """Its script would record the mark, which it leaves to the first session that makes IDs after the restart."""
    server, made = servers(extension=False), Made()
    server.sql("CREATE DATABASE other")
    put_other_version(server, form, division)
    for dbname in ["postgres", "other"]:
        with server.connect(dbname=dbname) as db:
            db.execute("CREATE EXTENSION flake")
            pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, made.make, db, 1)
    server.restart()
    for dbname in ["postgres", "other"]:
        with server.connect(dbname=dbname) as db:
            made.make(db, 10)


def test_a_session_keeps_one_generator_for_each_layout_and_partition(server):
    """Only a few are at hand without a lookup. A session that did not find the others would make them again and again."""
    names = [name for name, in server.sql(GENERATING)]
    calls = ", ".join([f"flake_next('{name}')::text" for name in names] + [f"sno_next(0, {n})::text" for n in range(20)])
    with server.connect() as db:
        db.execute(f"SELECT {calls} FROM generate_series(1, 100)")
        before = peak_memory(db)
        db.execute(f"SELECT count(*) FROM (SELECT {calls} FROM generate_series(1, 4000) OFFSET 0) s")
        assert peak_memory(db) - before < 5


def test_flake_stat_shows_the_ledger_to_those_who_monitor(servers):
    server = servers("flake.node_id=1", "flake.node_count=4")
    server.sql("CREATE ROLE observer LOGIN IN ROLE pg_monitor; CREATE ROLE nobody LOGIN")
    assert server.sql("SELECT ledger, node_id, sessions, issued FROM flake_stat") == [("open", 1, 0, 0)]
    server.restart()
    assert server.sql("SELECT ledger, node_id, sessions, issued FROM flake_stat") == [("unused", None, 0, 0)]
    with server.connect() as db, server.connect() as other:
        began = server.value("SELECT clock_timestamp()")
        db.execute(MAKE, (1000,))
        other.execute(MAKE, (10,))
        view = """SELECT ledger, node_id, node_count, sessions, mark > %s, floor IS NULL, generation, lead < interval '1 s'
                  FROM flake_stat"""
        with server.connect(user="observer") as observer:
            assert observer.execute(view, (began,)).fetchall() == [("open", 1, 4, 2, True, True, 0, True)]
    with server.connect() as db:
        wait_until(lambda: db.execute("SELECT sessions FROM flake_stat").fetchone() == (0,))
        assert db.execute("SELECT issued FROM flake_stat").fetchone() == (3030,)
    with server.connect(user="nobody") as db:
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)


def test_waits_have_a_name(servers):
    server = servers("shared_preload_libraries=flake", clock="2030-01-01 00:00:00")
    with server.connect() as db:
        name = "FlakeNextTick" if server.value("SHOW server_version_num") >= "170000" else "Extension"
        event = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"

        def shown(server, db):
            return server.value(event, db.info.backend_pid) == name

        # While the clock stands, the tick of a second does not end. In steps of more than a millisecond a session does not keep
        # pace, by sleeps without a wait event.
        db.execute("""SELECT flake_create_layout('slow', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1s", "fields": [
            {"name": "timestamp", "bits": 41, "role": "timestamp"}, {"name": "sequence", "bits": 4, "role": "sequence"}]}')""")
        with pytest.raises(psycopg.errors.QueryCanceled), cancelled_once(shown, server, db):
            db.execute("SELECT flake_next('slow') FROM generate_series(1, 100)")


@pytest.mark.matrix
def test_preloading_saves_the_first_wait(servers):
    """The ledger is as old as the server. Otherwise the first tick would have to end, and this clock stands still."""
    server = servers("shared_preload_libraries=flake", clock="+0")
    made = Made()
    # The next session in a proc makes snos from the next tick on.
    for number in range(3):
        server.set_clock(at(number / 100))
        with server.session() as db:
            made.make(db, 10)
    server = servers(clock="2030-01-01 00:00:00")
    with server.connect() as db, cancelled(db, 1):
        pytest.raises(psycopg.errors.QueryCanceled, made.make, db, 1)


@pytest.mark.matrix
def test_no_id_is_made_twice_behind_pgbouncer(servers):
    """200 clients share 20 server sessions, which change hands after every transaction."""
    server = servers()
    server.sql("CREATE UNLOGGED TABLE pooled (a text, b text, c text, session int DEFAULT pg_backend_pid())")
    with bouncer(server, "transaction", clients=200, sessions=20) as directory:
        load(server, directory, f"INSERT INTO pooled {MAKE % 5};\n", clients=200, transactions=50)
    counts = server.sql("""SELECT count(*), count(DISTINCT a), count(DISTINCT b), count(DISTINCT c), count(DISTINCT session) <= 20
                           FROM pooled""")
    assert counts == [(50_000,) * 4 + (True,)]
