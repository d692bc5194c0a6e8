"""Clients that tail a table up to the horizon, where the extension has one: no row may come below what they have read."""

import contextlib
import itertools
import threading
import time

import psycopg

from . import LONG
from .cluster import DATABASES

TAIL = "SELECT id, token FROM outbox WHERE id > %s AND id < flake_min(flake_horizon()) ORDER BY id"
BELOW = "SELECT id, token FROM outbox WHERE id <= %s"


class Consumer:
    """Follows the primary among some servers in one database. It begins anew where another number makes the IDs, or where a
    superuser has given time back."""

    def __init__(self, cluster, names, database):
        self.cluster, self.names, self.database = cluster, names, database
        self.source, self.last, self.seen, self.passed = None, 0, set(), 0
        self.turn = threading.Lock()

    def primary(self):
        nodes = [self.cluster.nodes[name] for name in self.names]
        return next((node for node in nodes if node.is_primary and not node.parting), None)

    def read(self, and_below=False):
        """What has come since, and whether something came below."""
        with self.turn:
            node = self.primary()
            if node is None:
                return
            source = node.maker.number, node.maker.count, node.accepted
            if source != self.source:
                self.source, self.last, self.seen = source, 0, set()
            with psycopg.connect(host=str(node.server.dir), user="postgres", dbname=self.database, autocommit=True) as db:
                rows = db.execute(TAIL, (self.last,)).fetchall()
                self.seen.update(id for id, _ in rows)
                self.passed += len(rows)
                self.last = max([self.last, *(id for id, _ in rows)])
                if and_below:
                    self.check(node, db.execute(BELOW, (self.last,)).fetchall())

    def check(self, node, rows):
        """Rows of other numbers may come late: the horizon is that of the server that makes IDs."""
        batches = self.cluster.oracle.batches
        for id, token in rows:
            if id not in self.seen and all(maker.number == self.source[0] for maker in batches[token].makers):
                self.cluster.oracle.fail(f"a consumer of {node.name} was at {self.last} and had not seen {id}: {batches[token]}")
                self.seen.add(id)

    def run(self, ends):
        for turn in itertools.count():
            if ends.wait(0.1):
                return
            with contextlib.suppress(psycopg.Error):
                self.read(turn % 50 == 0)

    def read_to_the_end(self, node):
        """When all transactions have ended, the horizon passes every row."""
        deadline = time.monotonic() + LONG
        while True:
            with contextlib.suppress(psycopg.Error), node.server.connect(dbname=self.database) as db:
                self.read(and_below=True)
                if self.last == db.execute("SELECT COALESCE(max(id), 0) FROM outbox").fetchone()[0]:
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
