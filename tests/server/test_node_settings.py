"""Only the server's configuration sets the node number, whichever session connects first and whatever it sets.

For a library that is not loaded yet, PostgreSQL keeps any value of a setting. So a client, a role or a database can each put a
value in the place of the configuration's.
"""

import psycopg
import pytest

from conftest import ROOT
from waiting import wait_until
from watermark import PARALLEL

NODE_1_OF_2 = ["flake.node_id=1", "flake.node_count=2"]
# The settings in force. Workers of a session's IDs could belong to another number by chance.
NODE = "SELECT node_id, node_count FROM flake_stat"
WORKER = "SELECT (flake_decode(flake_next('twitter'))).worker"
WORKERS = f"{WORKER} / 512 AS node"

SHADOWS = {
    "the same number": {"options": "-c flake.node_id=1"},
    "another number": {"options": "-c flake.node_id=0"},
    "another count": {"options": "-c flake.node_count=1"},
    "both": {"options": "-c flake.node_id=0 -c flake.node_count=4"},
    "not a number": {"options": "-c flake.node_id=x"},
    "role": {"user": "shadowed"},
    "database": {"dbname": "shadowed"},
}


@pytest.fixture(scope="module")
def server_of_node_1(servers):
    server = servers(*NODE_1_OF_2)
    server.sql("CREATE DATABASE shadowed")
    server.sql("CREATE ROLE nobody LOGIN; CREATE ROLE shadowed LOGIN")
    server.sql("ALTER ROLE shadowed SET flake.node_id = 0; ALTER DATABASE shadowed SET flake.node_count = 7")
    with server.connect(dbname="shadowed") as db:
        db.execute("CREATE EXTENSION flake")
    return server


def refused(db):
    error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, WORKERS).value.diag
    assert error.message_primary == "number of this node is not known"
    assert "ALTER ROLE or ALTER DATABASE … RESET" in error.message_hint


@pytest.mark.matrix
@pytest.mark.parametrize("shadow", SHADOWS.values(), ids=SHADOWS)
def test_a_session_that_cannot_see_the_number_makes_ids_after_one_that_can(server_of_node_1, shadow):
    server = server_of_node_1
    server.restart()
    with server.connect(**{"user": "nobody"} | shadow) as db:
        refused(db)
        assert server.value(WORKERS) == 1
        assert db.execute(WORKERS).fetchone() == (1,)
        assert db.execute(WORKER).fetchone()[0] in range(576, 640)
    assert server.sql(NODE) == [(1, 2)]
    with server.connect(**{"user": "nobody"} | shadow) as db:
        assert db.execute(WORKERS).fetchone() == (1,)


def test_a_value_set_before_the_library_is_loaded_does_not_count(server_of_node_1):
    server_of_node_1.restart()
    with server_of_node_1.connect(user="nobody") as db:
        db.execute("SET flake.node_id = 0")
        assert db.execute(WORKERS).fetchone() == (1,)


def test_parallel_workers_follow_the_settings_of_their_leader(server_of_node_1):
    """They start with their leader's settings, which do not include a setting that another value hides. They must not take the
    boot value for the server's."""
    server = server_of_node_1
    server.sql("DROP TABLE IF EXISTS big; CREATE TABLE big AS SELECT n FROM generate_series(1, 20000) n")
    server.restart()
    query = "SELECT min(flake_node(n)) FROM big"
    with server.connect(options="-c flake.node_count=1") as db:
        db.execute(PARALLEL)
        error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, query).value.diag
        assert error.context == "parallel worker"
        assert server.value(WORKERS) == 1
        assert db.execute(query).fetchone() == (0,)


def test_a_server_without_the_settings_is_node_0_of_1(servers):
    server = servers()
    server.restart()
    server.value(WORKERS)
    assert server.sql(NODE) == [(0, 1)]


@pytest.mark.matrix
@pytest.mark.parametrize("preload", ["", "flake"], ids=["loaded", "preloaded"])
@pytest.mark.parametrize("value", ["2", "x", "''"], ids=["too large", "not a number", "empty"])
def test_a_wrong_number_can_be_corrected(servers, value, preload):
    """The boot value is not the configuration's value."""
    server = servers()
    server.restart(f"flake.node_id={value}", "flake.node_count=2", f"shared_preload_libraries={preload}")
    # A client of a server that has preloaded the library cannot give a number.
    with server.connect(options="" if preload else "-c flake.node_id=0") as db, server.connect() as other:
        for session in db, other:
            with pytest.raises((psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.InvalidParameterValue)):
                session.execute(WORKERS)
        server.reload("flake.node_id=1")
        assert server.value(WORKERS) == 1
        assert db.execute(WORKERS).fetchone() == other.execute(WORKERS).fetchone() == (1,)


def test_postgresql_reads_octal_numbers(servers):
    """PostgreSQL does that for all settings; docs/reference/settings.md says so."""
    server = servers("flake.node_id=010", "flake.node_count=0x10")
    server.value(WORKERS)
    assert server.sql(NODE) == [(8, 16)]
    page = (ROOT / "docs/reference/settings.md").read_text()
    assert "`010` is 8" in page and "`0x10` is 16" in page


@pytest.mark.matrix
@pytest.mark.parametrize("look", ["SELECT * FROM pg_file_settings", "ALTER SYSTEM SET flake.node_id = 1"])
def test_values_that_are_checked_and_not_applied_do_not_count(servers, look):
    """PostgreSQL asks the library whether such values are valid, as if they came from the configuration."""
    server = servers(*NODE_1_OF_2)
    server.restart()
    with server.connect(options="-c flake.node_id=0") as db:
        db.execute("LOAD 'flake'")
        db.execute(look)
        refused(db)


@pytest.mark.matrix
@pytest.mark.parametrize("preload", ["", "flake"], ids=["loaded", "preloaded"])
def test_a_setting_removed_from_the_file_ends_with_a_reload(servers, preload):
    server = servers("flake.node_id=5", f"shared_preload_libraries={preload}")
    server.restart()
    with server.connect() as db:
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            db.execute("SELECT flake_next('twitter')")
        file = server.dir / "data" / "postgresql.conf"
        file.write_text("".join(line for line in file.open() if not line.startswith("flake.node_id")))
        server.reload()
        # From version 16 on, PostgreSQL leaves an empty value to sessions that have not loaded the library, as a client could.
        wait_until(lambda: db.execute("SHOW flake.node_id").fetchone() == ("0",))
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)
        with server.connect() as other:
            assert other.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)
    server.restart()
    assert server.value("SELECT flake_next('twitter') > 0")


@pytest.mark.matrix
def test_a_client_is_refused_if_the_library_is_preloaded(servers):
    server = servers(*NODE_1_OF_2, "shared_preload_libraries=flake")
    with pytest.raises(psycopg.OperationalError, match=r"flake\.node_id"):
        server.connect(options="-c flake.node_id=0")
    assert server.value(WORKERS) == 1
