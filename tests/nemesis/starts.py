"""Restarts of servers, with other settings, and with clocks that were set while the server was down."""

import time


def starts(node):
    node.disturbed = time.monotonic()
    node.now_is(life=node.maker.life + 1)


def relaunch(cluster, node, seconds=0, settings=(), **what):
    """Starts a server again, after its clock was set by some seconds."""
    if seconds:
        cluster.set_clock(node, node.clock.offset + seconds)
    starts(node)
    node.now_is(**what)
    node.server.launch(*settings)
    node.up = True


def restart(cluster, node, mode, seconds, settings, **what):
    cluster.settle()
    node.up = False
    node.server.stop(mode)
    relaunch(cluster, node, seconds, [f"{name}={value}" for name, value in settings.items()], **what)


def renumber(cluster, node, number):
    """Restarts the server under a number that no other server uses. If it had another one, what flake_start_above was given binds
    it, and not how far the server was with the number before."""
    number %= node.maker.count
    if number != node.maker.number:
        node.above = node.given, node.above[1]
    restart(cluster, node, "fast", 0, {"flake.node_id": number}, number=number)


def count(cluster, node, nodes):
    restart(cluster, node, "fast", 0, {"flake.node_count": nodes}, count=nodes)


def lose_mark(cluster, node, seconds, mode):
    cluster.settle()
    node.up = False
    node.server.stop(mode)
    (node.server.dir / "data" / "flake.mark").unlink(missing_ok=True)
    relaunch(cluster, node, seconds, memory=object())


def end(node, mode):
    if node.up:
        node.up = False
        node.server.stop(mode)


def replace(node, server):
    """Puts another server in the place of this node."""
    node.past.append(node.server)
    node.server = server
