"""New features of PostgreSQL 19 that concern flake: replication of sequences, REPACK, WAIT FOR, and new forms of statements."""

import json
import re
import threading

import psycopg
import pytest

from clients import Made
from conftest import pg_config
from standing_clock import SETTINGS, at, attempts, insert, pass_through, running, server_at_0
from taking import POSITIONS
from waiting import wait_until

MAJOR = int(re.search(r"\d+", pg_config("--version").name)[0])
pytestmark = pytest.mark.skipif(MAJOR < 19, reason=f"PostgreSQL {MAJOR} does not have this")

LOGICAL = ["wal_level=logical", "max_worker_processes=6", "autovacuum_worker_slots=1"]
KEEPS = "SELECT ok FROM flake_check() WHERE name = 'pg_upgrade'"


def subscribe(publisher, subscriber, publication):
    """Subscribes to everything that is published."""
    connection = f"host={publisher.dir} user=postgres dbname=postgres"
    subscriber.sql(f"CREATE SUBSCRIPTION s CONNECTION '{connection}' PUBLICATION {publication}")
    wait_until(lambda: subscriber.value("SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel"))


@pytest.mark.parametrize("crash", [False, True], ids=["", "after a crash"])
def test_replication_of_sequences_takes_no_time_back(own_servers, crash):
    """A server whose clock was ahead gets the lower last value of another server's mark, and is upgraded by pg_upgrade. After a
    crash, until IDs are made, flake_check says what pg_upgrade would lose."""
    publisher = server_at_0(own_servers, *LOGICAL)
    old, made = server_at_0(own_servers, *LOGICAL), Made()
    old.set_clock(at(600))
    insert(old, made)
    mark = old.value("SELECT last_value FROM flake_internal.flake_mark")
    if crash:
        old.restart(mode="immediate")
    old.set_clock(running(0))
    publisher.sql("CREATE PUBLICATION sequences FOR ALL SEQUENCES")
    subscribe(publisher, old, "sequences")
    old.sql("DROP SUBSCRIPTION s")
    assert old.value("SELECT last_value FROM flake_internal.flake_mark") < mark
    assert old.sql(KEEPS) == [(not crash,)]
    if crash:
        old.set_clock(at(610))
        insert(old, made)
        assert old.sql(KEEPS) == [(True,)]
    old.set_clock(at(0))
    old.stop()
    new = own_servers(upgrade_of=old, clock=at(0))
    new.launch(*SETTINGS, *LOGICAL)
    assert attempts(new, made) == set()
    assert new.value("SELECT flake_timestamp(flake_next('twitter')) >= %s::timestamptz", at(600) + "+00")
    pass_through(new, made, 0, 600, 610)


def test_subscribers_of_all_sequences_need_the_extension(own_servers):
    publisher, subscriber = own_servers(*LOGICAL), own_servers(*LOGICAL, extension=False)
    publisher.sql("CREATE PUBLICATION sequences FOR ALL SEQUENCES")
    with pytest.raises(psycopg.errors.InvalidSchemaName, match="flake_internal"):
        subscribe(publisher, subscriber, "sequences")
    subscriber.sql("CREATE EXTENSION flake")
    subscribe(publisher, subscriber, "sequences")


def test_flake_take_loses_no_row_during_repack(own_servers):
    """REPACK is not MVCC-safe. flake_take returns each row, but a query whose snapshot is older than its lock misses rows."""
    server = own_servers(*LOGICAL)
    server.sql(f"{POSITIONS}; CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), n int)")
    server.sql("INSERT INTO positions VALUES ('mailer', 'outbox')")
    taken, stopped = [], threading.Event()

    def take():
        with server.connect() as db:
            while True:
                is_last = stopped.is_set()
                rows = db.execute("SELECT n FROM flake_take(NULL::outbox, 'positions', 'mailer', 100)").fetchall()
                taken.extend(n for n, in rows)
                if is_last and not rows:
                    return

    consumer = threading.Thread(target=take)
    consumer.start()
    try:
        with server.connect() as writer, server.connect() as keeper:
            for n in range(10):
                writer.execute(f"INSERT INTO outbox (n) SELECT g FROM generate_series({n * 500}, {n * 500 + 499}) g")
                keeper.execute("REPACK (CONCURRENTLY) outbox")
        newest = "SELECT COALESCE(max(id) < flake_min(flake_watermark(), 'twitter'), true) FROM outbox"
        wait_until(lambda: server.value(newest))
    finally:
        stopped.set()
        consumer.join()
    assert taken == list(range(5000))
    with server.connect() as reader:
        for locks_first in [False, True]:
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            reader.execute("LOCK TABLE outbox IN ACCESS SHARE MODE" if locks_first else "SELECT FROM positions")
            repack = threading.Thread(target=server.sql, args=["REPACK (CONCURRENTLY) outbox"])
            repack.start()
            if not locks_first:
                repack.join()
            count, = reader.execute("SELECT count(*) FROM outbox").fetchone()
            reader.execute("COMMIT")
            repack.join()
            assert (count == 5000) is locks_first


def test_repack_leaves_a_server_alone(own_servers):
    """While REPACK works, its slot is not one of logical replication."""
    server = own_servers(*LOGICAL)
    server.sql("CREATE TABLE t (id bigint PRIMARY KEY)")
    alone = "SELECT ok FROM flake_check() WHERE name = 'node number'"
    with server.connect() as holder:
        holder.execute("BEGIN; INSERT INTO t VALUES (1)")
        repack = threading.Thread(target=server.sql, args=["REPACK (CONCURRENTLY) t"])
        repack.start()
        wait_until(lambda: server.value("SELECT count(*) FROM pg_replication_slots WHERE plugin = 'pgrepack'") == 1)
        assert server.sql(alone) == [(True,)]
        holder.execute("COMMIT")
        repack.join()
    server.sql("SELECT pg_create_logical_replication_slot('other', 'pgoutput')")
    assert server.sql(alone) == [(False,)]


def test_a_standby_waits_for_a_watermark(own_servers):
    """The page on reading standbys waits by WAIT FOR instead of asking again and again."""
    primary = own_servers()
    standby = own_servers(standby_of=primary)
    primary.sql("CREATE TABLE t (id bigint DEFAULT flake_next('twitter'))")
    id, = primary.sql("INSERT INTO t DEFAULT VALUES RETURNING id")[0]
    wait_until(lambda: primary.value("SELECT flake_min(flake_watermark(), 'twitter') > %s", id))
    primary.sql("SELECT flake_publish_watermark()")
    lsn = primary.value("SELECT pg_current_wal_insert_lsn()")
    with standby.connect() as db:
        db.execute(f"WAIT FOR LSN '{lsn}'")
        assert db.execute("SELECT flake_min(flake_watermark(), 'twitter') > %s", (id,)).fetchone() == (True,)


def test_new_forms_of_statements_make_ids(own_servers):
    server = own_servers()
    server.sql("CREATE TABLE t (k text PRIMARY KEY, id bigint DEFAULT flake_next('twitter'), s sno DEFAULT sno_next())")
    with server.connect() as db:
        row = db.execute("INSERT INTO t VALUES ('a') RETURNING id, s::text").fetchone()
        again = "INSERT INTO t VALUES ('a') ON CONFLICT (k) DO SELECT RETURNING id, s::text"
        assert db.execute(again).fetchone() == row
        with db.cursor().copy("COPY (SELECT * FROM t) TO STDOUT (FORMAT json)") as copy:
            line = b"".join(copy)
        assert json.loads(line) == {"k": "a", "id": row[0], "s": row[1]}
        with db.cursor().copy("COPY t (k, s) FROM STDIN (ON_ERROR set_null)") as copy:
            copy.write(f"b\t{row[1]}\nc\tno sno\n")
        assert db.execute("SELECT k, s::text FROM t WHERE k > 'a' ORDER BY k").fetchall() == [("b", row[1]), ("c", None)]


def test_plan_advice_and_filters_by_time_work_together(own_servers):
    """Another extension uses the hook that replaces filters, and is loaded before or after this one."""
    server = own_servers()
    server.sql("CREATE TABLE t AS SELECT flake_next('twitter') AS id FROM generate_series(1, 1000); CREATE INDEX t_id ON t (id)")
    query = "EXPLAIN (COSTS OFF) SELECT * FROM t WHERE flake_timestamp(id) < '2020-01-01Z'"
    for statements in [["LOAD 'pg_plan_advice'"], ["SELECT flake_next('twitter')", "LOAD 'pg_plan_advice'"]]:
        with server.connect() as db:
            for statement in statements:
                db.execute(statement)
            for advice, scan in [("SEQ_SCAN(t)", "Seq Scan"), ("BITMAP_HEAP_SCAN(t)", "Bitmap Heap Scan")]:
                db.execute(f"SET pg_plan_advice.advice = '{advice}'")
                plan = "\n".join(line for line, in db.execute(query).fetchall())
                assert scan in plan and re.search(r"\(id <=? '\d+'::bigint\)", plan) and "flake_timestamp" not in plan, plan


def test_a_generated_column_is_published(own_servers):
    """A subscriber without the extension gets the time of an ID as a plain column. PostgreSQL has this since version 18."""
    publisher, subscriber = own_servers(*LOGICAL), own_servers(*LOGICAL, extension=False)
    publisher.sql("""CREATE TABLE t (id bigint PRIMARY KEY DEFAULT flake_next('twitter'),
        made timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED)""")
    subscriber.sql("CREATE TABLE t (id bigint PRIMARY KEY, made timestamptz)")
    publisher.sql("CREATE PUBLICATION p FOR TABLE t WITH (publish_generated_columns = stored)")
    subscribe(publisher, subscriber, "p")
    publisher.sql("INSERT INTO t SELECT FROM generate_series(1, 10)")
    wait_until(lambda: subscriber.value("SELECT count(*) FROM t") == 10)
    assert subscriber.sql("SELECT * FROM t ORDER BY id") == publisher.sql("SELECT * FROM t ORDER BY id")
