"""flake_take as docs/how-to/tail.md shows it, with each ordered layout and with sno, under load. Two processes of one consumer
crash at times, and another consumer reads independently. Each takes every row once, in order."""

import concurrent.futures
import itertools
import random
import re
import subprocess
import threading
import time

import psycopg
import pytest

from conftest import SECONDS, bindir
from tailing import SLEEP
from taking import POSITIONS, wait_until_complete
from test_pasted import ORDERED, in_matrix, pasted
from test_recipes import PAGE, recipe
from waiting import Background, wait_until

CREATE, TRANSACTION, _, LAG = recipe("A consumer in two lines")
TAKE = re.search(r"^SELECT .*;$", TRANSACTION, re.M)[0]
OUTBOX = re.search(r"^CREATE TABLE outbox .*;$", PAGE.read_text(), re.M)[0]
WRITES = f"""
INSERT INTO outbox DEFAULT VALUES;
BEGIN; INSERT INTO outbox DEFAULT VALUES; SELECT {SLEEP}; INSERT INTO outbox DEFAULT VALUES; COMMIT;
BEGIN; INSERT INTO outbox DEFAULT VALUES; SAVEPOINT a; INSERT INTO outbox DEFAULT VALUES; ROLLBACK TO a; SELECT {SLEEP}; ROLLBACK;
"""


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


@pytest.mark.parametrize("layout", in_matrix([*ORDERED, "sno"]))
def test_each_row_is_taken_once_and_in_order(own_servers, layout):
    server = own_servers()
    server.sql(pasted(OUTBOX, layout) + pasted(CREATE, layout))
    server.sql("INSERT INTO positions VALUES ('auditor', 'outbox')")
    script = server.base / "writes.sql"
    script.write_text(WRITES)
    command = [bindir() / "pgbench", "-n", "-c", "4", "-T", str(SECONDS), "-f", script]
    writing = subprocess.Popen(command, env=server.client_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mailer, auditor = Consumer(server, TAKE, 0.3), Consumer(server, TAKE.replace("mailer", "auditor"), 0)
    stopped = threading.Event()
    watermark = pasted("flake_min(flake_watermark(), 'twitter')", layout)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(consumer.run, stopped) for consumer in (mailer, mailer, auditor)]
        try:
            writing.wait()
            wait_until(lambda: server.value(f"SELECT COALESCE(max(id) < {watermark}, true) FROM outbox"))
        finally:
            stopped.set()
        [job.result() for job in jobs]
    assert writing.returncode == 0
    written = [id for id, in server.sql("SELECT id FROM outbox ORDER BY id")]
    assert len(written) > 10
    assert auditor.taken == written
    assert mailer.taken == written
    assert server.sql(pasted(LAG, layout).strip().rstrip(";") + " ORDER BY name") == [("auditor", None), ("mailer", None)]
    server.sql("UPDATE positions SET last = NULL")
    assert all(lag.total_seconds() > 0 for _, lag in server.sql(pasted(LAG, layout)))


@pytest.mark.parametrize("by", [
    pytest.param("PARTITION BY LIST (event)", id="partitions"), pytest.param("", id="children", marks=pytest.mark.matrix),
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


@pytest.mark.parametrize("layout", ["uniqueid", pytest.param("seata", marks=pytest.mark.matrix)])
def test_rows_of_layouts_without_order_are_not_taken(own_servers, layout):
    server = own_servers()
    server.sql(pasted(OUTBOX, layout) + CREATE + "INSERT INTO outbox DEFAULT VALUES")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="not ordered by time"):
        server.sql(TAKE)
    assert server.value("SELECT last FROM positions") is None
