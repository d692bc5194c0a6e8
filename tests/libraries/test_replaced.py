"""A library that replaces the library of a running server. Sessions keep the library that they have loaded, and new ones load
the new one."""

import os
import pathlib
import shutil

import psycopg
import pytest

from clients import KINDS, Made
from standing_clock import at, attempt, attempts, make, make_in_all, pass_through, server_at_0, sessions
from test_catalog import by_hand, create, notices
from test_ledger import warnings

LIBRARIES = pathlib.Path(os.environ["FLAKE_LIBRARIES"])
ADMONITION = "this session makes IDs without the ledger: another version of the library is in use"


def replace(server, name):
    """Replaces the library as packages do, by a file of the same name."""
    if not (server.dir / "stage").exists():
        pytest.skip("this PostgreSQL does not find extensions that are not installed, as Debian's and 18 do")
    installed, = (server.dir / "stage").rglob("flake.so")
    new = installed.with_suffix(".new")
    shutil.copy(LIBRARIES / f"{name}.so", new)
    new.replace(installed)


def has_the_old_one(db):
    """Returns whether the file that the session has loaded does not exist any more."""
    maps = pathlib.Path(f"/proc/{db.info.backend_pid}/maps").read_text()
    assert "/flake.so" in maps
    return "/flake.so (deleted)" in maps


def make_later(server, dbs, made, seconds):
    """Starts a server on which a later library is used. Sessions without the ledger begin above the current instant, so there
    are no IDs yet."""
    assert [attempt(db, made) for db in dbs] == [list(KINDS)] * len(dbs)
    server.set_clock(at(seconds))
    for db in dbs:
        make(db, made)


def test_sessions_with_another_control_block_make_no_id_twice(own_servers):
    """Sessions of both libraries make IDs at the same instants, and get each other's slots."""
    server, made = server_at_0(own_servers), Made()
    make_in_all(server, made)
    with sessions(server) as dbs:
        old, new = dbs[:3], dbs[3:]
        for db in old:
            make(db, made)
        replace(server, "control_block")
        told = [warnings(db) for db in new]
        make_later(server, new, made, 2)
        for db in old:
            make(db, made)
        assert told == [[ADMONITION]] * 3
        assert [has_the_old_one(db) for db in dbs] == [True] * 3 + [False] * 3
    with sessions(server) as dbs:
        make_later(server, dbs, made, 4)
    replace(server, "present")
    assert "twitter" in attempts(server, made)
    server.set_clock(at(6))
    make_in_all(server, made)
    replace(server, "control_block")
    server.restart()
    assert server.value("SELECT ledger FROM flake_stats") == "unused"
    pass_through(server, made, 6, 8)
    assert server.value("SELECT ledger FROM flake_stats") == "open"


def test_sessions_with_another_rule_for_shares_are_refused_until_the_restart(own_servers):
    """Sessions of the new library are refused until the restart, and the others keep working."""
    server, made = server_at_0(own_servers), Made()
    with server.connect() as old:
        make(old, made)
        replace(server, "share_rule")
        for seconds in [0, 2]:
            server.set_clock(at(seconds))
            with server.connect() as db:
                error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, made.make, db, 1).value.diag
                assert error.message_primary == "another version of the flake library is in use"
                assert error.message_hint.startswith("Restart the server")
            make(old, made)
    server.restart()
    pass_through(server, made, 2, 4)


def test_a_custom_layout_keeps_its_name_beside_a_later_built_in_one(own_servers):
    """A custom layout that was made before keeps its meaning, and an upgrade warns of it."""
    server = own_servers()
    replace(server, "later_layouts")
    with server.connect() as db, server.connect() as other:
        assert other.execute("SELECT flake_timestamp(0, 'tsid')").fetchone()[0].year == 2020
        seen = notices(db)
        db.execute(by_hand("tsid", {"like": "twitter", "epoch": "2015-01-01T00:00:00Z"}))
        for session in [db, other]:
            assert session.execute("SELECT flake_timestamp(0, 'tsid')").fetchone()[0].year == 2015
            rows = session.execute("SELECT source FROM flake_layouts WHERE name = 'tsid'").fetchall()
            assert rows == [("custom",)]
            at = "SELECT flake_timestamp(flake_next('tsid'), 'tsid') > now() - interval '1 s'"
            assert session.execute(at).fetchone() == (True,)
        assert seen == []
        db.execute("SELECT flake_record_mark()")
        assert seen == [("WARNING", 'layout "tsid" is not the built-in one')]
        # The built-in one does not take its place where somebody has altered it.
        db.execute("ALTER SERVER tsid OPTIONS (SET definition '{\"like\": \"si\"}')")
        for session in [db, other]:
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="has been changed"):
                session.execute("SELECT flake_timestamp(0, 'tsid')")
        db.execute("SELECT flake_drop_layout('tsid')")
        for session in [db, other]:
            assert session.execute("SELECT flake_timestamp(0, 'tsid')").fetchone()[0].year == 2020
        with pytest.raises(psycopg.errors.DuplicateObject):
            create(db, "tsid", like="twitter")


def test_a_preloaded_library_stays_until_the_restart(own_servers):
    server, made = server_at_0(own_servers, "shared_preload_libraries=flake"), Made()
    replace(server, "share_rule")
    with server.connect() as db:
        make(db, made)
        assert has_the_old_one(db)
    server.restart()
    server.set_clock(at(2))
    with server.connect() as db:
        make(db, made)
        assert not has_the_old_one(db)
    pass_through(server, made, 2)
