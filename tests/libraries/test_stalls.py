"""Moments that are too short to be met by chance: sessions of a library that was built for it wait at named points."""

import concurrent.futures
import contextlib

from clients import Made
from horizon import OUTBOX, horizon, insert, wait_for_next_tick
from standing_clock import SESSIONS, at, make, pass_through, server_at_0
from test_replaced import replace
from waiting import wait_until


@contextlib.contextmanager
def stalls(server, point):
    """Makes sessions wait at a point until the end of the block. Yields a function that waits for the first of them."""
    file = server.dir / "data" / f"flake.stall.{point.replace(' ', '_')}"
    server.write(file.name, "")
    try:
        yield lambda: wait_until(lambda: "here" in file.read_text())
    finally:
        file.unlink()


def test_no_exit_note_is_written_once_another_session_has_come(own_servers):
    """The last session has left the count, and others make IDs. A note would give their time back after a crash."""
    server, made = server_at_0(own_servers), Made()
    replace(server, "stalls")
    with contextlib.ExitStack() as opened:
        with stalls(server, "left") as has_come:
            with server.connect() as last:
                make(last, made)
                pid = last.info.backend_pid
            has_come()
            dbs = [opened.enter_context(server.connect()) for _ in range(SESSIONS)]
            for seconds in [0, 1.5]:
                server.set_clock(at(seconds))
                for db in dbs:
                    make(db, made)
        wait_until(lambda: not server.sql("SELECT FROM pg_stat_activity WHERE pid = %s", pid))
        server.stop("immediate")
    server.launch()
    pass_through(server, made, 1.5)


def test_a_transaction_that_is_being_prepared_holds_a_horizon(own_servers):
    """A transaction is among the prepared ones before it leaves its slot, so it is seen in one place or in both."""
    server = own_servers("max_prepared_transactions=10")
    server.sql(OUTBOX)
    replace(server, "stalls")
    with server.connect() as writer, server.connect() as tailer, concurrent.futures.ThreadPoolExecutor(1) as pool:
        horizon(tailer)
        # Another transaction was prepared before.
        writer.execute("BEGIN")
        insert(writer)
        writer.execute("PREPARE TRANSACTION 'earlier'")
        writer.execute("COMMIT PREPARED 'earlier'")
        writer.execute("BEGIN")
        id = insert(writer)
        wait_for_next_tick(tailer, id)
        with stalls(server, "slots read") as has_come:
            asked = pool.submit(horizon, tailer)
            has_come()
            writer.execute("PREPARE TRANSACTION 'meanwhile'")
        assert asked.result() <= id
        writer.execute("COMMIT PREPARED 'meanwhile'")


def test_the_second_session_to_ask_waits_until_the_first_has_learned(own_servers):
    """The second session waits until the first one has learned of transactions that were prepared before the start."""
    server = own_servers("max_prepared_transactions=4")
    server.sql(OUTBOX)
    with server.connect() as db:
        db.execute("BEGIN")
        id = insert(db)
        db.execute("PREPARE TRANSACTION 'open'")
    replace(server, "stalls")
    server.restart()
    with server.connect() as first, server.connect() as second, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for db in first, second:
            db.execute("SELECT flake_next('twitter')")
        wait_for_next_tick(first, id)
        with stalls(server, "prepared read") as has_come:
            asked = [pool.submit(horizon, first)]
            has_come()
            asked.append(pool.submit(horizon, second))
            # The second session reaches the same point and waits there, or it has answered too early.
            with contextlib.suppress(concurrent.futures.TimeoutError):
                asked[1].result(0.5)
        assert [answer.result() <= id for answer in asked] == [True, True]
    server.sql("COMMIT PREPARED 'open'")
    assert server.value("SELECT id FROM outbox") == id
