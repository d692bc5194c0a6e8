"""Clients that insert rows on any server that accepts them, and keep all returned IDs, whatever happens."""

import collections
import dataclasses
import itertools
import time

import psycopg

from waiting import Background, wait_until

INSERT = "INSERT INTO orders (token) SELECT %s FROM generate_series(1, 20) RETURNING id, sno::text"
# Seconds between two batches, so that a subscriber on the same machine can keep up.
PAUSE = 0.03


def orders(id="bigint DEFAULT flake_next('twitter')"):
    return f"""
        CREATE TABLE orders (id {id} PRIMARY KEY, sno sno UNIQUE DEFAULT sno_next(), token bigint NOT NULL);
        GRANT INSERT, SELECT ON orders TO app"""


@dataclasses.dataclass
class Batch:
    """The IDs that one statement returned, and whether its transaction committed; None if that is unknown after a failure."""

    client: int
    server: object
    began: float
    ended: float
    ids: tuple
    snos: tuple
    is_committed: bool | None = None


class Writers(Background):
    """Clients. Each tries its servers in turn until one accepts it, and stays there as long as it can. A client that `returns`
    stays for one batch only."""

    def __init__(self, *places, returns=lambda client: False):
        super().__init__()
        self.tokens, self.batches, self.errors, self.returns = itertools.count(), {}, [], returns
        for client, servers in enumerate(places):
            self.add(self.write, client, servers)

    def write(self, client, servers):
        for server in itertools.cycle(servers):
            # A client that loses its connection, or is refused, tries again. A duplicate key ends the test.
            try:
                with server.connect(user="app", autocommit=False) as db:
                    while not self.ends.wait(PAUSE):
                        self.insert(client, server, db)
                        if self.returns(client):
                            break
            except psycopg.OperationalError as error:
                # Only the text is kept, because the error itself holds a refused connection, and with it a descriptor.
                self.errors.append((client, str(error)))
                self.ends.wait(PAUSE)
            if self.ends.is_set():
                return

    def insert(self, client, server, db):
        token, began = next(self.tokens), time.monotonic()
        ids, snos = zip(*db.execute(INSERT, (token,)).fetchall(), strict=True)
        batch = self.batches[token] = Batch(client, server, began, time.monotonic(), ids, snos)
        if token % 7:
            db.commit()
        else:
            db.rollback()
        batch.is_committed = token % 7 > 0

    def of(self, server):
        return [batch for batch in list(self.batches.values()) if batch.server is server]

    def wait_for_all(self, server, count=20, but=lambda client: False):
        """Waits until each client, except for the given ones, has inserted this many more batches there."""
        before = collections.Counter(batch.client for batch in self.of(server))

        def have_all():
            more = collections.Counter(batch.client for batch in self.of(server)) - before
            return all(more[client] >= count for client in range(len(self.threads)) if not but(client))

        wait_until(have_all)

    def made(self):
        return sum(len(batch.ids) + len(batch.snos) for batch in self.batches.values())

    def twice(self):
        """Returns how many IDs were returned more than once."""
        kinds = [[id for batch in self.batches.values() for id in getattr(batch, kind)] for kind in ("ids", "snos")]
        return sum(len(ids) - len(set(ids)) for ids in kinds)

    def refused(self):
        """Returns for how long clients could write nowhere at each switch of the server, in order."""
        gaps = []
        for client in range(len(self.threads)):
            batches = sorted((one for one in self.batches.values() if one.client == client), key=lambda one: one.ended)
            turns = [(one, other) for one, other in itertools.pairwise(batches) if one.server is not other.server]
            gaps.append([other.ended - one.ended for one, other in turns])
        return [max(each) for each in zip(*gaps, strict=True)]

    def assert_whole(self, *servers):
        """Checks that all servers have every row that was committed, and none that was rolled back."""
        tables = []
        for server in servers:
            rows = {}
            for token, id, sno in server.sql("SELECT token, id, sno::text FROM orders ORDER BY id"):
                rows.setdefault(token, set()).add((id, sno))
            tables.append(rows)
        made = {token: set(zip(batch.ids, batch.snos, strict=True)) for token, batch in self.batches.items()}
        known = {token: made[token] for token, batch in self.batches.items() if batch.is_committed}
        unknown = {token for token, batch in self.batches.items() if batch.is_committed is None}
        for rows in tables:
            assert {token: rows[token] for token in rows if token not in unknown} == known
            assert rows == tables[0]
