"""Carries out the steps of a plan: each function has the name of a step."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import psycopg

from clients import wait_for_server
from conftest import signalled
from waiting import wait_until

from . import LONG, ending
from .cluster import DATABASES, is_alive
from .copies import copy, double, take_back
from .failover import fail_over, follow, restore
from .starts import count, lose_mark, relaunch, renumber, restart

__all__ = ["copy", "count", "double", "fail_over", "follow", "lose_mark", "renumber", "restart", "restore", "take_back"]
SHORT = 60  # seconds for sessions to notice a signal that nothing keeps from it
OTHERS = """SELECT count(*) FROM pg_stat_activity
            WHERE pid <> pg_backend_pid() AND backend_type IN ('client backend', 'parallel worker')"""
MAKE = "SELECT flake_next('twitter')"
# Errors of a server that cannot make IDs at this time.
REFUSED = (psycopg.OperationalError, psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.ReadOnlySqlTransaction)


def load(cluster, seconds):
    time.sleep(seconds)


def clock(cluster, node, seconds):
    cluster.set_clock(node, node.clock.offset + seconds)


def jitter(cluster, node, steps):
    """Sets the clock several times, by a little each time."""
    for seconds in steps:
        cluster.set_clock(node, node.clock.offset + seconds)
        time.sleep(0.15)


def catch_up(cluster, node):
    """Sets the clock to the highest instant that any clock has shown."""
    cluster.set_clock(node, cluster.note_clocks() - time.time())


def stand_still(cluster, node, seconds):
    instant = int(node.clock.now() * 1e6) / 1e6
    cluster.set_clock(node, still=instant)
    time.sleep(seconds)
    cluster.set_clock(node, instant - time.time())


def pause(cluster, node, seconds):
    """Stops all processes of the server for a while."""
    cluster.stop_processes(node, node.server.processes(), seconds)


def backends(node):
    with contextlib.suppress(psycopg.Error), node.server.connect(connect_timeout=10) as db:
        rows = db.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
        return sorted((pid for pid, in rows), key=lambda _: random.random())
    return []


def pause_one(cluster, node, seconds):
    for pid in backends(node)[:1]:
        cluster.stop_processes(node, [pid], seconds)


def kill_one(cluster, node):
    """Kills a session with SIGKILL. PostgreSQL then ends all sessions and restarts, unless the session had just exited by
    itself."""
    cluster.settle()
    for pid in backends(node)[:1]:
        life = node.maker.life
        node.killed.add(pid)
        node.now_is(life=None)
        signalled([pid], signal.SIGKILL)
        # The postmaster handles the exit of a child before it accepts the next connection.
        wait_until(lambda pid=pid: not pathlib.Path(f"/proc/{pid}").exists())
        wait_for_server(node.server)
        node.disturbed = time.monotonic()
        has_crashed = f"(PID {pid}) was terminated" in node.log
        node.now_is(life=life + 1 if has_crashed else life)


def kill(cluster, node, seconds):
    """Kills the postmaster; its children notice and exit."""
    cluster.settle()
    processes = node.server.processes()
    node.up = False
    signalled(processes[:1], signal.SIGKILL)
    cluster.await_end(node, processes)
    relaunch(cluster, node, seconds)


def terminate(cluster, node):
    for pid in backends(node):
        with contextlib.suppress(psycopg.Error):
            node.server.sql("SELECT pg_terminate_backend(%s)", pid)


def reload(cluster, node, number, seconds):
    """Changes the node number in the configuration of a running server, and changes it back before the next start."""
    cluster.settle()
    if not opened(node):
        return
    node.server.reload(f"flake.node_id={number}")
    time.sleep(seconds)
    node.server.reload(f"flake.node_id={node.maker.number}")


@contextlib.contextmanager
def without_mark(node, seconds):
    """Moves flake.mark away inside a `with`, so that the caller can put another file there."""
    mark = node.server.dir / "data" / "flake.mark"
    kept = mark.rename(mark.with_suffix(".kept"))
    node.broken_disk = time.monotonic() + seconds
    try:
        yield mark
    finally:
        kept.replace(mark)
        node.broken_disk = node.disturbed = time.monotonic()


def fill_disk(cluster, node, seconds):
    """Makes flake.mark read-only for a while, so that writes fail as on a full disk."""
    cluster.settle()
    if opened(node):
        with without_mark(node, seconds) as mark:
            shutil.copyfile(mark.with_suffix(".kept"), mark)
            owner = mark.parent.stat()
            os.chown(mark, owner.st_uid, owner.st_gid)
            mark.chmod(0o400)
            time.sleep(seconds)


def slow_disk(cluster, node, seconds, ends_all):
    """Stops a session in the middle of reading flake.mark, by a pipe in the file's place. All other sessions may be terminated
    then."""
    cluster.settle()
    if not opened(node):
        return
    node.stopped.set()
    with without_mark(node, seconds + LONG) as mark:
        os.mkfifo(mark, 0o666)
        mark.chmod(0o666)
        time.sleep(seconds)
        processes = backends(node) if ends_all else []
        signalled(processes, signal.SIGTERM)
        deadline = time.monotonic() + SHORT
        while sum(map(is_alive, processes)) > 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        left = list(filter(is_alive, processes))
        if len(left) > 1:
            cluster.oracle.fail(f"{len(left)} sessions of {node.name} do not end while one writes")
        both_ends = os.open(mark, os.O_RDWR)
        os.write(both_ends, mark.with_suffix(".kept").read_bytes())
    # Processes that read the pipe see its end, and the next read finds the file in its place again.
    os.close(both_ends)
    node.stopped.clear()


def opened(node):
    """Returns whether the server makes IDs, so that its ledger is open and its node number is in force."""
    with contextlib.suppress(*REFUSED), node.server.connect() as db:
        db.execute("SET statement_timeout = '5s'")
        db.execute(MAKE)
        return (node.server.dir / "data" / "flake.mark").exists()
    return False


def accept_clock(cluster, node):
    """Accepts the clock. Consumers must start over, and a WARNING must be raised if IDs can be below earlier watermarks."""
    consumer, warnings = node.consumers.get("postgres"), []
    returned = consumer and consumer.watermark_of(node)
    cluster.oracle.accept(node)
    with contextlib.suppress(*REFUSED), node.server.connect() as db:
        db.add_notice_handler(warnings.append)
        (accepted,), = db.execute("SELECT flake_accept_clock()").fetchall()
        if returned and accepted < returned and not warnings:
            cluster.oracle.fail(f"{node.name} makes IDs from {accepted} on, and does not warn of {returned}")
    # A client may have asked for a watermark in the meantime.
    cluster.oracle.accept(node)


def start_above(cluster, node, seconds):
    """Calls flake_start_above. All later IDs must be above its argument. As long as the server keeps its number, and the clock
    is neither accepted nor set back, they must be above its result too."""
    above = """WITH given AS MATERIALIZED (SELECT flake_min(clock_timestamp() + %s * interval '1 s') AS id)
               SELECT flake_timestamp(id), flake_start_above(id, 'twitter') FROM given"""
    with contextlib.suppress(*REFUSED):
        whose = node.maker.memory, node.maker.branch
        (node.given, returned), = node.server.sql(above, seconds)
        node.above, node.above_in = (returned, whose), None


def work(cluster, node, clients, pause):
    """Sets how many clients work, and how often consumers read."""
    node.clients = clients
    for consumer in node.consumers.values():
        consumer.pause = pause


def ahead(cluster, node, seconds):
    """Moves the clocks of all servers that share a primary by the same time."""
    for other in cluster.alike(node):
        cluster.set_clock(other, other.clock.offset + seconds)


def align(cluster, node):
    """Sets the clocks of all servers that share a primary to the latest one."""
    latest = max(other.clock.now() for other in cluster.alike(node))
    for other in cluster.alike(node):
        cluster.set_clock(other, latest - time.time())


def leave(cluster, node):
    """Ends all sessions, and checks that the ledger counts none of them any more."""
    cluster.settle()
    work(cluster, node, 0, None)
    for consumer in node.consumers.values():
        with consumer.turn:
            pass
    deadline = time.monotonic() + LONG
    with node.server.connect() as db:
        while db.execute(OTHERS).fetchone()[0]:
            if time.monotonic() > deadline:
                cluster.oracle.fail(f"sessions of {node.name} do not end")
                return
            time.sleep(0.02)
        (ledger, sessions), = db.execute("SELECT ledger, sessions FROM flake_stat").fetchall()
    if sessions:
        cluster.oracle.fail(f"{sessions} sessions of {node.name} count where none is left, and the ledger is {ledger}")


def recreate(cluster, node):
    """Drops and creates the extension in a database of its own."""
    with node.server.connect() as db:
        db.execute("DROP DATABASE IF EXISTS recreated WITH (FORCE)")
        db.execute("CREATE DATABASE recreated TEMPLATE template0")
    with node.server.connect(dbname="recreated") as db:
        for statement in ["CREATE EXTENSION flake", MAKE, "DROP EXTENSION flake", "CREATE EXTENSION flake", MAKE]:
            # The statements that make IDs may be refused. The others must succeed, however busy the machine is.
            db.execute(f"SET statement_timeout = '{3 if statement == MAKE else LONG}s'")
            with contextlib.suppress(psycopg.errors.QueryCanceled, psycopg.errors.ObjectNotInPrerequisiteState):
                db.execute(statement)


def open_up(cluster, node, database):
    """Sets the clock above all used time, and makes IDs of every kind."""
    cluster.settle()
    cluster.set_clock(node, cluster.note_clocks() - time.time() + ending.ABOVE)
    ending.make_all_kinds(cluster, node, DATABASES[database])


def attempt(cluster, step):
    """Carries out one step. A step that a busy server cannot finish in time is reported as a failure."""
    name, *arguments = step
    arguments = [cluster.nodes.get(argument, argument) if isinstance(argument, str) else argument for argument in arguments]
    try:
        globals()[name](cluster, *arguments)
    except (subprocess.CalledProcessError, psycopg.Error, AssertionError, OSError) as error:
        cluster.oracle.fail(f"step {step}: {error!r}")


