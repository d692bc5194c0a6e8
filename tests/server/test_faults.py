"""Faults of real servers: no ID that was ever returned to a client is made again. The nemesis draws crashes, restarts and clocks
that are set under load."""

import functools
import os
import signal
import time

import psycopg
import pytest

from clients import EXIT, KINDS, MAKE, Load, Made, wait_for_server
from standing_clock import at
from waiting import LONG, Background, cancelled_once, wait_until, waits_in_ticks


@pytest.fixture
def faked(servers):
    """A server with a clock of its own, whose ledger is open."""
    server = servers("max_prepared_transactions=10", clock="+0")
    server.sql(MAKE, 1)
    return server


@pytest.mark.matrix
def test_many_sessions_in_one_frozen_tick_make_no_id_twice(faked):
    """200 connections come one after another and 16 at once. While the clock stands, each makes an ID less than 512 microseconds
    ahead of it, in which base64id has 33. Snos are made by the 16 only."""
    made = Made()
    faked.set_clock("2031-01-01 00:00:00")
    for number in range(200):
        with faked.connect() as db:
            for kind in ["twitter", "base64id"] if number % 20 == 0 else ["twitter"]:
                made.add(db.execute(f"SELECT {KINDS[kind]}").fetchall(), [kind])
    together = [faked.connect() for _ in range(16)]
    try:
        with Background(*(functools.partial(made.make, db, 1) for db in together)):
            pass
        assert {kind: len(ids) for kind, ids in made.ids.items()} == {"twitter": 216, "base64id": 26, "sno": 16}
        ticks = """SELECT count(DISTINCT flake_timestamp(a::bigint)), count(DISTINCT flake_timestamp(b::bigint, 'base64id')),
                          count(DISTINCT sno_timestamp(c::sno)) FROM unnest(%s::text[], %s::text[], %s::text[]) s(a, b, c)"""
        assert faked.sql(ticks, *map(list, made.ids.values())) == [(1, 1, 1)]
        # A session that is far enough ahead waits, and the wait can be canceled.
        with pytest.raises(psycopg.errors.QueryCanceled), cancelled_once(waits_in_ticks, faked, together[0]):
            made.make(together[0], 5000)
    finally:
        [db.close() for db in together]
    assert faked.value("SELECT overflow_waits FROM flake_stat") == 0, "the tick has more IDs"


def kill_a_backend(server, made):
    """Kills a session that has made IDs or was refused."""
    with server.connect() as victim, server.connect() as other:
        made.make_each(victim, 10)
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        # Until the server has noticed, new sessions may connect that are disconnected a moment later.
        pytest.raises(psycopg.OperationalError, other.execute, f"SELECT pg_sleep({LONG})")
    wait_for_server(server)


@pytest.mark.matrix
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
            # Other sessions notice it too.
            time.sleep(2)
    assert reported() == ["back", "ahead"]
    assert faked.value("SELECT clock_changes FROM flake_stat") == 2
    assert faked.value("SELECT longest_wait FROM flake_stat").total_seconds() < 50


def test_sessions_in_the_procs_of_other_processes_make_no_id_twice(faked):
    """Replication sessions have procs above the clients' procs, as background workers do."""
    faked.set_clock("2031-01-01 00:00:00")
    made = Made()
    together = [faked.connect(**how) for how in [{}, {"replication": "database"}] for _ in range(6)]
    try:
        for db in together:
            for kind, call in KINDS.items():
                made.add(db.execute(f"SELECT {call} FROM generate_series(1, 2)").fetchall(), [kind])
        assert {len(ids) for ids in made.ids.values()} == {24}
        assert faked.value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'walsender'") == 6
    finally:
        [db.close() for db in together]


def test_backends_that_end_by_exit_make_no_id_twice(servers):
    """A library may call libc's exit(). PostgreSQL's callbacks run then too, but after the destructors of this thread."""
    server = servers("max_connections=6", "superuser_reserved_connections=0", "max_wal_senders=0", clock="+0")
    server.sql(f"CREATE FUNCTION libc_exit(integer) RETURNS void STRICT LANGUAGE c AS '{server.compile('exit', EXIT)}'")
    server.sql(MAKE, 1)
    made = Made()
    # There are more sessions than procs, so that every proc is used again.
    for number in range(20):
        server.set_clock(at(number * 0.004))
        with server.connect() as db:
            made.make(db, 3)
            with pytest.raises(psycopg.OperationalError):
                db.execute("SELECT libc_exit(0)")
    wait_for_server(server)
    assert len(made) == 180
    assert server.value("SELECT sessions FROM flake_stat") == 0
    assert "FATAL" not in (server.dir / "server.log").read_text()
