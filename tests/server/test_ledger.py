"""The ledger: its memory, its view, and what happens without it."""

import contextlib

import psycopg
import pytest

from bouncer import bouncer, load
from clients import MAKE, Load, Made
from standing_clock import cancelled
from waiting import cancelled_once, wait_until

GENERATING = "SELECT name FROM flake_layouts WHERE generates AND ends_at > now() ORDER BY name"


def warnings(db):
    notices = []
    db.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    return notices


@contextlib.contextmanager
def no_memory(server):
    """Sessions that begin here find no shared memory for their slots."""
    segments = server.dir / "data" / "pg_dynshmem"
    away = segments.rename(segments.with_suffix(".away"))
    try:
        yield
    finally:
        away.rename(segments)


def no_slot_memory(db, made):
    error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, made.make, db, 1).value.diag
    return error.message_primary.startswith("could not find shared memory for this session: could not")


def test_a_session_without_memory_for_its_slot_gets_an_error(servers):
    """The error comes before any time is used, and the next call tries again."""
    server, made = servers("dynamic_shared_memory_type=mmap"), Made()
    for _ in range(2):
        with server.connect() as db:
            with no_memory(server):
                assert no_slot_memory(db, made)
                assert no_slot_memory(db, made)
            made.make(db, 10)


def test_a_preloaded_library_needs_no_dynamic_memory(servers):
    server, made = servers("dynamic_shared_memory_type=mmap", "shared_preload_libraries=flake"), Made()
    with server.connect() as db, no_memory(server):
        made.make(db, 10)
        assert db.execute("SELECT flake_horizon() IS NOT NULL").fetchone() == (True,)


GREEDY = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/shmem.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(take_shared_memory);
Datum take_shared_memory(PG_FUNCTION_ARGS)
{
    while (ShmemAllocNoError(1024) != NULL);
    PG_RETURN_VOID();
}
"""


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
            assert error.value.diag.message_primary.startswith("could not find shared memory for IDs: ")
            assert "shared_preload_libraries" in error.value.diag.message_hint
    server.restart("shared_preload_libraries=flake")
    server.sql("SELECT take_shared_memory()")
    assert server.value("SELECT flake_next('twitter')") > 0


OTHER_VERSION = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
PG_MODULE_MAGIC;
typedef struct { uint32 version, share_rule, node_id, node_count; int64 unstored_floor; uint32 unstored; } Header;
void _PG_init(void);
void _PG_init(void)
{
    bool found;
    Header *control;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    control = ShmemInitStruct("flake", 4096, &found);
    memset(control, 0xff, 4096);
    *control = (Header) { 99, SHARE_RULE, 0, 0, PG_INT64_MIN, 0 };
    LWLockRelease(AddinShmemInitLock);
}
"""


# flake_core has the same number.
SHARE_RULE = 2


def put_other_version(server, share_rule=SHARE_RULE):
    """Lets the next sessions find the shared memory of another version of the library."""
    server.sql(f"LOAD '{server.compile('other', OTHER_VERSION.replace('SHARE_RULE', str(share_rule)))}'")


def test_a_session_beside_a_ledger_of_another_version_makes_other_ids(servers):
    """An upgrade in a running server: the new library finds the shared memory of the old one."""
    server, made = servers(), Made()
    put_other_version(server)
    for _ in range(4):
        with server.connect() as db:
            notices = warnings(db)
            made.make(db, 10)
            assert notices == ["this session makes IDs without the ledger: another version of the library is in use"]
            assert db.execute("SELECT ledger FROM flake_stats").fetchone() == ("none",)
    with Load(server, made, sessions=4):
        made.wait_for_more(100)


def test_a_session_beside_a_version_that_shares_otherwise_gets_an_error(servers):
    """Sessions of that version could have the same workers as sessions of this one."""
    server, made = servers(), Made()
    put_other_version(server, share_rule=99)
    for _ in range(2):
        with server.connect() as db:
            for _ in range(2):
                error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, made.make, db, 1).value.diag
                assert error.message_primary == "another version of the flake library is in use"
                assert f"by rule 99, this version by rule {SHARE_RULE};" in error.message_detail
                assert error.message_hint.startswith("Restart the server")
    server.restart()
    with server.connect() as db:
        made.make(db, 10)


def test_more_layouts_than_a_slot_has_entries_for_make_no_id_twice(server):
    names = [name for name, in server.sql(GENERATING)]
    assert len(names) > 8
    calls = [f"flake_next('{name}')::text" for name in names] + [f"sno_next(0, {n})::text" for n in range(20)]
    made = {call: [] for call in calls}
    for _ in range(12):
        with server.connect() as db:
            for row in db.execute(f"SELECT {', '.join(calls)} FROM generate_series(1, 5)"):
                for call, id in zip(calls, row, strict=True):
                    made[call].append(id)
    for call, ids in made.items():
        assert len(set(ids)) == 60, call


def test_a_thousand_connections_make_ids_or_get_an_error_at_once(servers):
    """Every layout makes IDs, or its first call says that the configuration leaves none."""
    server = servers("max_connections=1000", "flake.node_count=128", "flake.node_id=127")
    answers = {}
    with server.connect() as db:
        for name, in db.execute(GENERATING).fetchall():
            try:
                ids = {id for id, in db.execute("SELECT flake_next(%s) FROM generate_series(1, 20)", (name,))}
                answers[name] = len(ids)
            except psycopg.Error as error:
                answers[name] = error.sqlstate
        assert len({id for id, in db.execute("SELECT sno_next() FROM generate_series(1, 20)")}) == 20
        assert pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, "SELECT sno_next(0, 1)")
    assert answers["twitter"] == answers["tsid"] == 20
    assert set(answers.values()) == {20, "55000", "22023"}
    assert answers["si"] == "22023", "32 workers for 128 nodes"


def test_flake_stats_shows_the_ledger_to_those_who_monitor(servers):
    server = servers("flake.node_id=1", "flake.node_count=4")
    server.sql("CREATE ROLE observer LOGIN IN ROLE pg_monitor; CREATE ROLE nobody LOGIN")
    assert server.sql("SELECT ledger, node_id, sessions, issued FROM flake_stats") == [("open", 1, 0, 0)]
    server.restart()
    assert server.sql("SELECT ledger, node_id, sessions, issued FROM flake_stats") == [("unused", None, 0, 0)]
    with server.connect() as db, server.connect() as other:
        began = server.value("SELECT clock_timestamp()")
        db.execute(MAKE, (1000,))
        other.execute(MAKE, (10,))
        view = "SELECT ledger, node_id, node_count, sessions, mark > %s, floor < now(), skipped FROM flake_stats"
        with server.connect(user="observer") as observer:
            assert observer.execute(view, (began,)).fetchall() == [("open", 1, 4, 2, True, True, [])]
    with server.connect() as db:
        wait_until(lambda: db.execute("SELECT sessions FROM flake_stats").fetchone() == (0,))
        assert db.execute("SELECT issued FROM flake_stats").fetchone() == (3030,)
    with server.connect(user="nobody") as db:
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)
        for query in ["SELECT * FROM flake_stats", "SELECT flake_stats()", "SELECT flake_accept_clock()"]:
            pytest.raises(psycopg.errors.InsufficientPrivilege, db.execute, query)


def test_waits_have_a_name(servers):
    server = servers("shared_preload_libraries=flake", clock="2030-01-01 00:00:00")
    with server.connect() as db:
        name = "FlakeNextTick" if server.value("SHOW server_version_num") >= "170000" else "Extension"
        event = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"

        def shown(server, db):
            return server.value(event, db.info.backend_pid) == name

        # While the clock stands, the tick of a second does not end. Later a session would keep pace, by sleeps without a wait
        # event.
        with pytest.raises(psycopg.errors.QueryCanceled), cancelled_once(shown, server, db):
            db.execute("SELECT flake_next('base64id') FROM generate_series(1, 400000)")


def test_preloading_saves_the_first_wait(servers):
    """The ledger is as old as the server. Otherwise the first tick would have to end, and this clock stands still."""
    server = servers("shared_preload_libraries=flake", clock="+0")
    server.set_clock("2030-01-01 00:00:00")
    made = Made()
    for _ in range(3):
        with server.connect() as db:
            made.make(db, 10)
    server = servers(clock="2030-01-01 00:00:00")
    with server.connect() as db, cancelled(db, 1):
        pytest.raises(psycopg.errors.QueryCanceled, made.make, db, 1)


def test_no_id_is_made_twice_behind_pgbouncer(servers):
    """200 clients share 20 server sessions, which change hands after every transaction."""
    server = servers()
    server.sql("CREATE UNLOGGED TABLE pooled (a text, b text, c text, session int DEFAULT pg_backend_pid())")
    with bouncer(server, "transaction", clients=200, sessions=20) as directory:
        load(server, directory, f"INSERT INTO pooled {MAKE % 5};\n", clients=200, transactions=50)
    counts = server.sql("""SELECT count(*), count(DISTINCT a), count(DISTINCT b), count(DISTINCT c), count(DISTINCT session) <= 20
                           FROM pooled""")
    assert counts == [(50_000,) * 4 + (True,)]
