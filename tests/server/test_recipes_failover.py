"""The recipes of docs/tailing.md for consumers whose primary changes."""

import concurrent.futures
import contextlib
import threading

import psycopg

from standing_clock import stop_replaying
from test_recipes import python, wait_until_complete, with_outbox, written
from waiting import Background, wait_until

# Somebody asks how far a standby has come.
ASKS = "SELECT FROM pg_stat_activity WHERE query LIKE '%pg_last_wal_replay_lsn%' AND pid <> pg_backend_pid()"


def test_a_consumer_on_a_standby_that_is_promoted(own_servers):
    """It does not wait for what the old primary has written and the standby never gets."""
    read = python("A consumer on a standby", "read_on_standby")
    primary = with_outbox(own_servers())
    standby = own_servers(standby_of=primary)
    with primary.connect() as there, standby.connect() as here:
        there.execute("INSERT INTO outbox SELECT FROM generate_series(1, 100)")
        standby.wait_for_replay(primary)
        stop_replaying(standby)
        there.execute("INSERT INTO outbox SELECT FROM generate_series(1, 100)")
        wait_until_complete(primary)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            reading = pool.submit(read, there, here, 0)
            wait_until(lambda: standby.sql(ASKS))
            standby.promote()
            rows = reading.result()
    assert [id for id, _ in rows] == written(standby) and len(rows) == 100
    standby.sql("INSERT INTO outbox DEFAULT VALUES")
    wait_until_complete(standby)
    with standby.connect() as here:
        assert len(read(here, here, rows[-1][0])) == 1


def test_a_consumer_that_survives_a_failover(own_servers):
    """The primary changes while rows are written; each is read once, in order, and none is left out."""
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

    # It goes on for ever unless it finds the end.
    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    writing = Background(*[write] * 3)
    with writing:
        wait_until(lambda: len(taken) > 100)
        new.wait_for_replay(old)
        # What it has committed is on the standby when it has stopped.
        old.stop()
        new.promote()
        before = len(taken)
        wait_until(lambda: len(taken) > before + 100)
    new.sql("INSERT INTO outbox (event) VALUES ('end')")
    wait_until(lambda: not consumer.is_alive())
    assert taken == written(new)
