"""Keys in other places: dumps by several roles, restored databases, standbys, another owner, an upgraded server."""

import re
import subprocess

import psycopg
import pytest

import pages
from conftest import ROOT, bindir, pg_config

PAGE = ROOT / "docs/how-to/public-ids.md"

SEALED = "SELECT flake_seal(g, 'usr') FROM generate_series(1, 10) g"


@pytest.fixture(scope="module")
def server(servers):
    """A database whose owner, not a superuser, owns the extension and a key that was rotated."""
    server = servers(extension=False)
    server.sql("""CREATE ROLE keeper LOGIN; CREATE ROLE reader LOGIN IN ROLE pg_read_all_data; CREATE ROLE app LOGIN;
                  CREATE ROLE heir LOGIN""")
    server.sql("CREATE DATABASE kept OWNER keeper")
    with server.connect(dbname="kept", user="keeper") as db:
        db.execute("""CREATE EXTENSION flake; SELECT flake_create_key('usr', 'twitter'); SELECT flake_rotate_key('usr', 5, true);
                      GRANT USAGE ON FOREIGN SERVER usr TO app; CREATE TABLE t (id bigint)""")
    return server


def sealed(server, **options):
    with server.connect(**options) as db:
        return [text for (text,) in db.execute(SEALED)]


def restored(server, name, dump):
    server.sql(f"CREATE DATABASE {name} OWNER keeper")
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "keeper", name, input=dump)
    return {"dbname": name, "user": "keeper"}


@pytest.mark.parametrize("role", ["postgres", "keeper"])
def test_a_dump_by_a_role_that_may_read_secrets_has_them(server, role):
    dump = server.run("pg_dump", "-U", role, "--schema-only", "kept").stdout
    there = restored(server, f"by_{role}", dump)
    expected = sealed(server, dbname="kept", user="keeper")
    assert sealed(server, **there) == expected and len(set(expected)) == 10
    assert sealed(server, dbname=there["dbname"], user="app") == expected


@pytest.mark.parametrize("role", ["app", "reader"])
def test_a_dump_by_another_role_lacks_them_which_is_noticed(server, role):
    """pg_dump succeeds. Members of pg_read_all_data can read the catalog, but pg_dump reads a view that hides the secrets."""
    with server.connect(dbname="kept") as db:
        secrets = db.execute("SELECT unnest(umoptions) FROM pg_user_mapping").fetchall()
        db.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO app")
    dump = server.run("pg_dump", "-U", role, "kept").stdout
    assert "CREATE USER MAPPING FOR public SERVER usr" in dump
    there = restored(server, f"without_{role}", dump)
    with server.connect(**there) as db:
        error = pytest.raises(psycopg.Error, db.execute, SEALED).value
        assert error.sqlstate == "55000" and "flake_import_key" in error.diag.message_hint
        # A new secret would hide that.
        rotated = pytest.raises(psycopg.Error, db.execute, "SELECT flake_rotate_key('usr', 4000000000000000000, true)").value
        assert (rotated.sqlstate, rotated.diag.message_hint) == (error.sqlstate, error.diag.message_hint)
        check = "SELECT ok, hint FROM flake_check() WHERE name = 'keys'"
        assert db.execute(check).fetchone() == (False, error.diag.message_hint)
        # The secrets are imported again, in any order.
        for (option,) in reversed(secrets):
            db.execute("SELECT flake_import_key('usr', 'twitter', %b)", (bytes.fromhex(option.partition("=")[2]),))
        assert db.execute(check).fetchone() == (True, None)
    assert sealed(server, **there) == sealed(server, dbname="kept", user="keeper")


def test_the_page_s_statements_bring_a_rotation_to_another_server(server):
    """The key's owner runs them in both places. Before, the other server opens what the first secret has sealed only."""
    query, = pages.recipe(PAGE, "Several servers")
    server.sql("CREATE DATABASE far OWNER keeper")
    with server.connect(dbname="kept", user="keeper") as here, server.connect(dbname="far", user="keeper") as there:
        first = here.execute("SELECT split_part(umoptions[1], '=', 2) FROM pg_user_mappings WHERE srvname = 'usr'").fetchone()[0]
        there.execute("CREATE EXTENSION flake")
        there.execute("SELECT flake_import_key('usr', 'twitter', %b)", (bytes.fromhex(first),))
        texts = [text for text, in here.execute(SEALED)]
        opened = "SELECT flake_unseal(text, 'usr') FROM unnest(%s::text[]) text"
        assert [id for id, in there.execute(opened, (texts,))] == [1, 2, 3, 4, *[None] * 6]
        (statements,) = here.execute(query).fetchone()
        there.execute(statements)
        assert [id for id, in there.execute(opened, (texts,))] == list(range(1, 11))
        assert there.execute(SEALED).fetchall() == here.execute(SEALED).fetchall()
        alike = "SELECT version, ids::text, fingerprint FROM flake_keys ORDER BY 1"
        assert there.execute(alike).fetchall() == here.execute(alike).fetchall()
        assert there.execute("SELECT ok FROM flake_check() WHERE name = 'keys'").fetchone() == (True,)


def test_a_role_can_be_allowed_to_hide_parameters(server):
    grant = re.search(r"`(GRANT SET ON PARAMETER log_parameter_max_length TO keeper)`", PAGE.read_text())[1]
    with server.connect(dbname="kept", user="keeper") as db:
        pytest.raises(psycopg.errors.InsufficientPrivilege, db.execute, "SET log_parameter_max_length = 0")
        server.sql(grant)
        db.execute("SET log_parameter_max_length = 0")


@pytest.mark.matrix
def test_a_restore_leaves_no_secret_in_statistics_and_log(servers):
    """With the options of the page; without them, both have the secret."""
    if not (pg_config("--sharedir") / "extension/pg_stat_statements.control").exists():
        pytest.skip("this PostgreSQL has no pg_stat_statements")
    server = servers("shared_preload_libraries=pg_stat_statements", "log_statement=ddl")
    server.sql("SELECT flake_create_key('usr', 'twitter')")
    server.sql("CREATE EXTENSION pg_stat_statements")
    dump = server.run("pg_dump", "--schema-only", "postgres").stdout
    secret, = re.findall(r"key1 '([0-9a-f]{32})'", dump)
    options = re.search(r"^PGOPTIONS='(.*)' psql", "".join(pages.recipe(PAGE, "Restore a database", "shell")), re.M)[1]
    log = server.dir / "server.log"
    for name, with_options in ("with_them", options), ("without", ""):
        server.sql(f"CREATE DATABASE {name}")
        command = [bindir() / "psql", "-X", "-q", name]
        environment = server.client_environment | {"PGOPTIONS": with_options}
        subprocess.run(command, check=True, env=environment, input=dump, text=True, stdout=subprocess.DEVNULL)
        seen = server.value("SELECT count(*) FROM pg_stat_statements WHERE query ~ %s", secret) > 0, secret in log.read_text()
        assert seen == ((False, False) if with_options else (True, True))


def test_a_new_owner_can_use_and_rotate_the_keys(server):
    dump = server.run("pg_dump", "-U", "postgres", "kept").stdout
    there = restored(server, "inherited", dump)
    expected = sealed(server, **there)
    with server.connect(dbname="inherited") as db:
        db.execute("REASSIGN OWNED BY keeper TO heir")
        db.execute("SET ROLE heir")
        assert [text for (text,) in db.execute(SEALED)] == expected
        db.execute("SELECT flake_rotate_key('usr', 1000, true)")
        db.execute("RESET ROLE; DROP OWNED BY app")
        assert [text for (text,) in db.execute(SEALED)] == expected
        with server.connect(dbname="inherited", user="app") as app:
            assert pytest.raises(psycopg.Error, app.execute, SEALED).value.sqlstate == "42501"
        db.execute("DROP OWNED BY heir CASCADE")
        assert pytest.raises(psycopg.Error, db.execute, SEALED).value.sqlstate in ("42883", "42704")


@pytest.mark.matrix
def test_a_standby_and_the_primary_it_becomes_seal_alike(servers):
    primary = servers()
    primary.sql("SELECT flake_create_key('usr', 'twitter')")
    standby = servers(standby_of=primary)
    expected = sealed(primary)
    with standby.connect() as db:
        assert [text for (text,) in db.execute(SEALED)] == expected
        # A session that has used the key learns of replayed changes.
        primary.sql("SELECT flake_rotate_key('usr', 5, true)")
        changed = sealed(primary)
        standby.wait_for_replay(primary)
        assert [text for (text,) in db.execute(SEALED)] == changed and changed[:4] == expected[:4]
        assert pytest.raises(psycopg.Error, db.execute, "SELECT flake_rotate_key('usr', 9, true)").value.sqlstate == "25006"
    primary.stop("immediate")
    standby.promote()
    assert sealed(standby) == changed
    standby.sql("SELECT flake_rotate_key('usr', 9, true)")
    assert sealed(standby)[:8] == changed[:8]


@pytest.mark.matrix
def test_an_upgrade_of_the_server_keeps_the_keys(servers):
    old = servers()
    old.sql("SELECT flake_create_key('usr', 'twitter'); SELECT flake_rotate_key('usr', 5, true); SELECT flake_next('twitter')")
    expected = sealed(old)
    old.stop()
    new = servers(upgrade_of=old)
    new.launch()
    assert sealed(new) == expected
