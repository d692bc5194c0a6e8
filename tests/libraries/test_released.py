"""The library of a release and the present one on the same data: in one server, one after the other, and on servers that follow
each other, with the objects of either version."""

import concurrent.futures
import re
import threading

import psycopg
import pytest

from clients import KINDS, Made
from next_release import RELEASED, RELEASES, VERSION, script
from standing_clock import at, attempt, attempts, fail_over, insert, make, pass_through, server_at_0, sessions
from test_replaced import LIBRARIES, has_the_old_one, replace
from used_database import CONTENT, USED
from waiting import wait_until

UPGRADE = "ALTER EXTENSION flake UPDATE"
INSTALLED = "SELECT extversion FROM pg_extension WHERE extname = 'flake'"
# A function whose C symbol no library has.
LATER = "flake_of_a_later_version"
DECLARE_LATER = f"""
    CREATE FUNCTION later(text) RETURNS bigint LANGUAGE c AS '$libdir/flake', 'flake_next';
    UPDATE pg_proc SET prosrc = '{LATER}' WHERE proname = 'later'"""


@pytest.fixture(params=RELEASED)
def version(request):
    if not library(request.param).exists():
        pytest.skip(f"this clone has no commit of version {request.param}, whose library would be built")
    return request.param


def library(version):
    return LIBRARIES / f"released-{version}.so"


# Its memory is another one, and its objects have no functions for filters.
OF_0_9 = pytest.mark.parametrize("version", ["0.9.0"], indirect=True)


def released_server(own_servers, version, *settings):
    """A server as it was with the release: its library, its objects."""

    def servers(*settings, **options):
        server = own_servers(*settings, extension=False, **options)
        replace(server, f"released-{version}")
        server.sql(f"CREATE EXTENSION flake VERSION '{version}'")
        return server

    return server_at_0(servers, *settings)


def lacking(version):
    """The C symbols of the present objects that the released library does not have."""
    symbols, exported = set(re.findall(r"'MODULE_PATHNAME', '(\w+)'", script())), library(version).read_bytes()
    assert len(symbols) > 60 and b"\0pg_finfo_flake_next\0" in exported
    assert set(re.findall(r"'MODULE_PATHNAME', '(\w+)'", (RELEASES / f"flake--{version}.sql").read_text())) <= symbols
    return {symbol for symbol in symbols if f"\0pg_finfo_{symbol}\0".encode() not in exported}


def update(db, version):
    """By a session of the released library: PostgreSQL looks for the symbols of new functions in it."""
    if lacking(version):
        error = pytest.raises(psycopg.errors.UndefinedFunction, db.execute, UPGRADE).value.diag.message_primary
        assert error.startswith("could not find function")
        assert db.execute(INSTALLED).fetchone() == (version,)
    else:
        db.execute(UPGRADE)


@OF_0_9
def test_its_sessions_go_on_while_the_database_is_upgraded(own_servers, version):
    """With the objects of either version; a function that their library does not have says so. Sessions of the present library
    make no IDs beside them, and say that the server has to be restarted; the extension can be upgraded before that."""
    server, made = released_server(own_servers, version), Made()
    server.sql(USED)
    with sessions(server) as dbs:
        old, new = dbs[:3], dbs[3:]
        for db in old:
            make(db, made)
        before = old[0].execute(CONTENT).fetchone()
        replace(server, "present")
        for db in new:
            error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, "SELECT flake_next('twitter')").value
            assert error.diag.message_primary == "another version of the flake library is in use"
            assert error.diag.message_hint.startswith("Restart the server")
        assert [has_the_old_one(db) for db in dbs] == [True] * 3 + [False] * 3
        warned = []
        new[0].add_notice_handler(lambda notice: warned.append(notice.message_primary))
        new[0].execute(UPGRADE)
        assert warned == ["another version of the flake library is in use"]
        assert new[0].execute(INSTALLED).fetchone() == (VERSION,)
        new[0].execute(DECLARE_LATER)
        for seconds in [2, 4]:
            server.set_clock(at(seconds))
            for db in dbs:
                assert attempt(db, made) == ([] if db in old else list(KINDS))
                assert db.execute(CONTENT).fetchone() == before
                error = pytest.raises(psycopg.errors.UndefinedFunction, db.execute, "SELECT later('twitter')").value
                assert re.fullmatch(f'could not find function "{LATER}" in file ".*/flake.so"', error.diag.message_primary)
    server.restart()
    pass_through(server, made, 4)


FILTER = "SELECT count(*) FROM orders WHERE flake_timestamp(id) >= '2026-01-01Z' AND flake_timestamp(id) < now() + interval '1 h'"


@OF_0_9
def test_filters_by_time_while_the_database_is_upgraded(own_servers, version):
    """Sessions that have the old library plan and run them without a break; new ones plan them as ranges."""
    server = released_server(own_servers, version)
    server.sql("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter')); CREATE TABLE snos (id sno "
               "PRIMARY KEY)")
    server.sql("INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO snos SELECT sno_next() FROM "
               "generate_series(1, 100)")
    by_sno = FILTER.replace("orders", "snos").replace("flake_timestamp", "sno_timestamp")

    def asks(db):
        for query in FILTER, by_sno:
            assert db.execute(query).fetchone() == (100,)
            # A new plan for each call.
            db.execute("DISCARD PLANS")
            yield "\n".join(line for line, in db.execute(f"EXPLAIN (COSTS OFF) {query}"))

    done = []

    def load(db, ends):
        while not ends.is_set():
            done.append([*asks(db)])

    ends = threading.Event()
    with sessions(server) as dbs, concurrent.futures.ThreadPoolExecutor() as pool:
        old, new = dbs[:3], dbs[3:]
        assert all("_timestamp(id" in plan for db in old for plan in asks(db))
        jobs = [pool.submit(load, db, ends) for db in old]
        try:
            replace(server, "present")
            # The present library with the old objects.
            assert all("_timestamp(id" in plan for plan in asks(new[0]))
            new[1].execute(UPGRADE)
            before = len(done)
            wait_until(lambda: len(done) > before + 30)
        finally:
            ends.set()
        for job in jobs:
            job.result()
        assert all("_timestamp(id" in plan for plans in done for plan in plans)
        for db in new:
            assert all("_timestamp(id" not in plan and "(id >= '" in plan for plan in asks(db))
        assert [has_the_old_one(db) for db in dbs] == [True] * 3 + [False] * len(new)


def test_it_upgrades_the_database_itself(own_servers, version):
    """A session of the released library, unless it lacks a function that the present version has."""
    server = released_server(own_servers, version)
    with server.connect() as db:
        db.execute("SELECT flake_next('twitter')")
        replace(server, "present")
        update(db, version)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_with_the_present_one(own_servers, version, mode):
    """It reads what the released one has written into flake.mark, and into the page of the database."""
    server, made = released_server(own_servers, version), Made()
    server.set_clock(at(60))
    insert(server, made)
    server.set_clock(at(0))
    replace(server, "present")
    server.restart(mode=mode)
    assert "twitter" in attempts(server, made)
    server.sql(UPGRADE)
    pass_through(server, made, 0, 60)


@OF_0_9
def test_servers_that_are_upgraded_one_by_one(own_servers, version):
    """The standby first, which becomes the primary and upgrades the database; one that goes on then with the old library cannot
    read which time was used, and makes no IDs until it has the present one."""
    first, made = released_server(own_servers, version), Made()
    second = own_servers(standby_of=first, clock=at(0))
    first.set_clock(at(60))
    insert(first, made)
    first.set_clock(at(0))
    first.sql("CREATE TABLE plain ()")
    fail_over(first, second)
    second.sql(UPGRADE)
    assert "twitter" in attempts(second, made)
    second.set_clock(at(65))
    attempts(second, made)
    third = own_servers(standby_of=second, clock=at(0))
    replace(third, f"released-{version}")
    second.set_clock(at(69))
    insert(second, made)
    second.set_clock(at(0))
    second.sql("CREATE TABLE plain_too ()")
    fail_over(second, third)
    assert third.value(INSTALLED) == VERSION
    with third.connect() as db:
        pytest.raises(psycopg.errors.DataCorrupted, db.execute, "SELECT flake_next('twitter')")
    replace(third, "present")
    third.restart()
    pass_through(third, made, 0, 60, 65, 69)
