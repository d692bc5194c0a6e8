"""Servers start again, with other settings and clocks that were set meanwhile."""

import time


def starts(node):
    node.disturbed = time.monotonic()
    node.now_is(life=node.maker.life + 1)


def relaunch(cluster, node, seconds=0, settings=(), **what):
    """Its clock is set by so many seconds before."""
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
    """Another number, which was nobody else's."""
    number %= node.maker.count
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
    """Another server goes on as this node."""
    node.past.append(node.server)
    node.server = server
