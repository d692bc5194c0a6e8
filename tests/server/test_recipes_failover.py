"""The recipes of docs/how-to/tail-recipes.md for consumers whose primary changes."""

import concurrent.futures
import contextlib
import threading

import psycopg
import pytest

from standing_clock import stop_replaying
from test_recipes import python, wait_until_complete, with_outbox, written
from waiting import Background, wait_until

READS = "A consumer on a standby"
# A session waits until a standby has replayed something.
WAITS = "SELECT FROM pg_stat_activity WHERE query LIKE '%replay_lsn%' AND pid <> pg_backend_pid()"


@pytest.mark.matrix
def test_a_consumer_does_not_wait_for_rows_that_a_promoted_standby_never_gets(own_servers):
    """The old primary has written rows that the standby never gets."""
    read = python(READS, "read_on_standby")
    primary = with_outbox(own_servers())
    primary.sql("SELECT flake_publish_watermark()")
    standby = own_servers(standby_of=primary)
    standby.wait_for_replay(primary)
    with primary.connect() as there, standby.connect() as here:
        there.execute("INSERT INTO outbox SELECT FROM generate_series(1, 100)")
        wait_until_complete(primary)
        read(there, here, 0)
        standby.wait_for_replay(primary)
        stop_replaying(standby)
        there.execute("INSERT INTO outbox SELECT FROM generate_series(1, 100)")
        wait_until_complete(primary)
        rows = read(there, here, 0)
        standby.promote()
    assert [id for id, _ in rows] == written(standby) and len(rows) == 100
    standby.sql("INSERT INTO outbox DEFAULT VALUES")
    wait_until_complete(standby)
    with standby.connect() as here:
        assert len(read(here, here, rows[-1][0])) == 1


@pytest.mark.matrix
@pytest.mark.parametrize("reads_on", ["the standby", "a standby of it"])
def test_a_transaction_prepared_at_a_promotion_loses_no_row(own_servers, reads_on):
    """The old primary has committed the transaction, but the standby never learns of that. The new primary commits it later."""
    read = python(READS, "read_on_standby")
    primary = with_outbox(own_servers("max_prepared_transactions=5"))
    primary.sql("SELECT flake_publish_watermark()")
    standby = own_servers(standby_of=primary)
    reader = own_servers(standby_of=standby) if reads_on == "a standby of it" else standby
    reader.wait_for_replay(primary)
    with primary.connect() as there, reader.connect() as here:
        there.execute("BEGIN; INSERT INTO outbox (event) VALUES ('prepared'); PREPARE TRANSACTION 'two'")
        there.execute("INSERT INTO outbox SELECT FROM generate_series(1, 10)")
        read(there, here, 0)
        standby.wait_for_replay(primary)
        stop_replaying(standby)
        there.execute("COMMIT PREPARED 'two'")
        wait_until_complete(primary)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            reading = pool.submit(read, there, here, 0)
            wait_until(lambda: reading.done() or reader.sql(WAITS))
            primary.stop("immediate")
            standby.promote()
            # The new primary makes the same IDs and rows that the old one lost.
            wait_until(lambda: standby.sql("INSERT INTO outbox DEFAULT VALUES") or reading.done())
            taken = [id for id, _ in reading.result()]
    with standby.connect() as there, reader.connect() as here:

        def go_on():
            taken.extend(id for id, _ in read(there, here, max(taken, default=0)))
            return taken

        go_on()
        there.execute("COMMIT PREPARED 'two'")
        there.execute("INSERT INTO outbox (event) VALUES ('end')")
        last = written(standby)[-1]
        wait_until(lambda: go_on()[-1:] == [last])
    assert taken == written(standby)


@pytest.mark.matrix
def test_a_consumer_that_survives_a_failover_reads_each_row_once(own_servers):
    """The primary changes while rows are written. Each row is read once and in order, and none is left out."""
    follow = python("A consumer that survives a failover", "follow_the_primary")
    old = with_outbox(own_servers())
    new = own_servers(standby_of=old)
    servers = f"host={old.dir},{new.dir} user=postgres dbname=postgres target_session_attrs=read-write"
    taken = []

    def write():
        while not writing.ends.is_set():
            with contextlib.suppress(psycopg.Error), psycopg.connect(servers, autocommit=True) as db:
                while not writing.ends.is_set():
                    db.execute("INSERT INTO outbox DEFAULT VALUES")

    def consume():
        for id, event in follow(servers, 0):
            taken.append(id)
            if event == "end":
                return

    # The thread ends only if it finds the end.
    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    writing = Background(*[write] * 3)
    with writing:
        wait_until(lambda: len(taken) > 100)
        new.wait_for_replay(old)
        # The stopped primary has sent everything that it has committed.
        old.stop()
        new.promote()
        before = len(taken)
        wait_until(lambda: len(taken) > before + 100)
    new.sql("INSERT INTO outbox (event) VALUES ('end')")
    wait_until(lambda: not consumer.is_alive())
    assert taken == written(new)
