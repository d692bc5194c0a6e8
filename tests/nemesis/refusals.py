"""Refusals: errors instead of IDs, how long each lasted, and whether the guarantee allows it."""

import collections
import datetime
import re
import time
import typing

import psycopg

# How many seconds above all clocks IDs may have to begin: the granted time, and what a busy machine takes.
AHEAD = 8
# Errors that a client gets from a server that is killed, restarted, stopped or full.
OPERATIONAL = {"57P01", "57P02", "57P03", "57014", "08000", "08001", "08003", "08006", "53300"}
FULL = {"53100", "42501", "58030"}
# Errors of prepared transactions of other clients, of cursors in a failed transaction, and of options that the server refuses.
ORDINARY = {"42704", "34000", "25P02", "25006", "55P02", "55000", "40001"}
UNTIL = re.compile(r"has reached (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\+00")
# Other details of SQLSTATE 55000, see the calls of Error::not_ready in src. The first one lasts until the end of the tick.
USED_UP = "has no more IDs in the current tick"
UNSEEN = "This session cannot see flake.node_id"  # after a start, if the first client has hostile settings
CANCELLED = "57014"  # raised by our own cancels; ending.py finds servers that hang


class Shut(typing.NamedTuple):
    """The time from which a server has refused IDs of a kind although nothing has happened to it."""

    undisturbed: tuple
    clock: float
    limit: float  # how long it may refuse, by its own clock


class Refusals:
    """Counts refusals, and how long each has lasted by the server's own clock."""

    def __init__(self, cluster):
        self.cluster, self.oracle = cluster, cluster.oracle
        self.counts, self.since, self.longest = collections.Counter(), {}, {}
        self.shut, self.shut_for = {}, 0.0
        self.thrown = 0

    def thrown_out(self, node, error):
        self.thrown += 1
        self.judge(node, error, "a connection")

    def judge(self, node, error, what):
        """Reports an error that no fault explains."""
        state = error.sqlstate
        self.counts[state or "connection lost"] += 1
        full = state in FULL and time.monotonic() - node.broken_disk < 10
        lost = state is None and isinstance(error, psycopg.OperationalError)
        if state not in OPERATIONAL | ORDINARY and not full and not lost:
            self.oracle.fail(f"{what} of {node.name} ({node.maker.life}): {state} {error}")

    def refused(self, node, batch, error, clock_went_on):
        self.judge(node, error, str(batch))
        state, key, clock = error.sqlstate, (node.name, batch.database, batch.kind), node.clock.now()
        begun = self.since.setdefault(key, {}).setdefault(state, min(batch.clock, clock))
        name = state or "connection lost"
        self.longest[name] = max(self.longest.get(name, 0), clock - begun)
        if not batch.makers[0].recovers and not node.maker.recovers:
            if state == "25006" and "recovery" in str(error):
                self.oracle.fail(f"refused as on a standby: {batch}: {error}")
            detail = error.diag.message_detail or ""
            if state != CANCELLED and USED_UP not in detail and UNSEEN not in detail:
                self.look_at_time(node, batch, error, key)
        if state == "55000":
            self.look_at_reason(node, batch, error, clock_went_on)

    def look_at_reason(self, node, batch, error, clock_went_on):
        detail = error.diag.message_detail or ""
        found = UNTIL.search(error.diag.message_hint or "")
        if found and clock_went_on:
            until = datetime.datetime.fromisoformat(found[1] + "+00:00").timestamp()
            tick = self.cluster.layouts[batch.kind].tick
            highest = max(self.cluster.note_clocks(), node.clock.now())
            if until > highest + AHEAD + tick:
                self.oracle.fail(f"shut until {until:.3f}, when no clock was above {highest:.3f}: {batch}: {error}")
            if until < batch.clock - 0.5:
                self.oracle.fail(f"shut until {until:.3f}, but the clock was at {batch.clock:.3f}: {batch}: {error} {detail}")
        if not found and USED_UP not in detail and UNSEEN not in detail:
            self.oracle.fail(f"refused for no reason of the guarantee: {batch}: {error}")

    def look_at_time(self, node, batch, error, key):
        """Checks that a server makes IDs as soon as its clock is above all used time, if nothing else happens to it."""
        clock, tick = node.clock.now(), self.cluster.layouts[batch.kind].tick
        undisturbed = node.maker, node.clock.steps, node.disturbed, node.broken_disk, node.stopped.is_set()
        shut = self.shut.get(key)
        if shut is None or shut.undisturbed != undisturbed or batch.makers != (node.maker,):
            shut = self.shut[key] = Shut(undisturbed, clock, self.cluster.note_clocks() - clock + AHEAD + tick)
        self.shut_for = max(self.shut_for, clock - shut.clock)
        if clock - shut.clock > shut.limit and not node.stopped.is_set():
            self.oracle.fail(f"shut for {clock - shut.clock:.3f} s, where {shut.limit:.3f} s are the most: {batch}: {error}")

    def served(self, node, batch):
        key = (node.name, batch.database, batch.kind)
        self.shut.pop(key, None)
        self.since.pop(key, None)
