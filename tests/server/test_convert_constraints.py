"""flake_convert: constraints must allow the IDs. They are evaluated with their owner's rights."""

import psycopg
import pytest

from test_convert import convert, insert, own_schema


@pytest.fixture
def db(server):
    with own_schema(server) as db:
        yield db


def test_constraints_of_the_key_must_allow_the_ids(db):
    """Constraints that also concern other columns cannot be evaluated before a row exists."""
    db.execute("""
        CREATE DOMAIN positive AS bigint CHECK (VALUE > 0);
        CREATE TABLE t (x int, id positive PRIMARY KEY CHECK (id <= 9007199254740991) CHECK (id > x)
                        CHECK (NULLIF(id, id) > 0))""")
    first, _ = convert(db, layout="si")
    assert insert(db) >= first


def test_constraints_that_call_functions_of_users_are_not_evaluated(db):
    """Functions of users may do anything, and may need the search_path of the role that inserts rows."""
    db.execute("""
        CREATE TABLE limits (most bigint); INSERT INTO limits VALUES (9223372036854775807); CREATE TABLE calls ();
        CREATE FUNCTION fits(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO calls DEFAULT VALUES; RETURN $1 < (SELECT most FROM limits); END $$;
        CREATE OPERATOR === (FUNCTION = fits, RIGHTARG = bigint);
        CREATE DOMAIN fitting AS bigint CHECK (fits(VALUE));
        CREATE TABLE t (id fitting PRIMARY KEY CHECK (fits(id)) CHECK (=== id) CHECK (id::bigint::fitting > 0))""")
    first, _ = convert(db)
    assert db.execute("TABLE calls").fetchall() == []
    assert insert(db) >= first


def test_constraints_are_evaluated_with_the_rights_of_their_owner(server):
    """A superuser who converts a table does not run code that the table's owner has put into a constraint."""
    with own_schema(server) as db:
        schema = db.execute("SELECT current_schema").fetchone()[0]
        db.execute(f"""
            CREATE ROLE "{schema}"; GRANT ALL ON SCHEMA {schema} TO "{schema}"; CREATE TABLE secret (x int);
            SET ROLE "{schema}"; CREATE DOMAIN d AS bigint;
            CREATE TABLE t (id d PRIMARY KEY); CREATE TABLE u (id bigint PRIMARY KEY)""")
        reads = f"query_to_xml('TABLE {schema}.secret' || left(%s::text, 0), true, false, '') IS NOT NULL"
        db.execute(f"ALTER TABLE u ADD CHECK ({reads % 'id'}); ALTER DOMAIN d ADD CHECK ({reads % 'VALUE'}); RESET ROLE")
        for table in "t", "u":
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="table secret"):
                convert(db, table)
        db.execute(f'DROP OWNED BY "{schema}"; DROP ROLE "{schema}"')
