"""A server that goes on with another's data makes none of its IDs again, whatever the clocks say.

Every database keeps the mark in its WAL, so a server that has replayed a commit knows an instant above the commit's IDs.
"""

import concurrent.futures
import contextlib
import functools
import os
import pathlib
import threading
import time

import psycopg
import pytest

from clients import KINDS, Load, Made
from conftest import ROOT, pg_config
from standing_clock import (
    ROWS,
    SESSIONS,
    SETTINGS,
    TABLE,
    at,
    attempts,
    cancelled,
    fail_over,
    insert,
    make,
    make_in_all,
    open_ledger,
    pass_through,
    server_at_0,
    sessions,
    wait_until,
)

SOAK = int(os.environ.get("FLAKE_SOAK", "1"))
# Workers make all IDs of a query, in which two of them read a table of 20 pages.
PARALLEL = {
    "options": "-c parallel_leader_participation=off -c parallel_setup_cost=0 -c parallel_tuple_cost=0 "
    "-c min_parallel_table_scan_size=0 -c max_parallel_workers_per_gather=2",
}
WIDE = """ALTER FUNCTION flake_next(text) PARALLEL SAFE;
          ALTER FUNCTION sno_next(integer) PARALLEL SAFE;
          CREATE TABLE wide AS SELECT repeat('x', 400) FROM generate_series(1, 400);
          ALTER TABLE wide SET (parallel_workers = 2)"""


def restart_with_nothing_to_replay(primary, standby):
    """A standby replays from the last checkpoint, of which it knows no commit before it."""
    standby.wait_for_replay(primary)
    primary.sql("CHECKPOINT")
    standby.wait_for_replay(primary)
    standby.sql("CHECKPOINT")
    standby.restart()
    standby.wait_for_replay(primary)


# What happens before the standby is promoted and, after `yield`, between that and its first ID. The primary's clock is at 0 in
# the beginning. IDs are made at 0 and at 60, and the last commit's time is always 0.


def commit_at_0_after_ids_at_60(primary, standby, made):
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    yield


def commits_out_of_order(primary, standby, made):
    """Records of commits are not in the order of their times where sessions commit together."""
    primary.set_clock(at(0.005))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    yield
    standby.set_clock(at(-1))
    attempts(standby, made)
    standby.set_clock(at(0.005))
    attempts(standby, made)


def clock_accepted(primary, standby, made):
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("SELECT flake_accept_clock()")
    primary.set_clock(at(2))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    yield
    attempts(standby, made)
    standby.set_clock(at(2))
    attempts(standby, made)


def clock_accepted_on_the_standby(primary, standby, made):
    """It knows the mark from the WAL only."""
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    yield
    attempts(standby, made)
    standby.sql("SELECT flake_accept_clock()")


def prepared(primary, standby, made):
    primary.sql("CREATE TABLE plain ()")
    primary.set_clock(at(60))
    with sessions(primary) as dbs:
        for number, db in enumerate(dbs):
            db.execute("BEGIN")
            made.add(db.execute(f"INSERT INTO kept SELECT FROM {ROWS} RETURNING *").fetchall())
            db.execute(f"PREPARE TRANSACTION '{number}'")
    yield
    with standby.connect() as db:
        for number in range(SESSIONS):
            db.execute(f"COMMIT PREPARED '{number}'")
    assert standby.value("SELECT count(*) FROM kept") == 20 * SESSIONS


def standby_restarted(primary, standby, made):
    insert(primary, made)
    restart_with_nothing_to_replay(primary, standby)
    yield


def switchover(primary, standby, made):
    insert(primary, made)
    restart_with_nothing_to_replay(primary, standby)
    primary.stop("fast")
    yield


def restarted_before_its_first_id(primary, standby, made):
    insert(primary, made)
    yield
    standby.restart()


def restarted_after_its_first_attempt(primary, standby, made):
    commits = commit_at_0_after_ids_at_60(primary, standby, made)
    next(commits)
    yield
    attempts(standby, made)
    standby.restart(mode="immediate")


def crashed_before_its_first_id(primary, standby, made):
    insert(primary, made)
    yield
    standby.sql("CHECKPOINT")
    standby.restart(mode="immediate")


def read_only_transactions(primary, standby, made):
    primary.sql("CREATE TABLE plain ()")
    primary.set_clock(at(60))
    make_in_all(primary, made, options="-c default_transaction_read_only=on")
    yield


def parallel_workers(primary, standby, made):
    if primary.value("SHOW server_version_num") < "160000":
        pytest.skip("PostgreSQL 15 starts workers in a signal handler, where libfaketime does not set their clocks")
    primary.sql(WIDE)
    primary.set_clock(at(60))
    for _ in range(3):
        with primary.connect(**PARALLEL) as db:
            make(db, made, "wide")
    yield {"rows": "wide"} | PARALLEL


# Each with how far the standby's clock is behind at the promotion, in seconds.
FAILOVERS = [
    (commit_at_0_after_ids_at_60, 3), (commit_at_0_after_ids_at_60, 3600), (commits_out_of_order, 1), (clock_accepted, 3600),
    (clock_accepted_on_the_standby, 3600), (prepared, 3600), (standby_restarted, 3), (standby_restarted, 3600),
    (switchover, 3600), (restarted_before_its_first_id, 3600), (restarted_after_its_first_attempt, 3600),
    (crashed_before_its_first_id, 3), (read_only_transactions, 3), (parallel_workers, 3600),
]  # fmt: skip


@pytest.mark.parametrize("happens, behind", FAILOVERS, ids=[f"{happens.__name__}-{behind}" for happens, behind in FAILOVERS])
def test_failover(own_servers, happens, behind):
    """The clock of the standby is behind, and later comes to the instants at which the primary made IDs."""
    primary, made = server_at_0(own_servers), Made()
    standby = own_servers(standby_of=primary, clock=at(-behind))
    steps = happens(primary, standby, made)
    options = next(steps) or {}
    if happens is not switchover:
        fail_over(primary, standby)
    else:
        standby.promote()
    assert next(steps, None) is None
    pass_through(standby, made, -behind, 0, 60, **options)


def test_the_error_says_how_far_the_clock_is_behind(own_servers):
    primary, made = server_at_0(own_servers), Made()
    standby = own_servers(standby_of=primary, clock=at(-3600))
    insert(primary, made)
    restart_with_nothing_to_replay(primary, standby)
    fail_over(primary, standby)
    with standby.connect() as db:
        for kind in ["twitter", "base64id"]:
            error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, f"SELECT flake_next('{kind}')")
            assert error.value.diag.message_primary == f'clock is behind the last ID of layout "{kind}"'


def test_two_failovers(own_servers):
    """The second new primary has replayed no commit but one of the first, whose clock was behind."""
    first, made = server_at_0(own_servers), Made()
    second = own_servers(standby_of=first, clock=at(0))
    third = own_servers(standby_of=second, clock=at(0))
    first.set_clock(at(60))
    insert(first, made)
    third.wait_for_replay(first)
    fail_over(first, second)
    second.sql("CREATE TABLE plain ()")
    fail_over(second, third)
    pass_through(third, made, 0, 60)


def test_two_failovers_with_ids_of_both(own_servers):
    first, made = server_at_0(own_servers), Made()
    second = own_servers(standby_of=first, clock=at(0))
    third = own_servers(standby_of=second, clock=at(0))
    first.set_clock(at(60))
    insert(first, made)
    third.wait_for_replay(first)
    fail_over(first, second)
    second.set_clock(at(80))
    open_ledger(second, made)
    second.set_clock(at(120))
    insert(second, made)
    second.set_clock(at(0))
    second.sql("CREATE TABLE plain ()")
    fail_over(second, third)
    pass_through(third, made, 0, 60, 80, 120)


def become_standby(server, primary):
    server.write("standby.signal")
    server.launch(f"primary_conninfo=host={primary.dir} user=postgres", "recovery_target_timeline=latest")


def test_there_and_back(own_servers):
    """A switchover to the standby and one back. The first server's own file knows only what it did itself."""
    first, made = server_at_0(own_servers), Made()
    second = own_servers(standby_of=first, clock=at(10))
    insert(first, made)
    second.wait_for_replay(first)
    first.stop("fast")
    second.promote()
    second.set_clock(at(50))
    open_ledger(second, made)
    second.set_clock(at(60))
    insert(second, made)
    (first.dir / "data" / "postgresql.auto.conf").write_text("")
    become_standby(first, second)
    restart_with_nothing_to_replay(second, first)
    second.stop("fast")
    first.promote()
    pass_through(first, made, 0, 50, 60)


@pytest.mark.parametrize("idle", [False, True], ids=["busy", "idle"])
@pytest.mark.parametrize("lag", [0, 1])
def test_the_old_primary_goes_on(own_servers, idle, lag):
    """The new one begins two seconds after its promotion, so that both can run for this long together. What was not replicated is
    covered too."""
    old, made = server_at_0(own_servers), Made()
    new = own_servers(standby_of=old, clock=at(100))
    old.set_clock(at(100 - lag))
    if not idle:
        insert(old, made)
    new.wait_for_replay(old)
    new.sql("ALTER SYSTEM SET primary_conninfo = ''")
    new.reload()
    wait_until(lambda: new.value("SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'") == 0)
    if lag and not idle:
        old.set_clock(at(99.5))
        insert(old, made)
    new.promote()
    attempts(new, made)
    for seconds in [100, 100.5] + [101, 101.9] * (not lag):
        old.set_clock(at(seconds))
        insert(old, made)
    old.stop("immediate")
    pass_through(new, made, 100, 100.5, 101, 101.9)


def load(server, made, max_clock_wait):
    """Eight sessions wait until the present is free, and make IDs for a while."""

    def make():
        with server.connect() as db:
            db.execute(f"SET flake.max_clock_wait = '{max_clock_wait}'")
            for _ in range(20):
                made.make(db, 20)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(make) for _ in range(8)]:
            done.result()


@contextlib.contextmanager
def inserting(server):
    """Eight sessions that commit rows."""
    ends = threading.Event()

    def insert_rows():
        with server.connect() as db:
            while not ends.is_set():
                db.execute("INSERT INTO kept SELECT FROM generate_series(1, 5)")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        running = [pool.submit(insert_rows) for _ in range(8)]
        yield
        ends.set()
        for done in running:
            done.result()


@pytest.mark.parametrize("round", range(SOAK))
def test_failover_under_load_where_clocks_are_equal(own_servers, round):
    """All IDs of the old primary count, those too that were made after the promotion or not committed. To wait some seconds is no
    error, however short the sessions' patience."""
    old, made = own_servers(clock="+0"), Made()
    old.sql(TABLE)
    new = own_servers(standby_of=old, clock="+0")
    with Load(old, made, sessions=4), inserting(old):
        time.sleep(2)
        new.promote()
    old.stop("immediate")
    replicated = new.sql("SELECT * FROM kept")
    assert len(replicated) > 500
    made.add(replicated)
    load(new, made, "0")


@pytest.mark.parametrize("round", range(SOAK))
def test_failover_under_load_where_the_clock_is_behind(own_servers, round):
    """The new primary makes IDs in the milliseconds of the last commits, whose records are not in the order of their times."""
    primary, replicated = own_servers(clock="+0"), Made()
    primary.sql(TABLE)
    standby = own_servers(standby_of=primary, clock="-3600")
    with standby.connect() as db:
        for call in KINDS.values():
            pytest.raises(psycopg.errors.ReadOnlySqlTransaction, db.execute, f"SELECT {call}")
    with inserting(primary):
        time.sleep(2)
    last, = primary.sql("SELECT extract(epoch FROM max(flake_timestamp(twitter::bigint)))::float FROM kept")[0]
    fail_over(primary, standby)
    replicated.add(standby.sql("SELECT * FROM kept"))
    assert len(replicated) > 1000
    with standby.connect() as db:
        assert replicated.make_each(db, 1) == list(KINDS)
    standby.set_clock(f"{last - time.time() - 0.5:+f}")
    load(standby, replicated, "1min")


def test_each_database_keeps_its_own_mark(own_servers):
    """One in which nothing was made does not wait for another one's IDs; the other keeps its promise."""
    primary, made = server_at_0(own_servers), Made()
    primary.sql("CREATE DATABASE other")
    for statement in ["CREATE EXTENSION flake", TABLE]:
        with primary.connect(dbname="other") as db:
            db.execute(statement)
    standby = own_servers(standby_of=primary, clock=at(0))
    primary.set_clock(at(60))
    make_in_all(primary, made, dbname="other")
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    fail_over(primary, standby)
    assert "twitter" in attempts(standby, made, dbname="other")
    pass_through(standby, made, 0, 60, dbname="other")


def test_a_database_without_ids_makes_the_first_ones(own_servers):
    """It opens the ledger, and the database with IDs comes later."""
    primary, made = server_at_0(own_servers), Made()
    primary.sql("CREATE DATABASE other")
    with primary.connect(dbname="other") as db:
        db.execute("CREATE EXTENSION flake")
    standby = own_servers(standby_of=primary, clock=at(-3600))
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    fail_over(primary, standby)
    attempts(standby, made, dbname="other")
    pass_through(standby, made, -3600, 0, 60)


# Restored and upgraded servers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["lsn", "name"])
def test_recovery_to_a_point_in_time(own_servers, target):
    """It ends with a commit, of which nothing but the WAL before it says when its IDs were made."""
    server, made = server_at_0(own_servers), Made()
    restored = own_servers(copy_of=server, clock=at(-3600))
    server.sql("CREATE TABLE plain ()")
    server.set_clock(at(60))
    make_in_all(server, made)
    with server.connect() as db:
        db.execute("BEGIN")
        made.add(db.execute(f"INSERT INTO kept SELECT FROM {ROWS} RETURNING *").fetchall())
        end, = db.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
        db.execute("COMMIT")
    server.set_clock(at(0))
    server.sql("CREATE TABLE plain_too ()")
    server.sql("SELECT pg_create_restore_point('here')")
    server.sql("CREATE TABLE later ()")
    server.stop()
    restored.write("recovery.signal")
    restored.launch(
        f"restore_command=cp {server.dir}/data/pg_wal/%f %p", "recovery_target_action=promote",
        f"recovery_target_lsn={end}" if target == "lsn" else "recovery_target_name=here",
    )  # fmt: skip
    wait_until(lambda: not restored.value("SELECT pg_is_in_recovery()"))
    assert restored.sql("SELECT count(*), to_regclass('later') FROM kept") == [(20, None)]
    pass_through(restored, made, -3600, 0, 60)


def version_17():
    """Its pg_config and, if it is not to be had here, why not."""
    if not pg_config("--version").name.startswith("PostgreSQL 18"):
        return None, "the upgrade is tested from PostgreSQL 17 to 18"
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    places = ["/usr/lib/postgresql/17", "/var/cache/flake/postgresql-17", cache / "flake/postgresql-17"]
    found = [place / "bin/pg_config" for place in map(pathlib.Path, places) if (place / "bin/initdb").exists()]
    if not found:
        return None, "there is no PostgreSQL 17 to upgrade from"
    scripts = [sorted((ROOT / f"target/stage-{major}").rglob("flake--*.sql")) for major in [17, 18]]
    if not all(scripts) or scripts[0][0].read_bytes() != scripts[1][0].read_bytes():
        return None, "flake was not built for PostgreSQL 17 from the same sources"
    return found[0], None


def test_upgrade(own_servers):
    """pg_upgrade takes no file of the data directory along that it does not know, and of a sequence the last value only, which
    counts up to an hour ahead of the clock."""
    older, lacks = version_17()
    if lacks:
        pytest.skip(lacks)
    old, made = server_at_0(functools.partial(own_servers, pg_config=older)), Made()
    old.set_clock(at(60))
    insert(old, made)
    old.set_clock(at(0))
    old.stop()
    new = own_servers(upgrade_of=old, clock=at(-600))
    # The same number of slots, of which 17 has one for each worker of autovacuum.
    new.launch(*SETTINGS, "autovacuum_worker_slots=2")
    assert new.value("SELECT count(*) FROM kept") == 20 * SESSIONS
    pass_through(new, made, -600, 0, 60)


# Servers with numbers of their own -----------------------------------------------------------------------------------------


def test_a_standby_with_its_own_number_does_not_wait(own_servers):
    """What the primary did with its clock ahead is no concern of another node."""
    primary, made = server_at_0(own_servers, "flake.node_count=2", "flake.node_id=0"), Made()
    primary.set_clock(at(40))
    insert(primary, made)
    standby = own_servers("flake.node_id=1", standby_of=primary, clock=at(0))
    primary.set_clock(at(41))
    insert(primary, made)
    fail_over(primary, standby)
    open_ledger(standby, made)
    standby.set_clock(at(1.5))
    assert attempts(standby, made, patience=5) == set()
    assert standby.value("SELECT (flake_decode(twitter::bigint)).worker < 512 FROM kept LIMIT 1")
    assert standby.value("SELECT (flake_decode(flake_next('twitter'))).worker >= 512")


def test_rewind_where_every_node_has_its_own_number(own_servers):
    """A file that pg_rewind has brought is the other node's memory, not this one's."""
    first, made = server_at_0(own_servers, "flake.node_count=2", "flake.node_id=0", "wal_log_hints=on"), Made()
    second = own_servers("flake.node_id=1", standby_of=first, clock=at(0))
    first.set_clock(at(40))
    insert(first, made)
    second.wait_for_replay(first)
    first.set_clock(at(0))
    assert "twitter" in attempts(first, made)
    first.sql("CREATE TABLE plain ()")
    second.wait_for_replay(first)
    second.promote()
    first.sql("CREATE TABLE lost ()")
    open_ledger(second, made)
    second.set_clock(at(3))
    insert(second, made)
    first.stop("fast")
    second.sql("CHECKPOINT")
    first.rewind(second)
    first.launch()
    first.wait_for_replay(second)
    assert first.value("SELECT pg_is_in_recovery()")
    second.stop("fast")
    first.promote()
    pass_through(first, made, 3, 40)


@pytest.mark.parametrize("way", ["restart", "without its file", "failover"])
def test_another_node_count_counts_for_every_node(own_servers, way):
    """The workers of a node may have been another's, so its marks hold for all."""
    server, made = server_at_0(own_servers), Made()
    numbers = ["flake.node_count=32", "flake.node_id=5"]
    standby = own_servers(*numbers, standby_of=server, clock=at(0))
    server.set_clock(at(3600))
    insert(server, made)
    server.set_clock(at(0))
    server.sql("CREATE TABLE plain ()")
    if way == "failover":
        fail_over(server, standby)
        server = standby
    else:
        server.stop()
        if way == "without its file":
            (server.dir / "data" / "flake.mark").unlink()
        server.launch(*numbers)
    with server.connect() as db:
        for kind in ["twitter", "base64id"]:
            with cancelled(db):
                error = pytest.raises(psycopg.Error, db.execute, f"SELECT flake_next('{kind}')").value
            assert isinstance(error, psycopg.errors.ObjectNotInPrerequisiteState)
    pass_through(server, made, 0, 3600)
