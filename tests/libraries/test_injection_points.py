"""Moments that are too short to be met by chance: sessions of a library that was built for it wait at named points."""

import concurrent.futures
import contextlib
import datetime
import re

import pytest

from conftest import ROOT
from standing_clock import running
from test_replaced import replace
from waiting import wait_until
from watermark import OUTBOX, insert, one, wait_for_next_tick, watermark


@contextlib.contextmanager
def waits_at(server, point):
    """Makes sessions wait at a point until the end of the block. Yields a function that waits for the first of them, and returns
    all that have arrived."""
    file = server.dir / "data" / f"flake.injection_point.{point.replace(' ', '_')}"
    server.write(file.name, "")

    def arrived():
        wait_until(lambda: file.read_text().endswith("\n"))
        return re.findall(r"\d+", file.read_text())

    try:
        yield arrived
    finally:
        file.unlink()


def test_an_acceptance_counts_for_a_session_that_has_published_its_bound(own_servers):
    """The session has read a time that leads the clock by an hour. After the acceptance, no ID is made there."""
    server = own_servers(clock=running(3600))
    server.sql("SELECT flake_next('twitter')")
    replace(server, "injection_points")
    server.set_clock(running(0))
    lead = "SELECT flake_timestamp(flake_next('twitter')) - clock_timestamp()"
    with server.connect() as writer, server.connect() as operator, concurrent.futures.ThreadPoolExecutor(1) as pool:
        for db in writer, operator:
            assert one(db, lead) > datetime.timedelta(minutes=59)
        with waits_at(server, "published") as has_come:
            made = pool.submit(one, writer, lead)
            has_come()
            operator.execute("SELECT flake_accept_clock()")
        assert made.result() < datetime.timedelta(seconds=5)


def test_a_transaction_that_is_being_prepared_holds_a_watermark(own_servers):
    """A transaction is among the prepared ones before it leaves its proc, so it is seen in one place or in both."""
    server = own_servers("max_prepared_transactions=10")
    server.sql(OUTBOX)
    replace(server, "injection_points")
    with server.connect() as writer, server.connect() as tailer, concurrent.futures.ThreadPoolExecutor(1) as pool:
        watermark(tailer)
        # Another transaction was prepared before.
        writer.execute("BEGIN")
        insert(writer)
        writer.execute("PREPARE TRANSACTION 'earlier'")
        writer.execute("COMMIT PREPARED 'earlier'")
        writer.execute("BEGIN")
        id = insert(writer)
        wait_for_next_tick(tailer, id)
        with waits_at(server, "procs read") as has_come:
            asked = pool.submit(watermark, tailer)
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
    replace(server, "injection_points")
    server.restart()
    with server.connect() as first, server.connect() as second, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for db in first, second:
            db.execute("SELECT flake_next('twitter')")
        wait_for_next_tick(first, id)
        with waits_at(server, "prepared read") as has_come:
            asked = [pool.submit(watermark, first)]
            has_come()
            asked.append(pool.submit(watermark, second))
            # The second session reaches the same point and waits there, or it has answered too early.
            with contextlib.suppress(concurrent.futures.TimeoutError):
                asked[1].result(0.5)
        assert [answer.result() <= id for answer in asked] == [True, True]
    server.sql("COMMIT PREPARED 'open'")
    assert server.value("SELECT id FROM outbox") == id


# For each lock, what takes it.
LOCKS = {
    "FlakeLedger": "SELECT flake_next('twitter')",
    "FlakeMark": "SELECT flake_accept_clock()",
    "FlakeWatermark": "BEGIN; SELECT flake_next('twitter'); PREPARE TRANSACTION '{}'",
}


def test_each_lock_has_a_statement_that_takes_it():
    named = {name for source in (ROOT / "src/ledger").rglob("*.rs") for name in re.findall(r'c"(Flake\w+)"', source.read_text())}
    assert named == set(LOCKS)


@pytest.mark.parametrize("lock", LOCKS)
def test_one_session_at_a_time_holds_a_lock(own_servers, lock):
    """The simulator has locks of its own. Here one session waits under PostgreSQL's, and another one waits for it."""
    server = own_servers("max_prepared_transactions=4")
    server.sql("SELECT flake_next('twitter')")
    replace(server, "injection_points")
    server.restart()
    name = lock if server.value("SHOW server_version_num") >= "170000" else "Extension"
    with contextlib.ExitStack() as opened:
        dbs = [opened.enter_context(server.connect()) for _ in range(2)]
        pids = [str(db.info.backend_pid) for db in dbs]
        for db in dbs:
            # Sessions have joined, so that none takes the lock at the wrong place.
            db.execute("SELECT flake_next('twitter')")
        if lock == "FlakeLedger":
            dbs = [opened.enter_context(server.connect()) for _ in range(2)]
            pids = [str(db.info.backend_pid) for db in dbs]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            with waits_at(server, lock) as arrived:
                calls = [pool.submit(dbs[0].execute, LOCKS[lock].format("first"))]
                assert arrived() == pids[:1]
                calls.append(pool.submit(dbs[1].execute, LOCKS[lock].format("second")))
                waits = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
                wait_until(lambda: pids[1] in arrived() or server.value(waits, int(pids[1])) == name)
                assert arrived() == pids[:1], "both sessions hold the lock"
            for call in calls:
                call.result()
    for prepared in ("first", "second") if lock == "FlakeWatermark" else ():
        server.sql(f"COMMIT PREPARED '{prepared}'")
