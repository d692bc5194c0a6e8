"""Copies of a server's files and databases: they are whole, and make none of the original's IDs again, whatever their clocks say.

What a copy cannot know, IDs that were made after it was taken, takes a number of its own, a clock that is right, or
flake_start_above.
"""

import os
import signal
import subprocess

import pytest

import everything
from clients import Made
from standing_clock import at, attempts, insert, make_in_all, pass_through, running
from test_failover_load import inserting
from test_restored import recover

# The copy is taken at 60. The original makes IDs afterwards, which the copy does not know.
AFTERWARDS = [120, 180]


def original(own_servers):
    """A server whose clock is at 60, what its tables have in the beginning, and the IDs that it has made at 0 and at 60."""
    server, made = everything.server_with_everything(own_servers, "flake.node_count=2")
    insert(server, made)
    server.set_clock(at(60))
    insert(server, made)
    return server, made


def goes_on(server):
    """The IDs that it makes afterwards."""
    later = Made(everything.KINDS)
    for seconds in AFTERWARDS:
        server.set_clock(at(seconds))
        insert(server, later)
    return later


# Ways to copy, each with what happens to the original between the copy and the moment when the copy can start: it goes on. They
# return the copy, whose clock is at 0.


def base_backup(own_servers, server, proceed):
    copied = own_servers(copy_of=server, clock=at(0))
    return copied, proceed(), copied.launch


def files_during_a_backup(own_servers, server, proceed):
    """Of a server that runs, between pg_backup_start and pg_backup_stop."""
    with server.connect() as db:
        db.execute("SELECT pg_backup_start('copy', true)")
        copied = own_servers(snapshot_of=server, clock=at(0))
        label, = db.execute("SELECT labelfile FROM pg_backup_stop(false)").fetchone()
    copied.write("backup_label", label)
    subprocess.run(["cp", "-a", f"{server.dir}/data/pg_wal/.", f"{copied.dir}/data/pg_wal"], check=True)
    return copied, proceed(), copied.launch


def processes(server):
    """The postmaster first."""
    postmaster = int((server.dir / "data" / "postmaster.pid").read_text().split()[0])
    found = subprocess.run(["pgrep", "-P", str(postmaster)], check=True, capture_output=True, text=True)
    return [postmaster, *map(int, found.stdout.split())]


def files_at_an_instant(own_servers, server, proceed):
    """As a snapshot of the file system has them, under load."""
    with inserting(server):
        stopped = processes(server)[:1]
        try:
            # It makes no more processes then.
            os.kill(stopped[0], signal.SIGSTOP)
            for process in processes(server)[1:]:
                os.kill(process, signal.SIGSTOP)
                stopped.append(process)
            copied = own_servers(snapshot_of=server, clock=at(0))
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)
    return copied, proceed(), copied.launch


def recovery_to_a_time(own_servers, server, proceed):
    copied = own_servers(copy_of=server, clock=at(0))
    later = proceed()
    return copied, later, lambda *settings: recover(copied, server, "recovery_target_time=2030-01-01 00:01:30+00", *settings)


WAYS = pytest.mark.parametrize(
    "way", [base_backup, files_during_a_backup, files_at_an_instant, recovery_to_a_time], ids=lambda way: way.__name__
)


@WAYS
def test_beside_the_original(own_servers, way):
    """Under a number of its own nothing else is needed."""
    server, made = original(own_servers)
    with server.connect() as db:
        before = everything.seen(db)
    copied, later, launch = way(own_servers, server, lambda: goes_on(server))
    launch("flake.node_id=1")
