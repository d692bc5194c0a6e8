"""Used time, as far as it depends on PostgreSQL's transactions, databases and sequences. The simulator tests the rest."""

import psycopg
import pytest

from clients import Made
from standing_clock import at, fail_over, make_in_all, pass_through, running, server_at_0


def create_extension(server, database):
    server.sql(f"CREATE DATABASE {database}")
    with server.connect(dbname=database) as db:
        db.execute("CREATE EXTENSION flake")


@pytest.mark.matrix
def test_a_database_under_the_oid_of_another_one_does_not_get_its_page(own_servers):
    """The page of the former database must not be taken for the new one's."""
    old, made = server_at_0(own_servers), Made()
    create_extension(old, "template")
    old.sql("CREATE DATABASE x TEMPLATE template OID = 50000")
    new = own_servers(standby_of=old, clock=at(0))
    old.set_clock(at(10))
    make_in_all(old, Made(), dbname="x")
    old.sql("DROP DATABASE x")
    old.sql("CREATE DATABASE x TEMPLATE template OID = 50000")
    make_in_all(old, made, dbname="x")
    old.sql("CREATE TABLE plain ()")
    fail_over(old, new)
    pass_through(new, made, 2, 10, dbname="x")


def test_a_mark_that_is_not_logged_is_an_error(own_servers):
    server = server_at_0(own_servers)
    server.sql("ALTER SEQUENCE flake_internal.flake_mark SET UNLOGGED")
    with server.connect() as db:
        error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, "SELECT flake_next('twitter')").value.diag
        assert error.message_primary == 'sequence "flake_mark" of extension "flake" is not logged'
        db.execute("ALTER SEQUENCE flake_internal.flake_mark SET LOGGED")
        server.set_clock(running(0))
        db.execute("SELECT flake_next('twitter')")
