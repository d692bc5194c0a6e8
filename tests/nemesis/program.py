"""Programs: transactions of random parts. They make IDs now and insert them later, inside savepoints that are rolled back and
around errors that are caught, and ask for watermarks in between."""

import time

import psycopg

from .layouts import CALLS, SLOW, TAILED

LEVELS = ["READ COMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
CAUGHT = """DO $$ BEGIN
    BEGIN
        PERFORM {made} FROM generate_series(1, {count}) n;
        RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    {inserted};
END $$"""


class Program:
    """One transaction of a client."""

    def __init__(self, client):
        self.client, self.random, self.db = client, client.random, client.db
        self.kept, self.savepoints, self.count = [], 0, 0

    def run(self):
        random = self.random
        parts = [self.make, self.make, self.insert, self.insert_kept, self.insert_kept, self.savepoint, self.roll_back,
                 self.error, self.catch, self.wait, self.wait, self.ask]  # fmt: skip
        if not self.does(f"BEGIN ISOLATION LEVEL {random.choice(LEVELS)}"):
            return
        first = [self.make] if random.random() < 0.5 else []
        for part in [*first, *random.choices(parts, k=random.choice([2, 3, 5, 8])), self.insert_kept]:
            if not part():
                return
        self.end()

    def end(self):
        """Ends the transaction. Some are prepared, and any client may end them later."""
        client = self.client
        client.prepared += 1
        prepare = f"PREPARE TRANSACTION '{client.seed}_{client.prepared}p'"
        self.does(self.random.choice(["COMMIT"] * 6 + ["ROLLBACK", prepare, prepare]))

    def does(self, statement, *parameters):
        """Runs a statement. Returns whether the transaction is still usable."""
        client = self.client
        batch = client.oracle.begin(client.node, client.database, "twitter", "program")
        with client.within(batch):
            self.db.execute(statement, parameters or None)
            return True
        return False

    def kind(self):
        self.count = self.random.choice([1, 1, 3, 10])
        kind = self.random.choice([*CALLS, *TAILED, *TAILED, *TAILED])
        if kind in SLOW:
            self.count = 1
        return kind

    def make(self):
        client, kind = self.client, self.kind()
        with client.making(kind, "program") as batch:
            made = f"SELECT ({CALLS[kind]})::text FROM generate_series(1, %s) n"
            rows = self.db.execute(made, (self.count,)).fetchall()
            client.returned(batch, rows)
            if kind in TAILED:
                self.kept += [(kind, batch.token, text) for text, in rows]
            return True
        return False

    def insert(self):
        client, kind = self.client, self.random.choice(list(TAILED))
        self.count = self.random.choice([1, 3, 10])
        with client.making(kind, "program insert") as batch:
            client.inserted(batch, self.count)
            return True
        return False

    def insert_kept(self):
        """Inserts IDs that this transaction made earlier, perhaps in a savepoint that was rolled back."""
        kept, self.kept = self.kept, []
        return all(self.does(f"INSERT INTO tailed_{kind} VALUES (%s, %s)", text, token) for kind, token, text in kept)

    def savepoint(self):
        self.savepoints += 1
        return self.does(f"SAVEPOINT s{self.savepoints}")

    def roll_back(self):
        if not self.savepoints:
            return True
        to = self.random.randint(1, self.savepoints)
        self.savepoints = to
        return self.does(f"ROLLBACK TO s{to}")

    def error(self):
        """Makes IDs in a statement that fails, then rolls back to a savepoint."""
        made = CALLS[self.kind()]
        if not self.savepoint():
            return False
        try:
            with self.client.watched():
                self.db.execute(f"SELECT {made}, 1 / (2 - n) FROM generate_series(1, 3) n")
        except psycopg.errors.DivisionByZero:
            return self.does(f"ROLLBACK TO s{self.savepoints}")
        except psycopg.Error as error:
            self.client.cluster.refusals.judge(self.client.node, error, "program error")
            if self.db.closed or self.db.broken:
                raise
            self.db.rollback()
        return False

    def catch(self):
        client, kind = self.client, self.random.choice(list(TAILED))
        with client.making(kind, "program catch") as batch:
            inserted = f"INSERT INTO tailed_{kind} SELECT {CALLS[kind]}, {batch.token} FROM generate_series(1, 2) n"
            self.db.execute(CAUGHT.format(made=CALLS[self.kind()], count=self.count, inserted=inserted))
            return True
        return False

    def wait(self):
        time.sleep(self.random.random() * self.random.choice([0.01, 0.05, 0.3, 1.5]))
        return True

    def ask(self):
        """Asks for a watermark if the database has a consumer, and less often if that reads often."""
        client = self.client
        consumer = client.node.consumers.get(client.database)
        if consumer is None or client.node.maker.recovers or self.random.random() > (consumer.pause or 0.3):
            return True
        batch = client.oracle.begin(client.node, client.database, "twitter", "program ask")
        with client.within(batch):
            consumer.glance(client.node, self.db)
            return True
        return False
