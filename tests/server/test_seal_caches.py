"""Public IDs: a session that has used a key loses it with each change that ends its right, as a new session does."""

import re

import psycopg
import pytest

from conftest import ROOT

# For each cache that a session listens to: what gives a role the key "ended", what ends that, and its SQLSTATE.
ENDS = {
    "FOREIGNSERVEROID":
        ("GRANT USAGE ON FOREIGN SERVER ended TO user_of", "REVOKE USAGE ON FOREIGN SERVER ended FROM user_of", "42501"),
    "FOREIGNDATAWRAPPEROID": ("ALTER ROLE user_of SUPERUSER", "ALTER FOREIGN DATA WRAPPER flake_key RENAME TO another", "42704"),
    "USERMAPPINGOID": ("ALTER ROLE user_of SUPERUSER", "DROP USER MAPPING FOR PUBLIC SERVER ended", "55000"),
    "AUTHOID": ("ALTER ROLE user_of SUPERUSER", "ALTER ROLE user_of NOSUPERUSER", "42501"),
    "AUTHMEMMEMROLE":
        ("GRANT USAGE ON FOREIGN SERVER ended TO group_of; GRANT group_of TO user_of", "REVOKE group_of FROM user_of", "42501"),
    "DATABASEOID":
        ("GRANT USAGE ON FOREIGN SERVER ended TO pg_database_owner; ALTER DATABASE ended OWNER TO user_of",
         "ALTER DATABASE ended OWNER TO group_of", "42501"),
}  # fmt: skip


def test_each_cache_has_a_change_that_ends_a_right():
    """A cache that is added to the list needs a row above."""
    listed = (ROOT / "src/seal/keyring.rs").read_text().partition("const CACHES")[2].partition("];")[0]
    assert sorted(re.findall(r"(\w+) as i32", listed)) == sorted(ENDS)


@pytest.mark.parametrize("cache", ENDS)
def test_a_session_hears_of_each_change_that_ends_its_right(server, cache):
    """The session has used the key; what PostgreSQL refuses a new session, this one is refused too."""
    begins, ends, state = ENDS[cache]
    server.sql("CREATE DATABASE ended")
    server.sql("CREATE ROLE user_of LOGIN; CREATE ROLE group_of")
    try:
        with server.connect(dbname="ended") as db:
            db.execute(f"CREATE EXTENSION flake; SELECT flake_create_key('ended', 'twitter'); {begins}")
            with server.connect(dbname="ended", user="user_of") as session:
                seal = "SELECT flake_seal(42, 'ended')"
                assert session.execute(seal).fetchone() == session.execute(seal).fetchone()
                db.execute(ends)
                assert pytest.raises(psycopg.Error, session.execute, seal).value.sqlstate == state
            with server.connect(dbname="ended", user="user_of") as session:
                assert pytest.raises(psycopg.Error, session.execute, seal).value.sqlstate == state
    finally:
        server.sql("DROP DATABASE ended")
        server.sql("DROP ROLE user_of, group_of")
