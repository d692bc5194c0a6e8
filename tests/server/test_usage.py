"""A role that has only USAGE on the foreign server of a key or a layout, and what it can do to it."""

import psycopg
import pytest

DEFINITIONS = {"key": "twitter", "layout": '{"like": "si", "epoch": "2020-01-01T00:00:00Z"}'}


@pytest.mark.matrix
@pytest.mark.parametrize("kind", DEFINITIONS)
def test_the_role_makes_nothing_that_is_in_the_way_of_a_drop(own_servers, kind):
    """The role tries all that PostgreSQL allows with USAGE. A mapping that an owner has made for it is dropped too."""
    server = own_servers()
    server.sql(f"""CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app;
                   SELECT flake_create_{kind}('mine', '{DEFINITIONS[kind]}'); GRANT USAGE ON FOREIGN SERVER mine TO app""")
    with server.connect(user="app") as app:
        for query, sqlstate in [
            ("CREATE USER MAPPING FOR CURRENT_USER SERVER mine", "42501"),
            ("CREATE FOREIGN TABLE peek (i int) SERVER mine", "42809"),
            ("CREATE FOREIGN TABLE peek (i int OPTIONS (name 'i')) SERVER mine", "42809"),
            ("IMPORT FOREIGN SCHEMA public FROM SERVER mine INTO public", "55000"),
            (f"CREATE SERVER another FOREIGN DATA WRAPPER flake_{kind}", "42501"),
        ]:
            with pytest.raises(psycopg.Error) as error:
                app.execute(query)
            assert error.value.sqlstate == sqlstate, query
    notices = []
    with server.connect() as db:
        db.add_notice_handler(lambda diag: notices.append(diag.message_primary))
        mapping = "CREATE USER MAPPING FOR app SERVER mine"
        pytest.raises(psycopg.errors.InvalidParameterValue, db.execute, f"{mapping} OPTIONS (name 'i')")
        db.execute(mapping)
        db.execute(f"SELECT flake_drop_{kind}('mine')")
        assert db.execute("SELECT count(*) FROM pg_foreign_server").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM pg_user_mapping").fetchone() == (0,)
    assert notices == ["drop cascades to user mapping for app on server mine"]
