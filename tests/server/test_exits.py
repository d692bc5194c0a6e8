"""Sessions that exit: the progress that they store, and the time that they give up if they cannot store any."""

import concurrent.futures
import contextlib

import psycopg
import pytest

from clients import Made
from standing_clock import SESSIONS, at, attempts, make, make_in_all, pass_through, running, server_at_0, sessions
from test_mark_file import stuck_disk
from waiting import wait_until

WAITING = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s) AND wait_event_type = 'Extension'"


@pytest.mark.parametrize("call", ["flake_next('twitter')", "sno_next()"])
def test_sessions_that_end_while_they_ask_for_time_give_it_up(own_servers, call):
    """Sessions that end in the middle of a sno store no progress, and the next owners of their slots use no time that was granted
    by then. Sessions that end in the middle of another ID store the progress of their snos."""
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
    # The session that writes may have made an ID at 10 before it ended, so the clock must pass that.
    pass_through(server, made, 0, 3)


LOCKED = "SELECT pid FROM pg_stat_activity WHERE pid = ANY (%s) AND wait_event_type = 'Lock'"


@pytest.mark.parametrize("call", ["flake_next('twitter')", "flake_next('discord')"])
def test_sessions_that_end_while_the_page_is_locked_give_up_no_time(own_servers, call):
    """Nothing was granted to these sessions, whether they have a generator or begin one. The next owners of their slots do not
    wait, and sessions of other databases do not wait either."""
    server = server_at_0(own_servers)
    server.sql("CREATE ROLE owns LOGIN")
    server.sql("CREATE DATABASE other OWNER owns")
    with server.session(dbname="other", user="owns") as owner:
        owner.execute("CREATE EXTENSION flake")

        def ask(db):
            with pytest.raises(psycopg.OperationalError):
                db.execute(f"SELECT {call}")

        with sessions(server, dbname="other", user="owns") as dbs, concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
            for db in dbs:
                make(db, Made())
            server.set_clock(at(10))
            owner.execute("BEGIN; DROP EXTENSION flake")
            pids = [db.info.backend_pid for db in dbs]
            asking = [pool.submit(ask, db) for db in dbs]
            wait_until(lambda: len(owner.execute(LOCKED, (pids,)).fetchall()) == SESSIONS)
            owner.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) pid", (pids,))
            [asked.result() for asked in asking]
        owner.execute("ROLLBACK")
    assert attempts(server, Made()) == set()


@pytest.mark.parametrize("leaves", ["before", "meanwhile"])
def test_a_crash_after_a_session_has_left_makes_no_id_twice(own_servers, leaves):
    """The exit note gives back time from an instant on, but no time of a session that continues or begins after it."""
    server, made = server_at_0(own_servers), Made()
    if leaves == "before":
        make_in_all(server, made)
    with contextlib.ExitStack() as opened:
        dbs = [opened.enter_context(server.connect()) for _ in range(SESSIONS)]
        for db in dbs:
            make(db, made)
        if leaves == "meanwhile":
            with server.session() as other:
                make(other, made)
        # This instant lies in the granted time.
        server.set_clock(at(1.5))
        for db in dbs:
            make(db, made)
        server.stop("immediate")
    server.launch()
    pass_through(server, made, 1.5)


def test_sessions_wait_for_a_restart_whatever_their_patience(own_servers):
    """Time that was granted before the crash ends in three seconds, which is not a fault of the clock."""
    server, made = server_at_0(own_servers), Made()
    with server.connect() as db:
        make(db, made)
        server.stop("immediate")
    server.launch()
    with server.connect() as db, concurrent.futures.ThreadPoolExecutor(1) as pool:
        db.execute("SET flake.max_clock_wait = 0")
        asked = pool.submit(make, db, made)
        wait_until(lambda: asked.done() or server.sql(WAITING, [db.info.backend_pid]))
        server.set_clock(running(4))
        asked.result()
