"""Sessions that end in the middle of a call, or leave before a crash."""

import concurrent.futures

import psycopg
import pytest

from clients import Made
from standing_clock import SESSIONS, at, make, make_in_all, pass_through, running, server_at_0, sessions
from test_mark_file import stuck_disk
from waiting import wait_until

WAITING = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s) AND wait_event_type = 'Extension'"
LOCKED = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s) AND wait_event_type = 'Lock'"


@pytest.mark.matrix
@pytest.mark.parametrize("call", ["flake_next('twitter')", "sno_next()"])
def test_sessions_that_end_while_they_ask_for_time_keep_nobody_waiting(own_servers, call):
    """The next owners of their procs make other IDs, and none of them waits."""
    server, made = server_at_0(own_servers), Made()

    def ask(db):
        with pytest.raises(psycopg.Error):
            db.execute(f"SELECT {call}")

    with sessions(server) as dbs, concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
        for db in dbs:
            make(db, made)
        pids = [db.info.backend_pid for db in dbs]
        with stuck_disk(server):
            server.set_clock(at(10))
            asking = [pool.submit(ask, db) for db in dbs]
            # All sessions except for the one that writes.
            wait_until(lambda: len(server.sql(WAITING, pids)) == SESSIONS - 1)
            server.sql("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", pids)
        [asked.result() for asked in asking]
    make_in_all(server, made)
    pass_through(server, made, 3)


@pytest.mark.matrix
@pytest.mark.parametrize("call", ["flake_next('twitter')", "flake_next('discord')"])
def test_sessions_that_end_while_the_page_is_locked_keep_nobody_waiting(own_servers, call):
    """Whether they have a generator or begin one, sessions of their database and of others continue at once."""
    server, made = server_at_0(own_servers), Made()
    server.sql("CREATE ROLE owns LOGIN")
    server.sql("CREATE DATABASE other OWNER owns")
    with server.session(dbname="other", user="owns") as owner:
        owner.execute("CREATE EXTENSION flake")

        def ask(db):
            with pytest.raises(psycopg.OperationalError):
                db.execute(f"SELECT {call}")

        with sessions(server, dbname="other", user="owns") as dbs, concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
            for db in dbs:
                make(db, made)
            server.set_clock(at(10))
            owner.execute("BEGIN; DROP EXTENSION flake")
            pids = [db.info.backend_pid for db in dbs]
            asking = [pool.submit(ask, db) for db in dbs]
            wait_until(lambda: len(owner.execute(LOCKED, (pids,)).fetchall()) == SESSIONS)
            owner.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", (pids,))
            [asked.result() for asked in asking]
        owner.execute("ROLLBACK")
    make_in_all(server, made)
    make_in_all(server, made, dbname="other", user="owns")


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_nobody_waits_after_a_restart(own_servers, mode):
    """IDs lead by what was reserved, which is shown, and which passes."""
    server, made = server_at_0(own_servers), Made()
    make_in_all(server, made)
    server.stop(mode)
    server.launch()
    with server.connect() as db:
        made.add(db.execute("SELECT flake_next('twitter')::text FROM generate_series(1, 2)").fetchall(), ["twitter"])
    assert 0 < server.value("SELECT extract(epoch FROM lead)::float FROM flake_stat") <= 4
    server.set_clock(running(10))
    with server.connect() as db:
        make(db, made)
    assert server.value("SELECT lead FROM flake_stat").total_seconds() < 0.1
