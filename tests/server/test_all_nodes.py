"""The recipe of tail-recipes.md for three nodes that write one table and replicate it to each other; one is cut off
for a while, and a reader below the least watermark of all misses nothing. FLAKE_TAILING_ROWS is the number of rows to write."""

import os
import re
import subprocess
import time

import pytest

from conftest import SECONDS, bindir
from test_recipes import RECIPES, python, recipe, with_outbox
from waiting import Background, wait_until

HEADING = "All nodes in one table"
ROWS = int(os.environ.get("FLAKE_TAILING_ROWS", "0"))
BURST = int(os.environ.get("FLAKE_TAILING_BURST", "5"))
SETTINGS = [
    "wal_level=logical", "max_replication_slots=20", "max_wal_senders=20", "max_worker_processes=20",
    "max_logical_replication_workers=16", "max_sync_workers_per_subscription=2",
]  # fmt: skip
WRITES = f"""
INSERT INTO outbox SELECT FROM generate_series(1, {BURST});
BEGIN;
INSERT INTO outbox DEFAULT VALUES;
SELECT pg_sleep(random() * 0.05);
INSERT INTO outbox DEFAULT VALUES;
COMMIT;
BEGIN;
INSERT INTO outbox DEFAULT VALUES;
ROLLBACK;
"""
# The query is on the page.
READY = re.search(r"`(SELECT bool_and\(srsubstate.*?)`", RECIPES.read_text())[1]
TAKE_OUT = re.search(r"`(UPDATE watermarks SET .*?)`", RECIPES.read_text())[1]


def connected(server):
    return f"host={server.dir} user=postgres dbname=postgres"


def three_nodes(own_servers):
    nodes = [with_outbox(own_servers("flake.node_count=3", f"flake.node_id={node}", *SETTINGS)) for node in range(3)]
    if nodes[0].value("SELECT current_setting('server_version_num')::int") < 160000:
        pytest.skip("subscriptions with origin = none need PostgreSQL 16")
    for server in nodes:
        server.sql(recipe(HEADING)[0])
        server.sql("CREATE PUBLICATION tailed FOR TABLE outbox, watermarks")
    for to, server in enumerate(nodes):
        for of, other in enumerate(nodes):
            if to != of:
                server.sql(f"""CREATE SUBSCRIPTION from_{of}_to_{to} CONNECTION '{connected(other)}' PUBLICATION tailed
                               WITH (origin = none)""")
    wait_until(lambda: all(server.value(READY) for server in nodes))
    return nodes


def drop_subscriptions(nodes):
    for server in nodes:
        for name, in server.sql("SELECT subname FROM pg_subscription"):
            server.sql(f"DROP SUBSCRIPTION {name}")


class Consumer:
    def __init__(self, server, read):
        self.server, self.read, self.taken = server, read, []

    def step(self, db):
        new = [id for id, _ in self.read(db, self.taken[-1] if self.taken else 0)]
        self.taken += new
        return new

    def run(self, ends):
        with self.server.connect() as db:
            while not ends.wait(0.002):
                self.step(db)


def by_id(db, last):
    return db.execute("SELECT id, event FROM outbox WHERE id > %s ORDER BY id", [last]).fetchall()


def all_rows(nodes):
    """All nodes must have the same rows."""
    count = "SELECT count(*), sum(id) FROM outbox"
    wait_until(lambda: len({tuple(server.sql(count)[0]) for server in nodes}) == 1, 300)
    return [id for id, in nodes[0].sql("SELECT id FROM outbox ORDER BY id")]


@pytest.mark.matrix
def test_consumers_of_three_nodes_lose_no_row(own_servers):
    nodes = three_nodes(own_servers)
    store = recipe(HEADING)[1]
    consumers = [Consumer(server, python(HEADING, "read_from_all_nodes")) for server in nodes]
    naive = [Consumer(server, by_id) for server in nodes]

    def announce(node, ends):
        with nodes[node].connect() as db:
            while not ends.wait(0.05):
                db.execute(store.replace("VALUES (0,", f"VALUES ({node},"))

    def write(node, ends):
        script = nodes[node].base / "write.sql"
        script.write_text(WRITES)
        while not ends.is_set():
            command = [bindir() / "pgbench", "-n", "-c", "2", "-T", "1", "-f", script]
            subprocess.run(command, check=True, env=nodes[node].client_environment, capture_output=True)

    def is_read(server):
        return server.value("SELECT max(id) < (SELECT upto FROM all_nodes) FROM outbox")

    with Background() as jobs:
        for node in range(3):
            jobs.add(announce, node, jobs.ends)
        for one in [*consumers, *naive]:
            jobs.add(one.run, jobs.ends)
        for thread in jobs.threads:
            thread.start()
        writing = Background()
        for node in range(3):
            writing.add(write, node, writing.ends)
        with writing:
            begin, is_cut = time.monotonic(), None
            while time.monotonic() < begin + 2 * SECONDS or nodes[0].value("SELECT count(*) FROM outbox") < ROWS:
                now = time.monotonic() < begin + SECONDS
                if now != is_cut:
                    is_cut = now
                    for to in range(2):
                        nodes[to].sql(f"ALTER SUBSCRIPTION from_2_to_{to} {'DISABLE' if is_cut else 'ENABLE'}")
                time.sleep(0.1)
        rows = all_rows(nodes)
        wait_until(lambda: all(map(is_read, nodes)), 300)
        wait_until(lambda: all(one.taken[-1] == rows[-1] for one in consumers))
    lost = [len(set(rows) - set(one.taken)) for one in naive]
    print(f"\n{len(rows)} rows; who reads by ID has lost {lost}")
    assert [one.taken == rows for one in consumers] == [True, True, True]
    assert min(lost) > 0
    # The last node never comes back.
    for to in range(2):
        nodes[to].sql(f"DROP SUBSCRIPTION from_2_to_{to}")
    nodes[0].sql(TAKE_OUT)
    with nodes[1].connect() as db:
        wait_until(lambda: db.execute("SELECT upto FROM watermarks WHERE node = 2").fetchone() == ((1 << 63) - 1,))
        last = db.execute("INSERT INTO outbox DEFAULT VALUES RETURNING id").fetchone()[0]
        for node in range(2):
            time.sleep(0.01)
            nodes[node].sql(store.replace("VALUES (0,", f"VALUES ({node},"))
        wait_until(lambda: consumers[1].step(db) == [last])
    drop_subscriptions(nodes)
