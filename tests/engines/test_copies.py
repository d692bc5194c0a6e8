"""Copies of a server's files and of databases: they are whole, and make none of the original's IDs again, whatever the clock
shows.

A copy does not know the IDs that the original makes after the copy was taken. So a copy beside the original has a number of its
own, and a copy in its place is given them by flake_start_above, unless it was recovered.
"""

import signal
import subprocess

import pytest

import everything
from clients import Made
from conftest import signalled
from standing_clock import at, insert, next_unit, pass_through
from test_restored import recover
from waiting import Background, wait_until

# When the original makes IDs that a copy taken at 60 does not know.
AFTERWARDS = [120, 180]


def go_on(server, made):
    for seconds in AFTERWARDS:
        server.set_clock(at(seconds))
        insert(server, made)
    return made


# The ways to copy. Each takes the copy, lets the original run, and returns the copy, whose clock is at 0, with what starts it.


def base_backup(own_servers, server, made):
    copied = own_servers(copy_of=server, clock=at(0))
    go_on(server, made)
    return copied, copied.launch


def recovery_to_a_time(own_servers, server, made):
    copied = own_servers(copy_of=server, clock=at(0))
    go_on(server, made)
    return copied, lambda *settings: recover(copied, server, "recovery_target_time=2030-01-01 00:01:30+00", *settings)


def files_during_a_backup(own_servers, server, made):
    with server.connect() as db:
        db.execute("SELECT pg_backup_start('copy', true)")
        copied = own_servers(snapshot_of=server, clock=at(0))
        label, = db.execute("SELECT labelfile FROM pg_backup_stop(false)").fetchone()
    copied.write("backup_label", label)
    subprocess.run(["cp", "-a", f"{server.dir}/data/pg_wal/.", f"{copied.dir}/data/pg_wal"], check=True)
    go_on(server, made)
    return copied, copied.launch


def files_of_an_instant(own_servers, server, made):
    """Copies the files at one instant, as a snapshot of a file system does, while rows are written."""
    server.sql("CREATE TABLE written (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")

    def write():
        with server.connect() as db:
            while not writers.ends.is_set():
                db.execute("INSERT INTO written SELECT FROM generate_series(1, 5)")

    writers = Background(*[write] * 4)
    with writers:
        wait_until(lambda: server.value("SELECT count(*) > 1000 FROM written"))
        stopped = server.freeze()
        try:
            copied = own_servers(snapshot_of=server, clock=at(0))
        finally:
            signalled(stopped, signal.SIGCONT)
    made.add(server.sql("SELECT id::text FROM written"), ["twitter"])
    go_on(server, made)
    return copied, copied.launch


WAYS = pytest.mark.parametrize(
    "way", [base_backup, recovery_to_a_time, files_during_a_backup, files_of_an_instant], ids=lambda way: way.__name__
)


@pytest.fixture
def original(own_servers):
    """A server whose clock is at 60, the content of its tables, and the IDs that it made at 0 and at 60."""
    server, made = everything.server_with_everything(own_servers, "flake.node_count=2")
    insert(server, made)
    server.set_clock(at(60))
    insert(server, made)
    with server.connect() as db:
        return server, everything.seen(db), made


@WAYS
def test_a_copy_beside_the_original_makes_none_of_its_ids(own_servers, original, way):
    server, before, made = original
    copied, launch = way(own_servers, server, made)
    launch("flake.node_id=1")
    everything.assert_whole(copied, before)
    pass_through(copied, made, 0, 60, *AFTERWARDS)
    everything.assert_well(copied)


@WAYS
@pytest.mark.parametrize("told", [False, True], ids=["untold", "told"])
def test_a_copy_in_the_originals_place_makes_none_of_its_ids(own_servers, original, way, told):
    server, before, made = original
    unknown, again = Made(everything.KINDS), Made(everything.KINDS)
    copied, launch = way(own_servers, server, unknown)
    server.stop("immediate")
    launch()
    everything.assert_whole(copied, before)
    if told:
        copied.sql("SELECT flake_start_above(%s, 'twitter', force => true)", max(map(int, unknown.ids["twitter"])))
    pass_through(copied, again, 0, 60, *AFTERWARDS)
    assert again.common(made) == set()
    # A recovery begins another timeline, whose IDs are others. Other copies stay on the original's.
    assert bool(again.common(unknown)) == (way is not recovery_to_a_time and not told)
    everything.assert_well(copied)


@pytest.mark.parametrize("strategy", ["wal_log", "file_copy"])
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_database_from_a_template_makes_none_of_its_ids(own_servers, original, strategy, mode):
    """Both databases stay in use, and after a restart or a crash the clock is behind."""
    server, before, made = original
    server.sql(f"CREATE DATABASE copied TEMPLATE postgres STRATEGY {strategy}")
    everything.assert_whole(server, before, dbname="copied")
    for dbname in ["copied", "postgres"]:
        next_unit(server)
        insert(server, made, dbname=dbname)
    server.restart(mode=mode, while_stopped=lambda: server.set_clock(at(0)))
    # The second interval ends after the IDs that the first database has made in the meantime.
    for dbname, end in [("copied", 60), ("postgres", 3600)]:
        pass_through(server, made, 0, 60, end, dbname=dbname)
        everything.assert_well(server, dbname=dbname)
