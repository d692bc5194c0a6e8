"""Releases: released scripts do not change and can be upgraded, and an upgraded database is like a new one."""

import subprocess

import psycopg
import pytest

from catalog import DEFAULT_PRIVILEGES, differences, statements
from conftest import ROOT
from next_release import CHANGES, NEXT, RELEASED, RELEASES, VERSION, each_upgrade, provide, script
from used_database import CONTENT, USED, members


def test_released_scripts_do_not_change():
    """Existing installations upgrade by the scripts as they were released."""
    subprocess.run([ROOT / "scripts/release", "check"], check=True)
    sums = RELEASES / "SHA256SUMS"
    listed = {line.split()[1] for line in sums.read_text().splitlines()} if sums.exists() else set()
    scripts = {path.name for path in RELEASES.glob("flake*--*.sql")}
    # An upgrade to a version that is not released yet may change.
    assert listed == {name for name in scripts if VERSION in RELEASED or not name.endswith(f"--{VERSION}.sql")}
    if VERSION in RELEASED:
        for extension, text in {"flake": script(), "flake_sequences": (RELEASES / "sequences.sql").read_text()}.items():
            assert (RELEASES / f"{extension}--{VERSION}.sql").read_text() == text, "a change takes another version in Cargo.toml"


def upgraded_and_new(server, version, to, defaults=""):
    """Returns a new and an upgraded database, and their differences."""
    for name, begins, ends in [("upgraded", version, f"ALTER EXTENSION flake UPDATE TO '{to}'"), ("new", to, "SELECT 1")]:
        server.sql(f"CREATE DATABASE {name}")
        with server.connect(dbname=name) as db:
            db.execute(defaults)
            db.execute(f"CREATE EXTENSION flake VERSION '{begins}'")
            db.execute(ends)
    return differences(server, "upgraded", "new")


@pytest.mark.matrix
@pytest.mark.parametrize("defaults", ["", DEFAULT_PRIVILEGES], ids=["", "default privileges"])
@each_upgrade
def test_an_upgraded_database_is_like_a_new_one(own_servers, version, to, defaults):
    """The library also has every symbol that its catalog names. PostgreSQL looks for them when it creates the functions."""
    server = own_servers()
    provide(server)
    server.sql("CREATE ROLE grantee")
    assert upgraded_and_new(server, version, to, defaults) == []


@pytest.mark.matrix
@pytest.mark.parametrize("forgotten", CHANGES)
def test_an_upgrade_that_forgets_something_is_noticed(own_servers, forgotten):
    """The privileges of a new function follow it."""
    gone = ["new function", "its privileges"] if forgotten == "new function" else [forgotten]
    server = own_servers()
    provide(server, [name for name in CHANGES if name not in gone])
    server.sql("CREATE ROLE grantee")
    different = upgraded_and_new(server, VERSION, NEXT, DEFAULT_PRIVILEGES)
    assert different
    if forgotten == "its privileges":
        assert "only new: PUBLIC has EXECUTE on function flake_later(bigint)" in different


# These functions match calls without a schema better than PostgreSQL's own. A superuser would call them.
SPRUNG = "LANGUAGE plpgsql AS 'BEGIN RAISE ''called by %'', current_user; END'"
TRAPS = f"""
    CREATE SCHEMA trap;
    CREATE FUNCTION trap.sprung(oid, integer) RETURNS boolean {SPRUNG};
    CREATE FUNCTION trap.sprung(name, text) RETURNS boolean {SPRUNG};
    CREATE FUNCTION trap.set_config(text, name, boolean) RETURNS text {SPRUNG};
    CREATE OPERATOR trap.= (FUNCTION = trap.sprung, LEFTARG = oid, RIGHTARG = integer);
    CREATE OPERATOR trap.<> (FUNCTION = trap.sprung, LEFTARG = name, RIGHTARG = text);
"""


@pytest.mark.matrix
@pytest.mark.parametrize("role", ["mallory", "another_superuser"])
def test_an_upgrade_calls_nothing_from_the_schema(own_servers, role):
    server = own_servers()
    provide(server)
    server.sql("CREATE ROLE mallory LOGIN; CREATE ROLE another_superuser SUPERUSER LOGIN")
    server.sql("CREATE DATABASE theirs OWNER mallory")
    with server.connect(dbname="theirs", user="mallory") as db:
        db.execute(TRAPS)
    with server.connect(dbname="theirs", user=role) as db:
        db.execute(f"CREATE EXTENSION flake SCHEMA trap VERSION '{VERSION}'")
        db.execute(f"ALTER EXTENSION flake UPDATE TO '{NEXT}'")


def test_a_dump_from_before_an_upgrade_can_be_restored(own_servers, tmp_path):
    """The later version is installed and created before. It does not go back to the earlier one."""
    server = own_servers()
    provide(server)
    for name, version in [("kept", VERSION), ("restored", NEXT)]:
        server.sql(f"CREATE DATABASE {name}")
        with server.connect(dbname=name) as db:
            db.execute(f"CREATE EXTENSION flake VERSION '{version}'")
            if name == "kept":
                before = db.execute(USED) and db.execute(CONTENT).fetchone()
    server.run("pg_dump", "-Fc", "-f", tmp_path / "dump", "kept")
    server.run("pg_restore", "--exit-on-error", "-d", "restored", tmp_path / "dump")
    with server.connect(dbname="restored") as db:
        assert db.execute(CONTENT).fetchone() == before
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            db.execute(f"ALTER EXTENSION flake UPDATE TO '{VERSION}'")


# PostgreSQL looks for this in the library that the upgrading session has loaded, perhaps before the package was upgraded.
NOT_IN_THE_LIBRARY = "CREATE FUNCTION flake_newest() RETURNS bigint LANGUAGE c AS 'MODULE_PATHNAME', 'flake_newest';"


def test_an_upgrade_by_a_session_with_an_old_library_is_refused(own_servers):
    """The error names what the library lacks, and the database is unchanged."""
    server = own_servers()
    provide(server, more=NOT_IN_THE_LIBRARY)
    with server.connect() as db, server.connect() as other:
        db.execute(USED)
        made = other.execute("SELECT flake_next('mine') FROM generate_series(1, 1000)").fetchall()
        before, content, objects = statements(server, "postgres"), db.execute(CONTENT).fetchone(), members(db)
        error = pytest.raises(psycopg.errors.UndefinedFunction, db.execute, f"ALTER EXTENSION flake UPDATE TO '{NEXT}'").value
        assert error.diag.message_primary.startswith('could not find function "flake_newest" in file')
        assert (statements(server, "postgres"), db.execute(CONTENT).fetchone(), members(db)) == (before, content, objects)
        for session in [db, other]:
            made += session.execute("SELECT flake_next('mine') FROM generate_series(1, 1000)").fetchall()
        assert len(set(made)) == 3000
        db.execute("INSERT INTO aaa DEFAULT VALUES; SELECT flake_internal.flake_record_mark()")
    server.restart(mode="immediate")
    made += server.sql("SELECT flake_next('mine') FROM generate_series(1, 1000)")
    assert len(set(made)) == 4000
