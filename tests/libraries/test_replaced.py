"""A library that replaces the library of a running server. Sessions keep the library that they have loaded, and new ones load
the new one."""

import os
import pathlib
import shutil

import psycopg
import pytest

from clients import KINDS, Made
from conftest import pg_config
from standing_clock import at, attempt, make, make_in_all, pass_through, server_at_0, sessions
from test_catalog import by_hand, create, notices

LIBRARIES = pathlib.Path(os.environ["FLAKE_LIBRARIES"])


def replace(server, name):
    """Replaces the library as packages do, by a file of the same name."""
    if not (server.dir / "stage").exists():
        pytest.skip("this PostgreSQL does not find extensions that are not installed, as Debian's and 18 do")
    installed = server.dir / "stage" / pg_config("--pkglibdir").relative_to("/") / "flake.so"
    new = installed.with_suffix(".new")
    shutil.copy(LIBRARIES / f"{name}.so", new)
    new.replace(installed)


def has_the_old_one(db):
    """Returns whether the file that the session has loaded does not exist any more."""
    maps = pathlib.Path(f"/proc/{db.info.backend_pid}/maps").read_text()
    assert "/flake.so" in maps
    return "/flake.so (deleted)" in maps


@pytest.mark.parametrize("library", ["form", "division"])
def test_sessions_of_another_form_or_division_are_refused_until_the_restart(own_servers, library):
    """Sessions of both libraries would make IDs at the same instants. Sessions of the new one make none, and the others are not
    disturbed."""
    server, made, none = server_at_0(own_servers), Made(), Made()
    make_in_all(server, made)
    with sessions(server) as dbs:
        old, new = dbs[:3], dbs[3:]
        server.set_clock(at(0.1))
        for db in old:
            make(db, made)
        replace(server, library)
        for seconds in [0.1, 2]:
            server.set_clock(at(seconds))
            for db in new:
                assert attempt(db, none) == list(KINDS)
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as raised:
                    db.execute("SELECT flake_next('si')")
                error = raised.value.diag
                assert error.message_primary == "another version of the flake library is in use"
                assert error.message_hint.startswith("Restart the server")
            for db in old:
                make(db, made)
        assert [has_the_old_one(db) for db in dbs] == [True] * 3 + [False] * 3
    assert len(none) == 0
    server.restart()
    assert server.value("SELECT ledger FROM flake_stat") == "unused"
    pass_through(server, made, 2, 4)
    assert server.value("SELECT ledger FROM flake_stat") == "open"


def test_sessions_of_two_libraries_of_the_same_form_go_on_together(own_servers):
    """A patch release stops nobody. Sessions of both libraries make IDs at the same instants, from the same lanes. The new one
    was built with another feature."""
    server, made = server_at_0(own_servers), Made(KINDS | {"si": "flake_next('si')::text"})
    with sessions(server) as dbs:
        old, new = dbs[:3], dbs[3:]
        for db in old:
            make(db, made)
        replace(server, "injection_points")
        for seconds in [0, 2, 4]:
            server.set_clock(at(seconds))
            for pair in zip(old, new, strict=True):
                for db in pair:
                    make(db, made)
        assert [has_the_old_one(db) for db in dbs] == [True] * 3 + [False] * 3
        assert new[0].execute("SELECT ledger, sessions FROM flake_stat").fetchone() == ("open", 6)
    server.restart()
    pass_through(server, made, 4)


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
        db.execute("SELECT flake_internal.flake_record_mark()")
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
    replace(server, "division")
    with server.connect() as db:
        make(db, made)
        assert has_the_old_one(db)
    server.restart()
    server.set_clock(at(2))
    with server.connect() as db:
        make(db, made)
        assert not has_the_old_one(db)
    pass_through(server, made, 2)
