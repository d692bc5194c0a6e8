"""Clients that tail a table up to the horizon, where the extension has one: no row may come below what they have read."""

import contextlib
import datetime
import itertools
import threading
import time

import psycopg

from . import LONG
from .cluster import DATABASES
from .layouts import TAILED

FIRST = datetime.datetime(2025, 1, 2, tzinfo=datetime.UTC)


def union(condition):
    """Rows of all tables that are tailed, where their IDs are above or below instants."""
    select = "SELECT '{0}', id::text, token, NULL::timestamptz FROM tailed_{0} WHERE " + condition
    last, horizon = "%(last)s::timestamptz", "flake_horizon()"
    return " UNION ALL ".join(select.format(kind, last=how % last, horizon=how % horizon) for kind, (_, how, _) in TAILED.items())


TAIL = union("id >= {last} AND id < {horizon}")
TAIL += " UNION ALL SELECT NULL, NULL, NULL, flake_horizon()"
ABOVE = union("id >= {last}")
BELOW = union("id < {last}")


class Consumer:
    """Follows the primary among some servers in one database, whatever its number. It begins anew where a superuser has given
    time back."""

    def __init__(self, cluster, names, database):
        self.cluster, self.database = cluster, database
        self.nodes = [cluster.nodes[name] for name in names]
        self.source, self.last, self.seen, self.passed = 0, FIRST, set(), 0
        self.turn = threading.Lock()
        for node in self.nodes:
            node.consumers[database] = self

    def primary(self):
        return next((node for node in self.nodes if node.is_primary and not node.parting), None)

    def accepted(self):
        return sum(node.accepted for node in self.nodes)

    def horizon_of(self, node):
        """What this server, or the primary before it, has returned."""
        return self.last if node is self.primary() and self.source == self.accepted() else None

    def read(self, and_below=False, older=False):
        """What has come since, and whether something came below."""
        with self.turn:
            node, source = self.primary(), self.accepted()
            if node is None:
                return
            if source != self.source:
                self.last, self.seen, self.source = FIRST, set(), source
            with psycopg.connect(host=str(node.server.dir), user="postgres", dbname=self.database, autocommit=True) as db:
                if older:
                    # Its snapshot is.
                    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_sleep(0.1)")
                *rows, (*_, horizon) = db.execute(TAIL, {"last": self.last}).fetchall()
                self.seen.update(row[:2] for row in rows)
                self.passed += len(rows)
                self.last = max(self.last, horizon)
                if and_below:
                    db.execute("ROLLBACK")
                    self.check(node, db.execute(BELOW, {"last": self.last}).fetchall())

    def check(self, node, rows):
        batches = self.cluster.oracle.batches
        for kind, id, token, _ in rows:
            if (kind, id) not in self.seen and self.source == self.accepted():
                self.cluster.oracle.fail(f"a consumer of {node.name} was at {self.last} and had not seen {id}: {batches[token]}")
                self.seen.add((kind, id))

    def run(self, ends):
        for turn in itertools.count():
            if ends.wait(0.1):
                return
            with contextlib.suppress(psycopg.Error):
                self.read(turn % 50 == 0, turn % 3 == 0)

    def read_to_the_end(self, node):
        """When all transactions have ended, the horizon passes every row."""
        deadline = time.monotonic() + LONG
        while True:
            with contextlib.suppress(psycopg.Error), node.server.connect(dbname=self.database) as db:
                self.read(and_below=True)
                if not db.execute(ABOVE, {"last": self.last}).fetchall():
                    return
            if time.monotonic() > deadline:
                self.cluster.oracle.fail(f"the horizon of {node.name} in {self.database} does not pass {self.last}")
                return
            time.sleep(0.3)


@contextlib.contextmanager
def consumers(cluster):
    """One for each database of the first servers and of the other node."""
    cluster.consumers = []
    if cluster.has_horizon:
        cluster.consumers = [Consumer(cluster, names, database) for names in ["abc", "d"] for database in DATABASES[:2]]
    ends = threading.Event()
    threads = [threading.Thread(target=consumer.run, args=(ends,)) for consumer in cluster.consumers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join()
