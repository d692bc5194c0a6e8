"""Random histories of a few sessions, one step after another: a snapshot has all rows below its horizon that are ever committed.

FLAKE_SOAK=n makes n times as many histories. A failure names the seed, with which FLAKE_SEED repeats the choices.
"""

import os
import random

import psycopg
import pytest

from horizon import OUTBOX

HISTORIES = 6 * int(os.environ.get("FLAKE_SOAK", "1"))
STEPS, WRITERS, TAILERS = 250, 4, 3
SEED = os.environ.get("FLAKE_SEED")
ASK = "SELECT flake_min(flake_horizon()), ARRAY(SELECT id FROM outbox WHERE id < flake_min(flake_horizon()))"


@pytest.fixture(scope="module")
def server(servers):
    server = servers("max_prepared_transactions=100")
    server.sql(OUTBOX)
    return server


class Writer:
    """A session, the IDs that its transaction has made and not inserted, and one that an earlier transaction has made."""

    def __init__(self, history):
        self.history, self.chance, self.db = history, history.chance, history.server.connect()
        self.made, self.kept, self.open = [], None, False

    def step(self):
        steps = [self.insert, self.make, self.end, self.savepoint, self.prepare] if self.open else [
            self.begin, self.insert, self.keep, self.burst, self.end_prepared, self.reconnect,
        ]  # fmt: skip
        self.chance.choice(steps)()

    def begin(self):
        self.db.execute("BEGIN")
        self.open, self.made = True, []
        if self.kept and self.chance.random() < 0.7:
            self.cover()

    def cover(self):
        """Unless it is too late."""
        self.db.execute("SAVEPOINT cover")
        try:
            self.db.execute("INSERT INTO outbox VALUES (flake_cover(%s))", (self.kept,))
        except psycopg.errors.ObjectNotInPrerequisiteState:
            self.db.execute("ROLLBACK TO cover")
        self.kept = None

    def insert(self):
        if self.open and self.made and self.chance.random() < 0.5:
            self.db.execute("INSERT INTO outbox VALUES (%s)", (self.made.pop(),))
        else:
            self.db.execute("INSERT INTO outbox DEFAULT VALUES")

    def make(self):
        self.made.append(self.db.execute("SELECT flake_next('twitter')").fetchone()[0])

    def keep(self):
        self.kept = self.db.execute("SELECT flake_next('twitter')").fetchone()[0]

    def burst(self):
        for _ in range(self.chance.choice([5, 40])):
            self.db.execute("INSERT INTO outbox DEFAULT VALUES")

    def savepoint(self):
        self.db.execute("SAVEPOINT s")
        self.chance.choice([self.insert, self.make])()
        self.db.execute(self.chance.choice(["ROLLBACK TO s", "RELEASE s"]))

    def end(self):
        self.db.execute(self.chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
        self.open = False

    def prepare(self):
        self.history.prepared.append(f"p{self.history.number}")
        self.db.execute(f"PREPARE TRANSACTION 'p{self.history.number}'")
        self.history.number += 1
        self.open = False

    def end_prepared(self):
        if self.history.prepared:
            gid = self.history.prepared.pop(self.chance.randrange(len(self.history.prepared)))
            self.db.execute(f"{self.chance.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} PREPARED '{gid}'")

    def reconnect(self):
        self.db.close()
        self.db, self.open = self.history.server.connect(), False


class Tailer:
    """A session that sees a snapshot for some steps, and what it saw below each horizon."""

    def __init__(self, history):
        self.history, self.chance, self.db = history, history.chance, history.server.connect()
        self.holds_snapshot = False

    def step(self):
        if self.chance.random() < 0.3:
            self.db.execute("COMMIT" if self.holds_snapshot else "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM outbox")
            self.holds_snapshot = not self.holds_snapshot
            return
        try:
            self.history.answers.append(self.db.execute(ASK).fetchone())
        except psycopg.errors.SerializationFailure:
            # The first to ask since the start of the server.
            self.db.execute("ROLLBACK")
            self.holds_snapshot = False


class History:
    def __init__(self, server, chance):
        self.server, self.chance = server, chance
        self.prepared, self.answers, self.number = [], [], 0
        self.sessions = self.connect()

    def connect(self):
        return [Writer(self) for _ in range(WRITERS)] + [Tailer(self) for _ in range(TAILERS)]

    def run(self):
        crash = self.chance.choice([None, "immediate", "fast"])
        crash_at = self.chance.randrange(STEPS)
        for step in range(STEPS):
            if crash and step == crash_at:
                [session.db.close() for session in self.sessions]
                self.server.restart(mode=crash)
                self.sessions = self.connect()
            self.chance.choice(self.sessions).step()
        [session.db.close() for session in self.sessions]
        for gid in self.prepared:
            self.server.sql(f"COMMIT PREPARED '{gid}'")


@pytest.mark.parametrize("round", range(HISTORIES))
def test_history(server, round):
    seed = int(SEED or random.randrange(2**32))
    history = History(server, random.Random(seed))
    history.run()
    committed = [id for id, in server.sql("SELECT id FROM outbox")]
    server.sql("DELETE FROM outbox")
    for below, seen in history.answers:
        assert sorted(seen) == sorted(id for id in committed if id < below), f"FLAKE_SEED={seed}"
    assert len(history.answers) > 10 and committed
