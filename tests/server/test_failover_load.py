"""An old primary that goes on for a moment, and failovers under load."""

import os
import time

import psycopg
import pytest

from clients import KINDS, Load, Made
from standing_clock import TABLE, at, fail_over, fast_enough, goes_on, insert, pass_through, server_at_0, stop_replaying
from waiting import Background, wait_until

SOAK = int(os.environ.get("FLAKE_SOAK", "1"))


@pytest.mark.parametrize("idle", [False, True], ids=["busy", "idle"])
@pytest.mark.parametrize("lag", [0, 1])
def test_the_old_primary_goes_on(own_servers, idle, lag):
    """The new one begins two seconds after its promotion, so that both can run for this long together. IDs that were not
    replicated are covered too."""

    def is_played():
        old, made = server_at_0(own_servers), Made()
        new = own_servers(standby_of=old, clock=at(100))
        old.set_clock(at(100 - lag))
        if not idle:
            insert(old, made)
        new.wait_for_replay(old)
        stop_replaying(new)
        if lag and not idle:
            old.set_clock(at(99.5))
            insert(old, made)
        instants = [100, 100.5] + [101, 101.9] * (not lag)
        if not goes_on(old, new, made, *instants):
            return False
        old.stop("immediate")
        pass_through(new, made, *instants)
        return True

    fast_enough(is_played)


def load(server, made, max_clock_wait):
    """Eight sessions wait until the present is free, and make IDs for a while."""

    def make():
        with server.connect() as db:
            db.execute(f"SET flake.max_clock_wait = '{max_clock_wait}'")
            for _ in range(20):
                made.make(db, 20)

    with Background(*[make] * 8):
        pass


def inserting(server):
    """Eight sessions that commit rows until the end of a `with`."""

    def insert_rows():
        with server.connect() as db:
            while not sessions.ends.is_set():
                db.execute("INSERT INTO kept SELECT FROM generate_series(1, 5)")

    sessions = Background(*[insert_rows] * 8)
    return sessions


def wait_for_rows(server):
    wait_until(lambda: server.value("SELECT count(*) FROM kept") > 1000)


@pytest.mark.parametrize("round", range(SOAK))
def test_failover_under_load_where_clocks_are_equal(own_servers, round):
    """All IDs of the old primary count, those too that were made after the promotion or not committed. To wait some seconds is no
    error, however short the sessions' patience."""
    old, made = own_servers(clock="+0"), Made()
    old.sql(TABLE)
    new = own_servers(standby_of=old, clock="+0")
    with Load(old, made, sessions=4), inserting(old):
        wait_for_rows(new)
        new.promote()
    old.stop("immediate")
    made.add(new.sql("SELECT * FROM kept"))
    load(new, made, "0")


@pytest.mark.parametrize("round", range(SOAK))
def test_failover_under_load_where_the_clock_is_behind(own_servers, round):
    """The new primary makes IDs in the milliseconds of the last commits, whose records are not in the order of their times."""
    primary, replicated = own_servers(clock="+0"), Made()
    primary.sql(TABLE)
    standby = own_servers(standby_of=primary, clock="-3600")
    with standby.connect() as db:
        for call in KINDS.values():
            pytest.raises(psycopg.errors.ReadOnlySqlTransaction, db.execute, f"SELECT {call}")
    with inserting(primary):
        wait_for_rows(primary)
    last, = primary.sql("SELECT extract(epoch FROM max(flake_timestamp(twitter::bigint)))::float FROM kept")[0]
    fail_over(primary, standby)
    replicated.add(standby.sql("SELECT * FROM kept"))
    with standby.connect() as db:
        assert replicated.make_each(db, 1) == list(KINDS)
    standby.set_clock(f"{last - time.time() - 0.5:+f}")
    load(standby, replicated, "1min")
