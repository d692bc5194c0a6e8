"""Layouts and keys are changed as their owner, so that event triggers run as the owner, and by those alone who have the owner's
privileges."""

import psycopg
import pytest

CHANGES = [
    "flake_drop_layout('his')", "flake_drop_key('usr')", "flake_rotate_key('usr')", "flake_rotate_key('usr', flake_max(now()))",
    "flake_import_key('usr', 'twitter', '\\x0102030405060708090a0b0c0d0e0f10', force => true)",
    "flake_import_key('usr', 'twitter', '\\x112233445566778899aabbccddeeff00')",
]  # fmt: skip


def test_layouts_and_keys_are_changed_by_those_who_have_the_owners_privileges(servers):
    """An event trigger runs as the owner of what is changed. If it names a table without a schema, it may find the caller's."""
    server = servers(extension=False)
    server.sql("CREATE ROLE holder LOGIN; CREATE ROLE helper LOGIN")
    server.sql("CREATE DATABASE held OWNER holder")
    with server.connect(dbname="held") as db:
        db.execute("""CREATE EXTENSION flake;
            SELECT flake_create_layout('his', '{"like": "si"}'), flake_create_key('usr', 'twitter'),
                flake_import_key('usr', 'twitter', '\\x112233445566778899aabbccddeeff00', force => true);
            DROP USER MAPPING FOR PUBLIC SERVER usr;
            CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS $$
                BEGIN INSERT INTO notes VALUES (tg_tag); EXCEPTION WHEN undefined_table THEN NULL; END $$;
            CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noted()""")
    with server.connect(dbname="held", user="holder") as db:
        db.execute("""CREATE TEMP TABLE notes (tag text); CREATE TEMP TABLE ran (role text);
            CREATE FUNCTION pg_temp.rise() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN INSERT INTO pg_temp.ran VALUES (current_user); RETURN NEW; END $$;
            CREATE TRIGGER rise BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION pg_temp.rise()""")
        for call in CHANGES:
            error = pytest.raises(psycopg.errors.InsufficientPrivilege, db.execute, f"SELECT {call}").value.diag
            assert error.message_primary in ('must be owner of layout "his"', 'must be owner of key "usr"'), call
            assert error.message_detail == 'The owner: role "postgres".'
        # The caller owns the new layout and the new key, and the trigger has run as nobody else.
        db.execute("""SELECT flake_create_layout('hers', '{"like": "si"}'), flake_create_key('own', 'twitter');
            SELECT flake_rotate_key('own'); SELECT flake_drop_key('own'), flake_drop_layout('hers')""")
        assert db.execute("SELECT DISTINCT role FROM ran").fetchall() == [("holder",)]
    with server.connect(dbname="held") as db:
        db.execute("ALTER SERVER his OWNER TO helper; GRANT helper TO holder")
    with server.connect(dbname="held", user="holder") as db:
        db.execute("SELECT flake_drop_layout('his')")


def test_event_triggers_run_without_the_callers_search_path(servers):
    """A layout of another role is dropped as that role. Then objects that the caller has made must not be found."""
    server = servers(extension=False)
    server.sql("CREATE ROLE landlord LOGIN; CREATE ROLE lord; GRANT lord TO landlord")
    server.sql("CREATE DATABASE rented OWNER landlord")
    with server.connect(dbname="rented", user="landlord") as db, server.connect(dbname="rented") as superuser:
        db.execute("""CREATE EXTENSION flake; CREATE SCHEMA evil; SELECT flake_create_layout('old', '{"like": "si"}')""")
        superuser.execute("""
            ALTER SERVER old OWNER TO lord; CREATE TABLE seen (path text, role name); GRANT INSERT ON seen TO lord;
            CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS
                'BEGIN INSERT INTO public.seen VALUES (current_setting(''search_path''), current_user); END';
            CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('DROP SERVER') EXECUTE FUNCTION note()""")
        db.execute("SET search_path = evil, public; SELECT flake_drop_layout('old')")
        assert db.execute("SELECT current_setting('search_path'), current_user").fetchone() == ("evil, public", "landlord")
        assert superuser.execute("SELECT * FROM seen").fetchall() == [("pg_catalog, pg_temp", "lord")]
