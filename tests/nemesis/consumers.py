"""Consumers: clients that read tables up to the watermark, on the primary and on its standbys. No row may appear below the
watermark that a consumer has read up to."""

import contextlib
import datetime
import itertools
import random
import threading
import time

import psycopg

from . import LONG
from .cluster import DATABASES
from .layouts import TAILED

FIRST = datetime.datetime(2025, 1, 2, tzinfo=datetime.UTC)


def union(condition, last="%(last)s::timestamptz", watermark="flake_watermark()"):
    """A query for rows of all tailed tables whose IDs satisfy a condition on instants."""
    select = "SELECT '{0}', id::text, token, NULL::timestamptz FROM tailed_{0} WHERE " + condition
    kinds = TAILED.items()
    return " UNION ALL ".join(select.format(kind, last=how % last, watermark=how % watermark) for kind, (_, how, _) in kinds)


# Since version 17, PostgreSQL loses prepared transactions on a server that pg_rewind has set back to before they were prepared,
# if their files are already there. Other servers still have them.
FORGOTTEN = "could not recover two-phase state file"
BETWEEN = "id >= {last} AND id < {watermark}"
# Publishes a watermark; the second statement says up to where the WAL is on disk.
PUBLISH = "SELECT flake_publish_watermark()"
FLUSHED = "SELECT pg_current_wal_flush_lsn()"
REPLAYED = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
WITH_WATERMARK = " UNION ALL SELECT NULL, NULL, NULL, flake_watermark()"
TAIL = union(BETWEEN) + WITH_WATERMARK
ABOVE = union("id >= {last}")
BELOW = union("id < {last}")
# The rows that a client sees just below its watermark, and the rows that are there at the end.
GLANCE = union(BETWEEN, last="flake_watermark() - interval '3 s'") + WITH_WATERMARK
GLANCED = union(BETWEEN, last="%(watermark)s::timestamptz - interval '3 s'", watermark="%(watermark)s::timestamptz")


class Consumer:
    """Reads one database of whichever of its servers is the primary, whatever the server's number. It starts over after a
    superuser has accepted the clock, because IDs may then be below earlier watermarks."""

    def __init__(self, cluster, names, database):
        self.cluster, self.database = cluster, database
        self.nodes = [cluster.nodes[name] for name in names if name in cluster.nodes]
        self.source, self.last, self.seen = 0, FIRST, set()
        self.passed, self.passed_on_standbys = 0, 0
        self.published = None  # the last published watermark: from which branch of the WAL, and its LSN
        self.pause, self.glances = 0.1, []  # seconds between reads, None for never; what clients saw below watermarks
        self.turn = threading.Lock()
        for node in self.nodes:
            node.consumers[database] = self

    def primary(self):
        return next((node for node in self.nodes if node.is_primary and not node.parting), None)

    def accepted(self):
        return sum(node.accepted for node in self.nodes)

    def watermark_of(self, node):
        """The highest watermark that this server, or an earlier primary, has returned."""
        if node is not self.primary() or self.source != self.accepted():
            return None
        return max([self.last, *(watermark for watermark, _ in self.glances)])

    def read(self, and_below=False, older=False):
        """Reads the new rows. At times it also checks that no row has appeared below earlier watermarks."""
        with self.turn:
            node, source = self.primary(), self.accepted()
            if node is None:
                return
            if source != self.source:
                self.last, self.seen, self.glances, self.source = FIRST, set(), [], source
            with psycopg.connect(host=str(node.server.dir), user="postgres", dbname=self.database, autocommit=True) as db:
                if older:
                    # The snapshot is older than the watermark that is asked for next.
                    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_sleep(0.1)")
                self.passed += self.follow(db)
                if and_below:
                    db.execute("ROLLBACK")
                    self.check(node, db.execute(BELOW, {"last": self.last}).fetchall())
                    for watermark, seen in self.glances:
                        rows = db.execute(GLANCED, {"watermark": watermark}).fetchall()
                        self.check_glance(node, watermark, {row[:3] for row in rows} - seen)

    def follow(self, db):
        """Reads the rows between the last watermark and a new one."""
        *rows, (*_, watermark) = db.execute(TAIL, {"last": self.last}).fetchall()
        self.seen.update(row[:2] for row in rows)
        self.last = max(self.last, watermark)
        return len(rows)

    def standby(self):
        """A running standby that follows the current primary."""
        primary = self.primary()
        alike = [node for node in self.nodes if node.up and node.maker.recovers and node.maker.branch is primary.maker.branch]
        return random.choice(alike) if alike else None

    def read_on_standby(self):
        """Reads on a standby up to a published watermark. A standby that has not replayed the last one may still return a
        watermark that was taken back, so each call publishes a watermark and reads only if the one before it was replayed."""
        with self.turn:
            node, source = self.primary(), self.accepted()
            standby = node and self.standby()
            if standby is None or source != self.source:
                return False
            whose, before = (node.maker.branch, source), self.published
            with psycopg.connect(host=str(node.server.dir), user="postgres", dbname=self.database, autocommit=True) as db:
                db.execute(PUBLISH)
                self.published = whose, db.execute(FLUSHED).fetchone()[0]
                node.published += 1
            if before and before[0] == whose:
                with psycopg.connect(host=str(standby.server.dir), user="postgres", dbname=self.database, autocommit=True) as db:
                    if db.execute(REPLAYED, before[1:]).fetchone()[0]:
                        self.passed_on_standbys += self.follow(db)
            return True

    def glance(self, node, db):
        """A client asks for a watermark and reads the rows just below it, to be compared at the end."""
        with self.turn:
            source, deaf = self.accepted(), node.parting or node is not self.primary()
            *rows, (*_, watermark) = db.execute(GLANCE).fetchall()
            if not deaf and source == self.accepted() and len(self.glances) < 100:
                self.glances.append((watermark, {row[:3] for row in rows}))

    def check_glance(self, node, watermark, missed):
        if self.source != self.accepted() or any(FORGOTTEN in other.log for other in self.nodes):
            return
        batches = self.cluster.oracle.batches
        for _, id, token in missed:
            self.cluster.oracle.fail(f"a client of {node.name} was told {watermark} and had not seen {id}: {batches[token]}")

    def check(self, node, rows):
        if any(FORGOTTEN in other.log for other in self.nodes):
            return
        batches = self.cluster.oracle.batches
        for kind, id, token, _ in rows:
            if (kind, id) not in self.seen and self.source == self.accepted():
                self.cluster.oracle.fail(f"a consumer of {node.name} was at {self.last} and had not seen {id}: {batches[token]}")
                self.seen.add((kind, id))

    def run(self, ends):
        for turn in itertools.count():
            if ends.wait(self.pause or 0.1):
                return
            if self.pause is None:
                continue
            with contextlib.suppress(psycopg.Error):
                # Alternates between the primary and a standby, in runs of several reads.
                if turn % 50 == 0 or turn % 20 < 5 or not self.read_on_standby():
                    self.read(turn % 50 == 0, turn % 3 == 0)

    def read_to_the_end(self, node):
        """After all transactions have ended, the watermark must pass every row."""
        deadline = time.monotonic() + LONG
        while True:
            with contextlib.suppress(psycopg.Error), node.server.connect(dbname=self.database) as db:
                self.read(and_below=True)
                if not db.execute(ABOVE, {"last": self.last}).fetchall():
                    return
            if time.monotonic() > deadline:
                self.cluster.oracle.fail(f"the watermark of {node.name} in {self.database} does not pass {self.last}")
                return
            time.sleep(0.3)


@contextlib.contextmanager
def consumers(cluster, groups):
    """Runs a consumer for each group of servers and each of two databases, if this version of the extension has watermarks."""
    if cluster.has_watermark:
        cluster.consumers = [Consumer(cluster, names, database) for names in groups for database in DATABASES[:2]]
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
