"""Faults on real servers. Whatever happens, no ID that was ever returned to a client is made again.

FLAKE_SOAK=n repeats the random ones n times.
"""

import contextlib
import functools
import os
import signal
import time

import psycopg
import pytest

from clients import EXIT, EXPECTED, KINDS, MAKE, Load, Made, wait_for_server
from conftest import SECONDS
from standing_clock import at, make, server_at_0
from waiting import LONG, Background, cancelled_once, wait_until, waits_for_the_clock

SOAK = int(os.environ.get("FLAKE_SOAK", "1"))


@pytest.fixture
def faked(servers):
    """A server with a clock of its own, whose ledger is open."""
    server = servers("max_prepared_transactions=10", clock="+0")
    server.sql(MAKE, 1)
    return server


def test_many_sessions_in_one_frozen_tick(faked):
    """200 connections one after another and 32 at once; nobody has to wait while the slot's share lasts."""
    made = Made()
    faked.set_clock("2031-01-01 00:00:00")
    for _ in range(200):
        with faked.connect() as db:
            made.make(db, 10)
    together = [faked.connect() for _ in range(32)]
    try:
        with Background(*(functools.partial(made.make, db, 10) for db in together)):
            pass
        assert {len(ids) for ids in made.ids.values()} == {2320}
        ticks = """SELECT count(DISTINCT flake_timestamp(a::bigint)), count(DISTINCT flake_timestamp(b::bigint, 'base64id')),
                          count(DISTINCT sno_timestamp(c::sno)) FROM unnest(%s::text[], %s::text[], %s::text[]) s(a, b, c)"""
        assert faked.sql(ticks, *map(list, made.ids.values())) == [(1, 1, 1)]
        # The share's end is waited for, and the wait can be cancelled.
        with pytest.raises(psycopg.errors.QueryCanceled), cancelled_once(waits_for_the_clock, faked, together[0]):
            made.make(together[0], 5000)
    finally:
        [db.close() for db in together]
    assert faked.value("SELECT overflow_waits FROM flake_stats") == 1


def test_thousands_of_reconnects(server):
    each = 125 * SECONDS
    server.sql("CREATE UNLOGGED TABLE reconnects (a text, b text, c text)")
    server.pgbench(f"INSERT INTO reconnects {MAKE % 3};\n", "-C", "-c", 8, "-j", 2, "-t", each)
    counts = server.sql("""SELECT count(*), count(DISTINCT a), count(DISTINCT b), count(DISTINCT c)
                           FROM reconnects""")
    assert counts == [(8 * each * 3,) * 4]


@pytest.mark.parametrize("round", range(SOAK))
def test_sessions_terminated_at_random(faked, round):
    made = Made()
    with Load(faked, made) as load, faked.connect() as db:

        def terminate():
            db.execute("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                          WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1""")
            return load.thrown_out > 50 and len(made) > 1000

        wait_until(terminate)


def kill_a_backend(server, made):
    """One that has made IDs, or has been refused."""
    with server.connect() as victim, server.connect() as other:
        made.make_each(victim, 10)
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        # Until the server has noticed, new sessions can come that are thrown out a moment later.
        pytest.raises(psycopg.OperationalError, other.execute, f"SELECT pg_sleep({LONG})")
    wait_for_server(server)


FAULTS = {
    "kill": lambda server, clock, made: (server.set_clock(clock), kill_a_backend(server, made)),
    "immediate": lambda server, clock, _: server.restart(mode="immediate", while_stopped=lambda: server.set_clock(clock)),
    "fast": lambda server, clock, _: server.restart(mode="fast", while_stopped=lambda: server.set_clock(clock)),
}


@pytest.mark.parametrize("round", range(SOAK))
@pytest.mark.parametrize("fault", FAULTS)
def test_crash_or_restart_under_load_with_the_clock_set(faked, fault, round):
    """Set back by ten seconds and by an hour, ahead and back: the clients go on as soon as they may."""
    made = Made()
    with Load(faked, made) as load:
        for clock in ["+0", "-10", "-3600", "-3595", "+5", "+0", "+0"]:
            time.sleep(0.7)
            FAULTS[fault](faked, clock, made)
        faked.set_clock("+30")  # past everything that was used
        made.wait_for_more(2000)
    assert load.thrown_out > 0


def test_set_back_between_sessions(faked):
    """The next session finds out, whichever slot it has. With sno it goes on in the past, once."""
    made = Made()
    faked.set_clock("+7200")
    with faked.connect() as db:
        made.make(db, 100)
    for clock in ["+7000", "+3600"]:
        faked.set_clock(clock)
        for _ in range(3):
            with faked.connect() as db:
                assert set(made.make_each(db, 100)) >= {"twitter", "base64id"}
        with faked.connect() as db:
            error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, MAKE, (1,)).value.diag
            assert error.message_primary == 'clock is behind the last ID of layout "twitter"'
    faked.set_clock("+7200")
    time.sleep(1)
    with faked.connect() as db:
        assert made.make_each(db, 100) == []
        faked.set_clock("+7199.6")
        with faked.connect() as other:
            assert made.make_each(other, 100) == []  # waited out


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_set_back_while_stopped(faked, mode):
    made = Made()
    for clock in ["-120", "-3600"]:
        faked.set_clock("+0")
        with faked.connect() as db:
            db.execute("SET flake.max_clock_wait = '10s'")
            made.make(db, 100)
        faked.restart(mode=mode, while_stopped=functools.partial(faked.set_clock, clock))
        with faked.connect() as db:
            assert made.make_each(db, 100) == list(KINDS)
            error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, MAKE, (1,)).value.diag
            assert error.message_primary == 'clock is behind the last ID of layout "twitter"'
    faked.restart(mode=mode, while_stopped=lambda: faked.set_clock("+4"))
    with faked.connect() as db:
        assert made.make_each(db, 100) == []


def test_how_long_a_restart_keeps_waiting(faked):
    """After a clean stop IDs go on above the last one, also when sessions ended long before; after a crash the mark is
    at most three seconds ahead."""
    latest = "SELECT flake_timestamp(flake_next('twitter'))"
    for end_session_first in [True, False]:
        with faked.connect() as db:
            last = db.execute(latest).fetchone()[0]
            if end_session_first:
                db.close()
            faked.restart(mode="fast")
        with faked.connect() as db:
            floor = "SELECT (SELECT flake_timestamp(flake_next('twitter'))), floor FROM flake_stats"
            first, floor = db.execute(floor).fetchone()
            floor = db.execute("SELECT floor FROM flake_stats").fetchone()[0]
            assert (floor - last).total_seconds() < 0.002
            assert first > last
    for _ in range(2):
        with faked.connect() as db:
            last = db.execute(latest).fetchone()[0]
            faked.restart(mode="immediate")
        with faked.connect() as db:
            db.execute("SET flake.max_clock_wait = 0")
            first = db.execute(latest).fetchone()[0]
            floor = db.execute("SELECT floor FROM flake_stats").fetchone()[0]
            assert last < floor <= first
            assert (floor - last).total_seconds() <= 3.1


def test_a_clock_that_was_ahead_can_be_given_up(faked):
    """Wrong time is not waited for, and not used again when it comes."""
    made = Made()
    with faked.connect() as db, faked.connect() as other:
        made.make(db, 100)
        faked.set_clock(at(0))
        made.make(db, 100)
        made.make(other, 100)
        faked.set_clock(at(1))
        made.make(db, 100)
        faked.set_clock("+0")
        assert made.make_each(db, 100) == ["twitter", "base64id"]
        accept = "SET ROLE pg_monitor; SELECT flake_accept_clock()"
        denied = pytest.raises(psycopg.errors.InsufficientPrivilege, faked.sql, accept)
        assert "flake_accept_clock" in str(denied.value)
        early, = faked.sql("SELECT flake_accept_clock() < now() + interval '10 s'")[0]
        assert early
        for session in [db, other]:
            session.execute("SET flake.max_clock_wait = '10s'")
            assert made.make_each(session, 100) == []
            session.execute("RESET flake.max_clock_wait")
        with faked.connect() as third:
            assert made.make_each(third, 100) == []
        count, ahead = faked.sql("SELECT count(*), bool_and(lower(s) > now()) FROM flake_stats, unnest(skipped) s")[0]
        assert (count, ahead) == (1, True)
        # It survives restarts of both kinds.
        for mode in ["fast", "immediate"]:
            faked.restart(mode=mode)
            with faked.connect() as new:
                assert made.make_each(new, 100) == []
    # When real time reaches the stretch, it is not used; after it IDs are made again.
    with faked.connect() as db:
        made.make(db, 100)
        within, after = faked.sql("""
            SELECT to_char((lower(s) + interval '1.2 s') AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'),
                   extract(epoch FROM upper(s) - now())::float
            FROM flake_stats, unnest(skipped) s""")[0]
        faked.set_clock(within)
        for session in [db, faked.connect()]:
            assert made.make_each(session, 100) == list(KINDS)
        faked.set_clock(f"+{after + 2}")
        time.sleep(1)
        for session in [db, faked.connect()]:
            assert made.make_each(session, 100) == []
        assert faked.value("SELECT skipped FROM flake_stats") == []


def test_time_that_was_used_without_a_break_cannot_be_given_back(servers):
    server, made = server_at_0(servers), Made()
    with server.connect() as db:
        for seconds in [0, 2]:
            server.set_clock(at(seconds))
            make(db, made)
        server.set_clock(at(0.5))
        mark, from_when = server.sql("SELECT mark, flake_accept_clock() FROM flake_stats")[0]
        assert from_when == mark
        assert made.make_each(db, 10) == ["twitter", "base64id"]
        server.set_clock(at(8))
        make(db, made)


def test_the_clock_is_reported_once(faked):
    made = Made()

    def reported():
        lines = (faked.dir / "server.log").read_text().splitlines()
        return [line.split("clock was set ")[1].split(" ")[0] for line in lines if "flake: the clock was set" in line]

    with Load(faked, made, sessions=4):
        made.wait_for_more(100)
        for clock, found in [("-60", ["back"]), ("+0", ["back", "ahead"])]:
            faked.set_clock(clock)
            wait_until(lambda found=found: reported() == found)
            # Others notice it too.
            time.sleep(2)
    assert reported() == ["back", "ahead"]
    assert faked.value("SELECT clock_changes FROM flake_stats") == 2
    # They give up after a second, and do not wait until the clock is back.
    waits, longest = faked.sql("SELECT clock_waits, longest_wait FROM flake_stats")[0]
    assert waits > 0 and longest.total_seconds() < 50


def test_prepared_transactions_and_discard(faked):
    made = Made()
    faked.sql("CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    with faked.connect() as db:
        db.execute("BEGIN; INSERT INTO kept SELECT FROM generate_series(1, 100)")
        made.make(db, 100)
        db.execute("PREPARE TRANSACTION 'flake'")
        db.execute("DISCARD ALL")
        made.make(db, 100)
    faked.restart(mode="immediate")
    with faked.connect() as db:
        made.make(db, 100)
        db.execute("INSERT INTO kept SELECT FROM generate_series(1, 100)")
        db.execute("COMMIT PREPARED 'flake'")
        rows = db.execute("SELECT id::text FROM kept").fetchall()
        assert len(rows) == 200
        made.add(rows, ["twitter"])


def test_sessions_in_the_slots_of_other_processes(faked):
    """Sessions of the replication protocol have slots above those of clients, as background workers do."""
    faked.set_clock("2031-01-01 00:00:00")
    made = Made()
    together = [faked.connect(**how) for how in [{}, {"replication": "database"}] for _ in range(6)]
    try:
        for db in together:
            for kind, call in KINDS.items():
                made.add(db.execute(f"SELECT {call} FROM generate_series(1, 10)").fetchall(), [kind])
        assert {len(ids) for ids in made.ids.values()} == {120}
        assert faked.value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender'") == 6
    finally:
        [db.close() for db in together]


def test_extension_dropped_and_created_under_load(server):
    server.sql("CREATE DATABASE dropping")
    made = Made()
    expected = (*EXPECTED, psycopg.errors.UndefinedFunction, psycopg.errors.InternalError)

    def run():
        with server.connect(dbname="dropping") as db:
            while not clients.ends.is_set():
                with contextlib.suppress(*expected):
                    made.make(db, 20)

    clients = Background(*[run] * 4)
    with clients, server.connect(dbname="dropping") as db:
        for _ in range(20):
            db.execute("CREATE EXTENSION flake")
            made.wait_for_more(20)
            db.execute("DROP EXTENSION flake")


def test_three_nodes_at_once(servers):
    made = Made()
    nodes = [servers("flake.node_count=3", f"flake.node_id={node}") for node in range(3)]
    with contextlib.ExitStack() as loads:
        for node in nodes:
            loads.enter_context(Load(node, made, sessions=4))
        made.wait_for_more(1000)


def test_backends_that_end_by_exit(servers):
    """Libraries may call libc's exit(). PostgreSQL's callbacks run then too, but after the destructors of this thread."""
    server = servers("max_connections=6", "superuser_reserved_connections=0", "max_wal_senders=0", clock="+0")
    server.sql(f"CREATE FUNCTION libc_exit(integer) RETURNS void STRICT LANGUAGE c AS '{server.compile('exit', EXIT)}'")
    server.sql(MAKE, 1)
    server.set_clock("2040-01-01 00:00:00")
    made = Made()
    # More sessions than slots, so that every one of them is used again within the tick.
    for _ in range(20):
        with server.connect() as db:
            made.make(db, 3)
            with pytest.raises(psycopg.OperationalError):
                db.execute("SELECT libc_exit(0)")
    wait_for_server(server)
    assert len(made) == 180
    assert server.value("SELECT sessions FROM flake_stats") == 0
    assert "FATAL" not in (server.dir / "server.log").read_text()
