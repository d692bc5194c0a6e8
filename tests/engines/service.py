"""A cluster as applications see it: which member is the primary, and clients that insert rows there, whatever happens."""

import contextlib
import itertools
import threading
import time
import typing

import psycopg

TABLE = "CREATE TABLE kept (token bigint, id bigint DEFAULT flake_next('twitter'), sno sno DEFAULT sno_next())"
INSERT = "INSERT INTO kept (token) SELECT %s FROM generate_series(1, 20) RETURNING id, sno::bytea"
CLIENTS = 6


class Batch(typing.NamedTuple):
    """The IDs that one statement returned, whether or not its transaction committed; None if the statement failed."""

    member: object
    reign: float  # when its member became the primary
    began: float
    ended: float
    ids: tuple = ()
    snos: tuple = ()


class Refusal(typing.NamedTuple):
    member: object
    ended: float
    state: str


class Service:
    """Watches the members, and lets clients load the primary until the end of a `with`."""

    def __init__(self, members):
        self.members = {member.name: member for member in members}
        self.promoted = {}  # since when a member is the primary
        self.ends, self.threads = threading.Event(), []
        self.tokens, self.batches, self.refusals = itertools.count(1), {}, []
        self.generation = 0

    @property
    def primary(self):
        """Returns the member that became the primary last, as a load balancer sees it."""
        promoted = self.promoted.copy()
        return self.members[max(promoted, key=promoted.get)] if promoted else None

    def __enter__(self):
        for member in self.members.values():
            self.begin(self.watch, member)
        self.renew()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()

    def begin(self, run, *arguments):
        self.threads.append(threading.Thread(target=run, args=arguments))
        self.threads[-1].start()

    def watch(self, member):
        while not self.ends.wait(0.1):
            role = member.role()
            if role == "primary":
                self.promoted.setdefault(member.name, time.monotonic())
            elif role == "standby":
                self.promoted.pop(member.name, None)

    def renew(self):
        """Starts new clients. The old ones end with their connections, on which they may have to wait."""
        self.generation += 1
        for _ in range(CLIENTS):
            self.begin(self.load, self.generation)

    def load(self, generation):
        while not self.ends.wait(0.05) and self.generation == generation:
            primary = self.primary
            # IDs that were returned count, even if everything else of the statement is lost or refused.
            if primary is not None:
                reign = self.promoted.get(primary.name)
                with contextlib.suppress(psycopg.Error, OSError), primary.connect(autocommit=False, connect_timeout=2) as db:
                    while self.primary is primary and reign == self.promoted.get(primary.name) and not self.ends.wait(0.05):
                        self.insert(db, primary, reign)

    def insert(self, db, member, reign):
        token, began = next(self.tokens), time.monotonic()
        try:
            ids, snos = zip(*db.execute(INSERT, (token,)).fetchall(), strict=True)
        except psycopg.Error as error:
            self.batches[token] = Batch(member, reign, began, time.monotonic())
            self.refusals.append(Refusal(member, time.monotonic(), error.sqlstate or "connection lost"))
            db.rollback()
            return
        self.batches[token] = Batch(member, reign, began, time.monotonic(), ids, snos)
        if token % 7:
            db.commit()
        else:
            db.rollback()

    def first_batch(self, member, since):
        """Returns the first IDs that a member has returned since an instant."""
        made = (batch for batch in list(self.batches.values()) if batch.ids and batch.member is member and batch.began >= since)
        return min(made, key=lambda batch: batch.ended, default=None)

    def last_batch(self, member, until):
        """Returns the last IDs that a member returned until an instant."""
        made = (batch for batch in list(self.batches.values()) if batch.ids and batch.member is member and batch.ended < until)
        return max(made, key=lambda batch: batch.ended, default=None)
