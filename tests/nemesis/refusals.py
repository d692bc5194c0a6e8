"""What servers answered instead of IDs, and whether the guarantee allows it."""

import collections
import datetime
import re
import time

# How far above all clocks IDs may begin: what is granted, the lead, the wait after a promotion, and as much again.
AHEAD = 10
# What a client of a server that is killed, restarted, stopped or full may be told.
OPERATIONAL = {"57P01", "57P02", "57P03", "57014", "08000", "08001", "08003", "08006", "53300", None}
FULL = {"53100", "42501", "58030"}
# Two-phase commit of another client's, cursors of a transaction that failed, and what a server refuses of a client's options.
ORDINARY = {"42704", "34000", "25P02", "25006", "55P02", "55000", "40001"}
UNTIL = re.compile(r"has reached (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)\+00")


class Refusals:
    """Counts them, and how long each has lasted by the server's own clock."""

    def __init__(self, cluster):
        self.cluster, self.oracle = cluster, cluster.oracle
        self.counts, self.since, self.longest = collections.Counter(), {}, {}
        self.thrown = 0

    def thrown_out(self, node, error):
        self.thrown += 1
        self.judge(node, error, "a connection")

    def judge(self, node, error, what):
        """An answer that nothing explains is a failure."""
        state = error.sqlstate
        self.counts[state or "connection lost"] += 1
        full = state in FULL and time.monotonic() - node.broken_disk < 10
        if state not in OPERATIONAL | ORDINARY and not full:
            self.oracle.fail(f"{what} of {node.name} ({node.maker.life}): {state} {error}")

    def refused(self, node, batch, error, clock_went_on):
        self.judge(node, error, str(batch))
        state, key = error.sqlstate, (node.name, batch.database, batch.kind)
        clock = node.clock.now()
        begun = self.since.setdefault((*key, state), min(batch.clock, clock))
        self.longest[state] = max(self.longest.get(state, 0), clock - begun)
        primary = not batch.makers[0].recovers and not node.maker.recovers
        if state == "25006" and primary and "recovery" in str(error):
            self.oracle.fail(f"refused as on a standby: {batch}: {error}")
        hint = error.diag.message_hint or ""
        found = UNTIL.search(hint) if state == "55000" else None
        if found and clock_went_on:
            until = datetime.datetime.fromisoformat(found[1] + "+00:00").timestamp()
            tick = self.cluster.layouts[batch.kind].tick
            highest = max(self.cluster.note_clocks(), clock)
            if until > highest + AHEAD + tick:
                self.oracle.fail(f"shut until {until:.3f}, when no clock was above {highest:.3f}: {batch}: {error}")
            if until < batch.clock - 0.5:
                self.oracle.fail(f"shut until {until:.3f}, although the clock was at {batch.clock:.3f}: {batch}: {error}")

    def served(self, node, batch):
        key = (node.name, batch.database, batch.kind)
        for state in ["55000", "25006", "57014"]:
            self.since.pop((*key, state), None)


