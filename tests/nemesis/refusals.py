"""Refusals: errors instead of IDs, how long each lasted, and whether the guarantee allows it."""

import collections
import time

import psycopg

# Errors that a client gets from a server that is killed, restarted, stopped or full.
OPERATIONAL = {"57P01", "57P02", "57P03", "57014", "08000", "08001", "08003", "08006", "53300"}
FULL = {"53100", "42501", "58030"}
# Errors of prepared transactions of other clients, of cursors in a failed transaction, and of options that the server refuses.
ORDINARY = {"42704", "34000", "25P02", "25006", "55P02", "55000", "40001"}
# Details of SQLSTATE 55000, see the calls of Error::not_ready in src. A clock is not a reason for an error. The first one lasts
# until the end of the tick.
USED_UP = "has no IDs in the current tick"
UNSEEN = "This session cannot see flake.node_id"  # after a start, if the first client has hostile settings


class Refusals:
    """Counts refusals, and how long each has lasted by the server's own clock."""

    def __init__(self, cluster):
        self.cluster, self.oracle = cluster, cluster.oracle
        self.counts, self.since, self.longest = collections.Counter(), {}, {}
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

    def refused(self, node, batch, error):
        self.judge(node, error, str(batch))
        state, key, clock = error.sqlstate, (node.name, batch.database, batch.kind), node.clock.now()
        begun = self.since.setdefault(key, {}).setdefault(state, min(batch.clock, clock))
        name = state or "connection lost"
        self.longest[name] = max(self.longest.get(name, 0), clock - begun)
        recovers = batch.makers[0].recovers or node.maker.recovers
        if not recovers and state == "25006" and "recovery" in str(error):
            self.oracle.fail(f"refused as on a standby: {batch}: {error}")
        detail = error.diag.message_detail or ""
        if state == "55000" and USED_UP not in detail and UNSEEN not in detail:
            self.oracle.fail(f"refused for no reason of the guarantee: {batch}: {error}")

    def served(self, node, batch):
        key = (node.name, batch.database, batch.kind)
        self.since.pop(key, None)
