"""Clients that make IDs in every way, reconnect after errors, and report every ID to the oracle."""

import contextlib
import functools
import random
import threading
import time

import psycopg

from . import LONG, WITHOUT
from .cancels import Cancels
from .failing import Failing
from .layouts import BATCHED, CALLS, PLENTIFUL, SLOW, TAILED
from .program import Program

MOST_CLIENTS = 3  # for each server
PUBLISH = "SELECT flake_publish_watermark()"
PATIENCE = 3  # seconds after which a statement is canceled
HOSTILE = ["-c flake.node_id=1", "-c flake.node_count=1 -c flake.node_id=0", "-c flake.node_count=1024", "-c flake.node_id=x"]
# Settings that some sessions have.
ORDINARY = ["synchronous_commit=off", "default_transaction_isolation=repeatable\\ read"]
ROWS = "generate_series(1, %s) n"


class Client:
    """Runs statements of random kinds on one server, one at a time."""

    def __init__(self, cluster, node, seed, rank):
        self.cluster, self.oracle, self.node, self.rank = cluster, cluster.oracle, node, rank
        self.random = random.Random(seed)
        self.db, self.database, self.since, self.asked = None, None, None, 0.0
        self.prepared, self.patience = 0, PATIENCE
        self.pool = []  # IDs for later transactions to insert
        self.seed = seed.replace("/", "_")

    @property
    def works(self):
        """Whether this client works now. A standby gets one client, whose statements it refuses until it is promoted."""
        return self.node.up and self.rank < (min(self.node.clients, 1) if self.node.maker.recovers else self.node.clients)

    def run(self, ends):
        while not ends.is_set():
            if not self.works:
                time.sleep(0.02)
                continue
            try:
                with self.connected() as self.db:
                    fails = self.random.random() < 0.15
                    for _ in range(self.random.choice([1, 1, 1, 5, 20, 100])):
                        if ends.is_set() or not self.works:
                            break
                        if self.node.maker is not self.maker and self.random.random() < 0.2:
                            break
                        Failing(self).statement() if fails else self.statement()
                        self.sleep(self.random.random() * self.random.choice([0.01] * 150 + [4]))
            except psycopg.Error as error:
                self.cluster.refusals.thrown_out(self.node, error)
                time.sleep(0.05)
            except BaseException as failure:  # noqa: BLE001 - the report shows it
                self.oracle.fail(f"client of {self.node.name}: {failure!r}")
                return
            finally:
                self.db, self.since = None, None

    def sleep(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self.works:
            time.sleep(min(left, 0.05))

    @contextlib.contextmanager
    def connected(self):
        """Connects, sometimes as a role with hostile settings or with hostile options."""
        self.database = self.random.choice(self.cluster.databases)
        options = {"dbname": self.database, "user": self.random.choice(["postgres", "postgres", "hostile"])}
        if "hostile" not in WITHOUT and self.random.random() < 0.2:
            options["options"] = self.random.choice(HOSTILE)
        elif "hostile" not in options.values() and self.random.random() < 0.4:
            options["options"] = f"-c {self.random.choice(ORDINARY)}"
        self.maker = self.node.maker
        connect = functools.partial(psycopg.connect, host=str(self.node.server.dir), autocommit=True, connect_timeout=30)
        with contextlib.ExitStack() as others:
            # Short-lived connections before this one shift which proc it gets.
            for _ in range(self.random.choice([0, 0, 0, 0, 1, 3])):
                others.enter_context(connect(user="postgres", dbname=self.database))
            db = connect(**options)
        with db:
            # The client cancels the statement itself: the alarm of a statement_timeout reads the clock, and libfaketime
            # allocates memory there.
            self.patience = self.random.choice([PATIENCE] * 7 + [0.02])
            yield db

    @contextlib.contextmanager
    def watched(self):
        """Tells the watch that a statement is running."""
        self.since, self.asked = time.monotonic(), 0.0
        try:
            yield
        finally:
            self.since = None

    def making(self, kind, what):
        """Registers a batch with the oracle."""
        return self.within(self.oracle.begin(self.node, self.database, kind, what))

    @contextlib.contextmanager
    def within(self, batch):
        """Runs a statement of a batch. An error rolls the transaction back and leaves the `with` block."""
        try:
            with self.watched():
                yield batch
        except psycopg.Error as error:
            self.cluster.refusals.refused(self.node, batch, error)
            if self.db.closed or self.db.broken:
                raise
            self.db.rollback()
            if error.sqlstate == "25006":
                time.sleep(0.2)
        finally:
            self.oracle.end(batch, self.node)

    def returned(self, batch, cursor_rows):
        if cursor_rows:
            self.oracle.returned(batch, self.node, self.cluster.layouts[batch.kind], [text for text, *_ in cursor_rows])
            self.cluster.refusals.served(self.node, batch)

    def statement(self):
        kind = self.random.choice(list(CALLS))
        ways = {self.next: 2, self.batch: 1, self.cursor: 1}
        if not self.node.maker.recovers:
            ways |= {self.insert: 2, self.roll_back: 1, self.prepare: 0.5, self.block: 0.5, self.outbox: 1, self.cover: 0.5,
                     self.commit: 1, self.exit: 0.1, self.program: 4, self.fail: 0.3, self.burst: 3}
            if self.node.consumers:
                ways[self.publish] = 1
        ways = {way: weight for way, weight in ways.items() if way.__name__ not in WITHOUT}
        way, = self.random.choices(list(ways), list(ways.values()))
        way(kind, self.random.choice([1, 2] if kind in SLOW else [1, 3, 10, 40]))

    def program(self, kind, count):
        Program(self).run()

    def fail(self, kind, count):
        Failing(self).statement()

    def next(self, kind, count):
        with self.making(kind, "next") as batch:
            self.returned(batch, self.db.execute(f"SELECT ({CALLS[kind]})::text FROM {ROWS}", (count,)).fetchall())

    def batch(self, kind, count):
        """Makes many IDs, so that the session runs ahead of the clock within its tick."""
        kind = self.random.choice([kind for kind in BATCHED if kind in CALLS])
        count = self.random.choice([count, count, 2000])
        with self.making(kind, "batch") as batch:
            self.returned(batch, self.db.execute(f"SELECT flake_batch('{kind}', %s)::text", (count,)).fetchall())

    def cursor(self, kind, count):
        """Fetches some rows now and some later, perhaps after the transaction has ended."""
        hold = self.random.choice(["", "WITH HOLD"])
        with self.making(kind, f"cursor {hold}") as batch, self.db.transaction():
            self.db.execute(f"DECLARE made CURSOR {hold} FOR SELECT ({CALLS[kind]})::text FROM generate_series(1, {2 * count}) n")
            self.returned(batch, self.db.execute(f"FETCH {count} FROM made").fetchall())
            time.sleep(self.random.random() * 0.1)
            self.returned(batch, self.db.execute(f"FETCH {count} FROM made").fetchall())
        if hold:
            with contextlib.suppress(psycopg.errors.InvalidCursorName):
                self.db.execute("CLOSE made")

    def inserted(self, batch, count):
        """Inserts IDs into the kind's tailed table, or into the table of all others."""
        made = CALLS[batch.kind]
        if batch.kind in TAILED:
            insert = f"INSERT INTO tailed_{batch.kind} SELECT {made}, %s FROM {ROWS} RETURNING id::text"
            self.returned(batch, self.db.execute(insert, (batch.token, count)).fetchall())
        else:
            insert = f"INSERT INTO kept SELECT %s, %s, ({made})::text FROM {ROWS} RETURNING id"
            self.returned(batch, self.db.execute(insert, (batch.token, batch.kind, count)).fetchall())

    def insert(self, kind, count):
        with self.making(kind, "insert") as batch:
            self.inserted(batch, count)

    def burst(self, kind, count):
        """Inserts more rows than a consumer usually reads at once."""
        self.insert(self.random.choice(PLENTIFUL), 1000)

    def roll_back(self, kind, count):
        """IDs of rolled-back transactions and savepoints count as well."""
        with self.making(kind, "rolled back") as batch:
            self.db.execute("BEGIN; SAVEPOINT before")
            self.inserted(batch, count)
            self.db.execute(self.random.choice(["ROLLBACK TO before; COMMIT", "ROLLBACK"]))

    def prepare(self, kind, count):
        """Prepares a transaction. Some stay prepared until another client ends them."""
        self.prepared += 1
        name = f"{self.seed}_{self.prepared}"
        with self.making(kind, "two-phase commit") as batch:
            self.db.execute("BEGIN")
            self.inserted(batch, count)
            self.db.execute(f"PREPARE TRANSACTION '{name}'")
        if self.random.random() < 0.7:
            left = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY random() LIMIT 2"
            for gid, in self.db.execute(left).fetchall():
                with contextlib.suppress(psycopg.errors.UndefinedObject, psycopg.errors.ObjectNotInPrerequisiteState):
                    self.db.execute(f"{self.random.choice(['COMMIT', 'ROLLBACK'])} PREPARED '{gid}'")

    def block(self, kind, count):
        """Makes IDs in PL/pgSQL that commits in between. Only the rows show which IDs it made."""
        with self.making(kind, "block") as batch:
            self.db.execute(f"""DO $$ BEGIN FOR n IN 1..{count} LOOP
                INSERT INTO kept VALUES ({batch.token}, '{kind}', {CALLS[kind]});
                IF n % 3 = 0 THEN COMMIT; END IF; END LOOP; END $$""")

    def outbox(self, kind, count):
        """Makes several kinds of IDs in one transaction, with pauses in between."""
        self.db.execute("BEGIN")
        for kind in self.random.choices(list(CALLS), k=self.random.choice([1, 2, 3])):
            kind = self.random.choice([kind, *TAILED])
            with self.making(kind, "outbox") as batch:
                self.inserted(batch, 2 if kind in SLOW else count)
            time.sleep(self.random.random() * self.random.choice([0.05, 0.05, 0.5]))
        self.db.execute("COMMIT")

    def cover(self, kind, count):
        """Makes IDs that another transaction inserts with flake_cover, unless a watermark has passed them by then."""
        kind = self.random.choice(list(TAILED))
        with self.making(kind, "cover") as batch:
            ids = self.db.execute(f"SELECT {CALLS[kind]} FROM {ROWS}", (count,)).fetchall()
            self.returned(batch, ids)
            self.pool.append((kind, batch.token, [id for id, in ids]))
        self.sleep(self.random.random() * 0.1)
        if self.pool and self.random.random() < 0.7:
            self.cover_from_pool()

    def cover_from_pool(self):
        """Inserts pooled IDs, perhaps from before a restart or a promotion."""
        self.random.shuffle(self.pool)
        kind, token, ids = self.pool.pop()
        key, _, covered = TAILED[kind]
        insert = f"INSERT INTO tailed_{kind} SELECT {covered % 'made'}, %s FROM unnest(%s::{key}[]) made"
        with self.making(kind, "covered"), contextlib.suppress(psycopg.errors.ObjectNotInPrerequisiteState):
            self.db.execute(insert, (token, ids))

    def publish(self, kind, count):
        """Publishes a watermark, which stays published even if the transaction is rolled back."""
        with self.making("twitter", "publish"):
            self.db.execute(self.random.choice([PUBLISH, f"BEGIN; {PUBLISH}; ROLLBACK"]))
            self.node.published += 1

    def commit(self, kind, count):
        """Commits a transaction without IDs."""
        self.db.execute("SELECT pg_current_xact_id()")

    def exit(self, kind, count):
        """Ends the session by libc's exit()."""
        self.next(kind, count)
        library = self.cluster.exit_libraries[self.node.server.pg_config]
        self.db.execute(f"CREATE OR REPLACE FUNCTION pg_temp.leave(integer) RETURNS void STRICT LANGUAGE c "
                        f"AS '{library}', 'libc_exit'")  # fmt: skip
        self.node.exited.add(self.db.info.backend_pid)
        self.db.execute("SELECT pg_temp.leave(0)")


class Watch:
    """Cancels statements that run for too long, and fails if a server does not respond."""

    def __init__(self, cluster, clients):
        self.cluster, self.clients, self.cancels = cluster, clients, Cancels()

    def run(self, ends):
        while not ends.wait(0.05):
            for client in self.clients:
                self.look_at(client)
            self.cancels.end()
        self.cancels.end(0)

    def look_at(self, client):
        db, since, now = client.db, client.since, time.monotonic()
        if db is None or since is None or now - since < client.patience or client.node.stopped.is_set():
            return
        if now - client.asked > PATIENCE:
            client.asked = now
            self.cancels.ask(db)
        if now - max(since, client.node.disturbed) > LONG:
            client.node.disturbed = now
            client.oracle.fail(f"no answer to a cancel for {LONG} s: a client of {client.node.name}")


@contextlib.contextmanager
def load_on(cluster, nodes, seed):
    """Runs clients on each server for the duration of a `with`; a `work` step decides how many of them are active."""
    clients = [Client(cluster, node, f"{seed}/{node.name}{n}", n) for node in nodes for n in range(MOST_CLIENTS)]
    # The watch stops after the clients, so that it can cancel their last statements.
    ends, unwatched = threading.Event(), threading.Event()
    threads = [threading.Thread(target=client.run, args=(ends,)) for client in clients]
    watch = threading.Thread(target=Watch(cluster, clients).run, args=(unwatched,))
    for thread in [watch, *threads]:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join(2 * LONG)
            if thread.is_alive():
                cluster.oracle.fail("a client does not end")
        unwatched.set()
        watch.join()
