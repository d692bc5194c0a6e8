"""Failovers: a standby is promoted, and former primaries return as standbys."""

import contextlib
import signal
import threading
import time

import psycopg

from conftest import signalled

from . import LONG
from .cluster import DATABASES
from .oracle import Branch
from .shape import MOST_CONNECTIONS
from .starts import end, replace, starts

SLOW = 0.15  # how fast crawling clocks go


def fail_over(cluster, old, new, way, seconds, cut, restarted, crawls):
    """Fails over from one server to another. The new primary has replayed all that the old one wrote before; it may lose what
    the old one writes after that."""
    cluster.settle()
    cluster.part(old)
    branch = synced(cluster, old, new)
    with crawling(cluster, [old, new] if crawls else []):
        take_over(cluster, branch, old, new, way, seconds, cut, restarted)


@contextlib.contextmanager
def crawling(cluster, nodes):
    """Slows clocks down inside a `with`, so that little time passes by them even on a busy machine."""
    began, ends = {node: (node.clock.now(), time.monotonic()) for node in nodes}, threading.Event()

    def crawl():
        while not ends.wait(0.1):
            for node, (at, when) in began.items():
                cluster.set_clock(node, still=round(at + (time.monotonic() - when) * SLOW, 6))

    thread = threading.Thread(target=crawl)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
        for node in nodes:
            cluster.set_clock(node, node.clock.now() - time.time())


def take_over(cluster, branch, old, new, way, seconds, cut, restarted):
    if cut is not None:
        new.server.stop_receiving()
        time.sleep(cut)
    if restarted:
        new.server.sql("CHECKPOINT")
        restart_standby(new)
    processes = old.server.processes()
    if way in ("immediate", "fast"):
        end(old, way)
    elif way == "kill":
        # The postmaster's children continue until they notice.
        signalled(processes[:1], signal.SIGKILL)
    elif way == "paused":
        cluster.stop_processes(old, old.server.processes(), seconds)
    old.clients = new.clients = 3
    new.promoting = True
    promote(new)
    branch.timeline = timeline(new.server)
    whose = old.above[1]
    new.now_is(branch=branch, recovers=False)
    if whose == (old.maker.memory, old.maker.branch):
        # The standby, whatever its number, has replayed the page of the database in which flake_start_above was called.
        new.given, new.above, new.above_in = old.given, (old.given, (new.maker.memory, new.maker.branch)), "postgres"
    new.promoting = False
    if way in ("goes on", "paused"):
        time.sleep(seconds + 0.3)
        cluster.settle()
    if way == "kill":
        old.up = False
        cluster.await_end(old, processes)
    else:
        end(old, "immediate")


def promote(node):
    """Promotes a standby."""
    deadline = time.monotonic() + LONG
    with node.server.connect() as db:
        db.execute("SELECT pg_promote(false)")
        while db.execute("SELECT pg_is_in_recovery()").fetchone()[0]:
            assert time.monotonic() < deadline, "a standby is not promoted"
            time.sleep(0.005)


def timeline(server):
    """The timeline of a primary's WAL: the first eight digits of the names of its files."""
    return int(server.value("SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8)"), 16)


def synced(cluster, old, new):
    """Returns the branch that begins where the standby's replay ends now."""
    branch = parting(cluster, old, new)
    new.server.wait_for_replay(old.server)
    return branch


def parting(cluster, old, new, copied=""):
    """Returns a branch that begins at the current end of the WAL."""
    before = old.maker.branch
    return Branch(f"{new.name}{next(cluster.numbers)}", before, time.monotonic(), before.timeline, copied)


def restart_standby(standby):
    standby.up = False
    standby.server.stop()
    standby.disturbed = time.monotonic()
    standby.now_is(life=standby.maker.life + 1)
    standby.server.launch()
    standby.up = True


def follow(cluster, node, primary):
    """Makes a former primary a standby again: pg_rewind removes what the new primary does not have."""
    cluster.settle()
    if node.up:
        node.up = False
        node.server.stop("fast")
    end_prepared(primary)
    primary.server.sql("CHECKPOINT")
    node.server.rewind(primary.server)
    memory = node.maker.memory
    if "no rewind required" not in (node.server.dir / "rewind.log").read_text():
        memory = object()
    node.disturbed, node.parting = time.monotonic(), False
    node.now_is(branch=primary.maker.branch, recovers=True, memory=memory, life=node.maker.life + 1,
                count=primary.maker.count)  # fmt: skip
    settings = [f"max_connections={MOST_CONNECTIONS}", f"flake.node_count={primary.maker.count}"]
    node.server.launch(*settings)
    node.up = True
    node.server.wait_for_replay(primary.server)


def end_prepared(primary):
    """Ends prepared transactions, because pg_rewind can lose some of them (see FORGOTTEN)."""
    for database in DATABASES:
        with primary.server.connect(dbname=database) as db:
            left = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
            for gid, in db.execute(left).fetchall():
                with contextlib.suppress(psycopg.errors.UndefinedObject, psycopg.errors.ObjectNotInPrerequisiteState):
                    db.execute(f"COMMIT PREPARED '{gid}'")


def restore(cluster, node, before, after):
    """Recovers a base backup to a point in time, and puts it in the place of its original."""
    cluster.settle()
    restored = cluster.make(copy_of=node.server, pg_config=node.server.pg_config, clock=f"{node.clock.offset:+f}")
    time.sleep(before)
    cluster.part(node)
    branch = parting(cluster, node, node)
    node.server.sql("SELECT pg_create_restore_point(%s)", branch.name)
    node.server.sql("SELECT pg_switch_wal()")  # so that the restore point is archived
    time.sleep(after)
    end(node, "immediate")
    restored.write("recovery.signal")
    command = f"restore_command=cp {node.server.dir}/data/pg_wal/%f %p"
    replace(node, restored)
    cluster.set_clock(node, node.clock.offset)
    starts(node)
    node.now_is(branch=branch, memory=object())
    restored.launch(command, f"recovery_target_name={branch.name}", "recovery_target_action=promote")
    while restored.value("SELECT pg_is_in_recovery()"):
        assert time.monotonic() < node.disturbed + LONG, "recovery does not end"
        time.sleep(0.05)
    branch.timeline = timeline(restored)
    node.up, node.parting = True, False
