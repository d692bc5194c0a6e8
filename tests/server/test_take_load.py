"""flake_take while partitions come: consumers that crash at times take every row once, in order. test_pasted.py has the call of
docs/how-to/tail.md with each layout."""

import concurrent.futures
import itertools
import random
import threading
import time

import pytest

from conftest import SECONDS
from taking import POSITIONS, wait_until_complete
from waiting import Background


class Consumer:
    """Takes rows in several sessions at once. Rows of a rolled-back transaction are not counted."""

    def __init__(self, server, take, crashes):
        self.server, self.take, self.crashes, self.taken = server, take, crashes, []

    def step(self, db):
        db.execute("BEGIN")
        ids = [row[0] for row in db.execute(self.take).fetchall()]
        if random.random() < self.crashes:
            db.execute("ROLLBACK")
            return None
        # A consumer that has rows has the turn until it commits.
        self.taken += ids
        db.execute("COMMIT")
        return ids

    def run(self, stopped):
        with self.server.connect() as db:
            while not stopped.is_set() or self.step(db) != []:
                self.step(db)
                time.sleep(random.random() * 0.01)


@pytest.mark.matrix
@pytest.mark.parametrize("by", [
    pytest.param("PARTITION BY LIST (event)", id="partitions"), pytest.param("", id="children"),
])  # fmt: skip
def test_partitions_that_come_meanwhile_are_read(own_servers, by):
    """Each partition comes with rows in a transaction of its own, while others are read."""
    server = own_servers("max_locks_per_transaction=4000")
    server.sql(f"""{POSITIONS};
                   CREATE TABLE log (id bigint DEFAULT flake_next('twitter'), event int, PRIMARY KEY (id, event)) {by}""")
    if by:
        server.sql("CREATE TABLE log0 PARTITION OF log FOR VALUES IN (0)")
    server.sql("INSERT INTO positions VALUES ('a', 'log'), ('b', 'log')")
    numbers = itertools.count(1)

    def come():
        with server.connect() as db:
            # Partitions must not come too fast, because every call reads all of them.
            while not writing.ends.wait(0.06):
                n = next(numbers)
                comes = f"log ATTACH PARTITION part{n} FOR VALUES IN ({n})" if by else f"part{n} INHERIT log"
                db.execute(f"""BEGIN; CREATE TABLE part{n} (LIKE log INCLUDING ALL); INSERT INTO part{n} (event) VALUES ({n});
                               ALTER TABLE {comes}; INSERT INTO part{n} (event) VALUES ({n}); COMMIT""")

    def write():
        with server.connect() as db:
            while not writing.ends.is_set():
                db.execute("INSERT INTO log (event) SELECT 0 FROM generate_series(1, 5)")

    consumers = [Consumer(server, f"SELECT id FROM flake_take(NULL::log, 'positions', '{name}', 50)", 0.1) for name in "ab"]
    stopped, writing = threading.Event(), Background(come, come, write)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(consumer.run, stopped) for consumer in consumers]
        try:
            with writing:
                time.sleep(SECONDS)
            wait_until_complete(server, "log")
        finally:
            stopped.set()
        [job.result() for job in jobs]
    written = [id for id, in server.sql("SELECT id FROM log ORDER BY id")]
    assert next(numbers) > 5
    assert [consumer.taken == written for consumer in consumers] == [True, True]
