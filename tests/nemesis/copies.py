"""Copies of a data directory: base backups that start under a number of their own, and copied files that start under the
original's number."""

import itertools
import signal
import time

from conftest import signalled

from .cluster import Node
from .failover import parting
from .oracle import Branch
from .shape import MOST_CONNECTIONS
from .starts import end, relaunch, replace
from .workload import load_on

ALIKE = 1000  # is added to the count of starts: two servers with copies of one flake.mark must not have equal counts


def copy(cluster, node, number, seconds):
    """Starts a base backup beside its original, under a number of its own."""
    cluster.settle()
    if number >= node.maker.count:
        return
    copied = made(cluster, node, copy_of=node.server)
    settings = f"flake.node_id={number}", f"flake.node_count={node.maker.count}", f"max_connections={MOST_CONNECTIONS}"
    run_beside(cluster, node, copied, seconds, settings, lambda name: {"number": number, "branch": Branch(name)})


def double(cluster, node, how, seconds):
    """Starts a copy of a server's files beside the server, under the same number."""
    copied, branch = taken(cluster, node, how, "beside")
    if not node.up:
        relaunch(cluster, node)
    life = node.maker.life + ALIKE
    run_beside(cluster, node, copied, seconds, (), lambda name: {"branch": branch, "memory": node.maker.memory, "life": life})


def take_back(cluster, node, how, seconds, back):
    """Starts an earlier copy of a server's files in its place, right after the copy or after the server has run for a while."""
    if seconds:
        cluster.part(node)
    copied, branch = taken(cluster, node, how, "instead")
    if seconds:
        if not node.up:
            relaunch(cluster, node)
        time.sleep(seconds)
    end(node, "immediate")
    if seconds:
        node.now_is(branch=branch)
    replace(node, copied)
    cluster.set_clock(node, node.clock.offset)
    relaunch(cluster, node, back)
    node.parting = False


def taken(cluster, node, how, copied):
    """Copies the disk of a server that is frozen or was stopped. Returns the copy, and the branch of the WAL that begins
    there."""
    cluster.settle()
    stopped = []
    if how == "paused":
        branch = parting(cluster, node, node, copied)
        stopped = node.server.freeze()
    else:
        end(node, how)
        branch = parting(cluster, node, node, copied)
    try:
        return made(cluster, node, snapshot_of=node.server), branch
    finally:
        signalled(stopped, signal.SIGCONT)
        node.disturbed = time.monotonic()


def made(cluster, node, **whose):
    return cluster.make(**whose, clock=f"{node.clock.offset:+f}", pg_config=node.server.pg_config)


def run_beside(cluster, node, server, seconds, settings, who):
    """Runs a copy for a while as a server of its own, with load."""
    name = next(name for name in map("e{}".format, itertools.count(1)) if name not in cluster.nodes)
    copied = Node(name, node.maker.number, Branch(name), node.maker.count)
    copied.now_is(**who(name))
    copied.server, copied.clock.offset = server, node.clock.offset
    server.launch(*settings)
    copied.up = True
    cluster.nodes[name] = copied
    with load_on(cluster, [copied], name):
        time.sleep(seconds)
    end(copied, "immediate")
