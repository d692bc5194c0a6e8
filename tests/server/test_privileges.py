"""Tables of privileges. PUBLIC may execute and select everything, and restricted functions check the caller's role themselves."""

import contextlib

import psycopg
import psycopg.types.json
import pytest

from catalog import DEFAULT_PRIVILEGES
from next_release import UPGRADES, provide

# The privileges of PUBLIC on each kind of object.
PUBLIC = {
    "function": {"EXECUTE"},
    "view": {"SELECT"},
    "sequence": set(),
    "schema": set(),
    "schema flake_plan": {"USAGE"},
    "type": {"USAGE"},
    "foreign-data wrapper": {"USAGE"},
}

# The roles of the table below: a role without privileges; a member of pg_monitor and of the owner's role that inherits nothing;
# a member of pg_monitor; a member of the owner's role; the owner of the extension, who owns the database and is not a
# superuser; a superuser.
ROLES = ["stranger", "substitute", "watcher", "deputy", "keeper", "postgres"]

# Columns: call | results for stranger, substitute, watcher, deputy, keeper, postgres. "-" is 42501.
CALLS = """
SELECT flake_next('twitter')                                          yes yes yes yes yes yes
SELECT count(*) FROM flake_batch('twitter', 3)                        yes yes yes yes yes yes
SELECT sno_next()                                                     yes yes yes yes yes yes
SELECT flake_publish_watermark() IS NOT NULL                            yes yes yes yes yes yes
SELECT flake_decode(1)                                                yes yes yes yes yes yes
SELECT sno_min(now()) < sno_max(now())                                yes yes yes yes yes yes
SELECT count(*) FROM flake_layouts                                    yes yes yes yes yes yes
SELECT count(*) FROM flake_internal.flake_layouts()                   -   -   -   -   -   yes
SELECT count(*) FROM flake_check()                                    yes yes yes yes yes yes
SELECT last_value FROM flake_internal.flake_mark                      -   -   -   -   -   yes
SELECT last_value FROM flake_internal.flake_mark_until                -   -   -   -   -   yes
SELECT count(*) FROM flake_stat                                      -   -   yes -   -   yes
SELECT count(*) FROM flake_keys                                       yes yes yes yes yes yes
SELECT count(*) FROM flake_open_transactions                          yes yes yes yes yes yes
SELECT count(*) FROM flake_internal.flake_stat()                      -   -   -   -   -   yes
SELECT flake_create_layout('new', '{"like": "twitter"}')              -   -   -   yes yes yes
SELECT flake_drop_layout('old')                                       -   -   -   yes yes yes
COMMENT ON SERVER old IS 'ours'                                       -   -   -   yes yes yes
CREATE SERVER x FOREIGN DATA WRAPPER flake_layout OPTIONS (definition '{"like": "si"}')  - - - yes yes yes
SELECT flake_internal.flake_layout_validator(ARRAY['definition={"like": "si"}'], 'pg_foreign_server'::regclass) - - - - - yes
SELECT flake_create_key('new', 'twitter')                                        -   -   -   yes yes yes
SELECT flake_import_key('new', 'twitter', '\\x00112233445566778899aabbccddeeff')  - - - yes yes yes
CREATE SERVER x FOREIGN DATA WRAPPER flake_key OPTIONS (layout 'a', key1 'aes128-uuid8 -9223372036854775808 0') - - - yes yes yes
SELECT flake_internal.flake_key_validator('{key1=00112233445566778899aabbccddeeff}', 'pg_user_mapping'::regclass) - - - - - yes
SELECT flake_accept_clock()                                           -   -   -   -   -   yes
SELECT flake_accept_turn()                                            -   -   -   -   -   yes
SELECT flake_internal.flake_record_mark()                             -   -   -   -   -   yes
SELECT flake_start_above(1, 'twitter')                                -   -   -   -   -   yes
SELECT sno_start_above(sno_min('2020-01-01'))                       -   -   -   -   -   yes
SELECT nextval('flake_internal.flake_mark')                           -   -   -   -   -   yes
SELECT setval('flake_internal.flake_mark', 1)                         -   -   -   -   -   yes
ALTER SEQUENCE flake_internal.flake_mark RESTART                      -   -   -   -   -   yes
ALTER TYPE flake_parts ALTER ATTRIBUTE worker TYPE integer            -   -   -   -   -   yes
ALTER TABLE flake_layouts RENAME TO mine                              -   -   -   -   -   yes
"""
CALLS = [line.rsplit(None, len(ROLES)) for line in CALLS.strip().splitlines()]

# The objects of the extension with their kind and the privileges of PUBLIC.
OBJECTS = """
    SELECT pg_describe_object(d.classid, d.objid, 0), o.kind, array(
        SELECT a.privilege_type FROM aclexplode(COALESCE(o.acl, acldefault(o.letter, o.owner))) a WHERE a.grantee = 0)
    FROM pg_depend d CROSS JOIN LATERAL (
        SELECT 'function', 'f', proacl, proowner FROM pg_proc
        WHERE oid = d.objid AND d.classid = 'pg_proc'::regclass
        UNION ALL SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' ELSE relkind::text END,
                         CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relacl, relowner FROM pg_class
        WHERE oid = d.objid AND d.classid = 'pg_class'::regclass
        UNION ALL SELECT 'type', 'T', typacl, typowner FROM pg_type
        WHERE oid = d.objid AND d.classid = 'pg_type'::regclass AND typcategory <> 'A'
        UNION ALL SELECT 'foreign-data wrapper', 'F', fdwacl, fdwowner FROM pg_foreign_data_wrapper
        WHERE oid = d.objid AND d.classid = 'pg_foreign_data_wrapper'::regclass
        UNION ALL SELECT 'schema', 'n', nspacl, nspowner FROM pg_namespace
        WHERE oid = d.objid AND d.classid = 'pg_namespace'::regclass
    ) o(kind, letter, acl, owner)
    WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
      AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')"""

# Databases, each with the version that is created and the version that it is upgraded to.
DATABASES = {"kept": None} | {f"upgraded_{number}": versions for number, versions in enumerate(UPGRADES)}
EVERYTHING = ["TABLES", "FUNCTIONS", "SEQUENCES"]


def create(db, name, **definition):
    db.execute("SELECT flake_create_layout(%s, %s)", (name, psycopg.types.json.Jsonb(definition)))


@pytest.fixture(scope="module")
def server(servers):
    """A server with these roles, and with databases whose owner, not a superuser, has created the extension. In some of them he
    has upgraded it, and default privileges grant nothing."""
    server = servers()
    provide(server)
    server.sql("""CREATE ROLE stranger LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE ROLE keeper LOGIN;
                  CREATE ROLE deputy LOGIN IN ROLE keeper; CREATE ROLE grantee;
                  CREATE ROLE substitute LOGIN NOINHERIT IN ROLE keeper, pg_monitor""")
    for database, versions in DATABASES.items():
        server.sql(f"CREATE DATABASE {database} OWNER keeper")
        if versions:
            server.connect(dbname=database).execute(DEFAULT_PRIVILEGES)
        with server.connect(dbname=database, user="keeper") as db:
            upgrade = " VERSION '{}'; ALTER EXTENSION flake UPDATE TO '{}'".format(*versions) if versions else ""
            db.execute(f"CREATE EXTENSION flake{upgrade}")
            create(db, "old", like="twitter")
    return server


def may(db, call):
    """Returns whether a role may do this, in the format of the table. The call is rolled back."""
    try:
        db.execute(call.strip())
        return "yes"
    except psycopg.errors.InsufficientPrivilege:
        return "-"
    finally:
        db.rollback()


@pytest.mark.matrix
@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_call_what_the_tables_say(server, role, database):
    wrong = []
    with server.connect(dbname=database, user=role, autocommit=False) as db:
        for call, *expected in CALLS:
            if (found := may(db, call)) != expected[ROLES.index(role)]:
                wrong.append((call, found))
    assert not wrong


@pytest.mark.parametrize(("role", "call"), [
    ("keeper", "SELECT flake_create_layout('new', '{\"like\": \"si\"}')"), ("pg_monitor", "SELECT FROM flake_stat"),
])  # fmt: skip
def test_members_who_do_not_inherit_set_the_role(server, role, call):
    with server.connect(dbname="kept", user="substitute", autocommit=False) as db:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(call)
        db.rollback()
        db.execute(f"SET ROLE {role}")
        db.execute(call)
        db.rollback()


def wrongly_granted(objects):
    """Returns the objects on which PUBLIC has wrong privileges. Row types have the privileges of their relation."""
    return [(name, kind, granted) for name, kind, granted in objects
            if kind in PUBLIC and set(granted) != PUBLIC.get(name, PUBLIC[kind])]  # fmt: skip


def test_public_may_do_what_the_tables_say(server):
    for database in DATABASES:
        with server.connect(dbname=database) as db:
            objects = db.execute(OBJECTS).fetchall()
        assert len(objects) > 60
        assert not wrongly_granted(objects), database


def test_the_error_messages_say_who_may_call(server):
    owner = "must be owner of extension flake or of the database to call"
    with server.connect(dbname="kept", user="stranger") as db:
        for call, message, detail in [
            ("flake_create_layout('a', '{}')", f"{owner} flake_create_layout", 'role "keeper"'),
            ("flake_drop_layout('old')", f"{owner} flake_drop_layout", 'role "keeper"'),
            ("flake_accept_clock()", "must be superuser to call flake_accept_clock", "all databases"),
            ("flake_start_above(1, 'si')", "must be superuser to call flake_start_above", "all databases"),
            ("FROM flake_stat", "permission denied for flake_stat", "pg_monitor"),
        ]:  # fmt: skip
            error = pytest.raises(psycopg.errors.InsufficientPrivilege, db.execute, f"SELECT {call}").value.diag
            assert error.message_primary == message
            assert detail in error.message_detail


def test_a_role_that_creates_a_server_is_told_what_it_may_not_create(server):
    with server.connect(dbname="kept", user="stranger") as db:
        for kind, option in (("layout", """definition '{"like": "si"}'"""), ("key", "layout 'si'")):
            create = f"CREATE SERVER x FOREIGN DATA WRAPPER flake_{kind} OPTIONS ({option})"
            error = pytest.raises(psycopg.errors.InsufficientPrivilege, db.execute, create).value.diag
            assert error.message_primary == f"must be owner of extension flake or of the database to create a {kind}"


def test_definer_functions_lend_the_owners_right(server):
    with server.connect(dbname="kept", user="keeper") as db:
        db.execute("""CREATE SCHEMA own CREATE TABLE nothing(); GRANT USAGE ON SCHEMA own TO stranger;
                      CREATE FUNCTION own.make(name text) RETURNS void SECURITY DEFINER LANGUAGE sql
                      AS $$ SELECT flake_create_layout(name, '{"like": "si"}') $$""")
    with server.connect(dbname="kept", user="stranger") as db:
        db.execute("SELECT own.make('lent')")
        assert db.execute("SELECT current_user, srvowner::regrole::text FROM pg_foreign_server WHERE srvname = 'lent'"
                          ).fetchone() == ("stranger", "keeper")  # fmt: skip


def test_layouts_belong_to_the_owner_of_the_extension(server):
    """Layouts belong to the owner's role, whichever member makes them, so that all members may change them."""
    with server.connect(dbname="kept", user="deputy") as db:
        create(db, "deputys", like="si")
        owner = "SELECT srvowner::regrole::text FROM pg_foreign_server WHERE srvname = 'deputys'"
        assert db.execute(owner).fetchone() == ("keeper",)
        db.execute("SELECT flake_drop_layout('deputys')")


def test_an_error_restores_the_callers_role(server):
    with server.connect(dbname="kept", user="deputy") as db:
        for failing in ["flake_create_layout('old', '{\"like\": \"si\"}')", "flake_drop_layout('none')"]:
            db.execute("BEGIN; SAVEPOINT s")
            with pytest.raises(psycopg.Error):
                db.execute(f"SELECT {failing}")
            db.execute("ROLLBACK TO s")
            assert db.execute("SELECT current_user").fetchone() == ("deputy",)
            db.execute("ROLLBACK")
    # PostgreSQL raises an error while the layout is written.
    server.connect(dbname="kept").execute("REVOKE USAGE ON FOREIGN DATA WRAPPER flake_layout FROM PUBLIC")
    try:
        with server.connect(dbname="kept", user="deputy") as db:
            db.execute("BEGIN; SAVEPOINT s")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                create(db, "none", like="si")
            db.execute("ROLLBACK TO s")
            assert db.execute("SELECT current_user").fetchone() == ("deputy",)
    finally:
        server.connect(dbname="kept").execute("GRANT USAGE ON FOREIGN DATA WRAPPER flake_layout TO PUBLIC")


def test_in_a_database_with_citus_public_has_no_right_on_the_wrapper(server):
    """PUBLIC has no privilege on the wrappers, because Citus would take PUBLIC for a role. Here, Citus is only a name; see
    tests/engines."""
    server.sql("CREATE DATABASE sharded")
    with server.connect(dbname="sharded") as db:
        db.execute("UPDATE pg_extension SET extname = 'citus' WHERE extname = 'plpgsql'")
        db.execute("CREATE EXTENSION flake")
        assert db.execute("SELECT DISTINCT fdwacl FROM pg_foreign_data_wrapper").fetchall() == [(None,)]
    assert "flake_layout" not in server.run("pg_dump", "sharded").stdout


@pytest.mark.parametrize("role", ["keeper", "postgres"])
def test_grants_on_everything_succeed_and_give_nothing_restricted(server, role):
    """Such grants succeed, and do not give anybody a restricted function."""
    server.sql("CREATE ROLE app LOGIN")
    try:
        with server.connect(dbname="kept", user=role) as db:
            for everything in EVERYTHING:
                db.execute(f"GRANT ALL ON ALL {everything} IN SCHEMA public TO app")
            for some in ["SELECT ON ALL TABLES", "EXECUTE ON ALL ROUTINES", "USAGE ON ALL SEQUENCES"]:
                db.execute(f"GRANT {some} IN SCHEMA public TO app")
        with server.connect(dbname="kept", user="app", autocommit=False) as db:
            for call, by_stranger, *_ in CALLS:
                if by_stranger == "-":
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        db.execute(call.strip())
                    db.rollback()
        with server.connect(dbname="kept", user=role) as db:
            for everything in EVERYTHING:
                db.execute(f"REVOKE ALL ON ALL {everything} IN SCHEMA public FROM app")
    finally:
        server.connect(dbname="kept").execute("DROP OWNED BY app; DROP ROLE app")


def test_default_privileges_change_nothing(server):
    """Default privileges are set before the extension is created."""
    server.sql("CREATE ROLE app LOGIN")
    server.sql("CREATE DATABASE defaults OWNER keeper")
    with server.connect(dbname="defaults") as db:
        for everything in [*EVERYTHING, "TYPES"]:
            db.execute(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {everything} TO app")
            db.execute(f"ALTER DEFAULT PRIVILEGES REVOKE ALL ON {everything} FROM PUBLIC")
    with server.connect(dbname="defaults", user="keeper") as db:
        db.execute("CREATE EXTENSION flake")
        create(db, "old", like="twitter")
    with server.connect(dbname="defaults") as db:
        assert not wrongly_granted(db.execute(OBJECTS).fetchall())
    for role in ["app", "stranger"]:
        with server.connect(dbname="defaults", user=role, autocommit=False) as db:
            for call, by_stranger, *_ in CALLS:
                assert (call, may(db, call)) == (call, by_stranger)


@pytest.mark.matrix
def test_a_role_that_may_set_the_sequence_moves_no_mark(own_servers):
    """A superuser can grant nextval and setval on flake_mark. They do not change the page that has the record."""
    server = own_servers(clock="+0")
    file = server.dir / "data" / "flake.mark"
    server.sql("""CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA flake_internal TO app;
                  GRANT ALL ON ALL SEQUENCES IN SCHEMA flake_internal TO app""")

    def set_by_app(value):
        with server.connect(user="app") as app:
            app.execute(f"SELECT setval('flake_internal.flake_mark', {value}), nextval('flake_internal.flake_mark')")

    # Without its file, the server knows only what the page says: nothing beyond it,
    last = server.value("SELECT flake_next('twitter')")
    set_by_app("(extract(epoch FROM clock_timestamp() + interval '50 min') * 1000000)::bigint")
    server.restart(mode="immediate", while_stopped=file.unlink)
    assert last < server.value("SELECT flake_next('twitter')")
    assert server.value("SELECT lead < interval '5 s' FROM flake_stat")
    # and all of it, so it repeats no ID while the clock is behind.
    last = server.value("SELECT flake_next('twitter')")
    set_by_app(1)
    server.restart(mode="immediate", while_stopped=lambda: (file.unlink(), server.set_clock("-60")))
    assert last < server.value("SELECT flake_next('twitter')")


def make_database(server, name, by, owner=None, **definition):
    """A database with the extension and a layout, made by its owner or by another role."""
    server.sql(f"CREATE DATABASE {name} OWNER {owner or by}")
    with server.connect(dbname=name, user=by) as db:
        db.execute("CREATE EXTENSION flake")
        create(db, "mine", like="si", **definition)


CONTENT = "SELECT array_agg(l ORDER BY name) FROM flake_layouts l"


def dumped_and_restored(server, database, role, owner=None):
    """Dumps the database and restores it elsewhere as a role, without a message. Returns the new name."""
    copy = f"{database}_by_{role}"
    server.sql(f"CREATE DATABASE {copy} OWNER {owner or role}")
    dump = server.run("pg_dump", "-U", role, database).stdout
    restored = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", role, "-d", copy, input=dump)
    assert restored.stderr == "", dump
    with server.connect(dbname=database) as one, server.connect(dbname=copy) as two:
        assert one.execute(CONTENT).fetchone() == two.execute(CONTENT).fetchone()
    return copy


def test_a_dump_of_an_owner_without_superuser_restores(server):
    """The dump can be restored with its owners, by the owner and by a superuser. If a superuser has restored it, the extension is
    the superuser's, and the owner of the database continues. Layouts and keys belong to the owner."""
    server.sql("CREATE ROLE first LOGIN")
    make_database(server, "original", by="first", text="base62")
    with server.connect(dbname="original", user="first") as db:
        db.execute("COMMENT ON SERVER mine IS 'ours'; CREATE TABLE t (id bigint DEFAULT flake_next('mine'))")
    for role in ["first", "postgres"]:
        copy = dumped_and_restored(server, "original", role, owner="first")
        of_extension = "SELECT extowner::regrole::text FROM pg_extension WHERE extname = 'flake'"
        owner = "SELECT srvowner::regrole::text, obj_description(oid) FROM pg_foreign_server"
        with server.connect(dbname=copy, user="first") as db:
            assert db.execute(of_extension).fetchone() == (role,)
            assert db.execute(owner).fetchall() == [("first", "ours")]
            db.execute("DROP TABLE t; SELECT flake_drop_layout('mine')")
            db.execute("SELECT flake_create_key('usr', 'twitter'); SELECT flake_rotate_key('usr')")
            create(db, "new", like="si")
            assert db.execute(owner).fetchall() == [("first", None)] * 2


def test_a_new_owner_continues_where_the_old_one_stopped(server):
    """After REASSIGN OWNED, the new owner continues where the old one stopped, and dumps can be restored."""
    server.sql("CREATE ROLE leaver LOGIN; CREATE ROLE heir LOGIN")
    make_database(server, "inherited", by="leaver")
    with server.connect(dbname="inherited") as db:
        db.execute("REASSIGN OWNED BY leaver TO heir; DROP OWNED BY leaver; DROP ROLE leaver")
    with server.connect(dbname="inherited", user="heir") as db:
        create(db, "ours", like="twitter")
        db.execute("SELECT flake_drop_layout('mine'); COMMENT ON SERVER ours IS 'ours'")
    for role in ["heir", "postgres"]:
        dumped_and_restored(server, "inherited", role, owner="heir")


def test_drop_owned_drops_layouts_and_the_extension(server):
    """DROP OWNED drops layouts and the extension, which belong to the role."""
    server.sql("CREATE ROLE goer LOGIN")
    make_database(server, "gone", by="goer")
    with server.connect(dbname="gone") as db:
        db.execute("ALTER DATABASE gone OWNER TO postgres; DROP OWNED BY goer; DROP ROLE goer")
        assert db.execute("SELECT count(*) FROM pg_foreign_server").fetchone() == (0,)
        db.execute("CREATE EXTENSION IF NOT EXISTS flake; SELECT flake_create_layout('mine', '{\"like\": \"si\"}')")


def test_a_superuser_who_created_the_extension_can_be_dropped(server):
    server.sql("CREATE ROLE admin LOGIN SUPERUSER; CREATE ROLE admin2 LOGIN SUPERUSER")
    make_database(server, "administered", by="admin", owner="postgres")
    with server.connect(dbname="administered") as db:
        db.execute("REASSIGN OWNED BY admin TO admin2; DROP OWNED BY admin; DROP ROLE admin")
    dumped_and_restored(server, "administered", "admin2")


def test_who_may_make_no_id_holds_no_watermark_back_also_after_a_dump(server):
    """docs/how-to/tail.md names the functions to revoke. No other call of a role without privileges holds a watermark back."""
    makers = ["flake_next('twitter')", "flake_batch('twitter', 1)", "flake_cover(1)", "sno_next()", "sno_cover(sno_min(now()))"]
    server.sql("CREATE DATABASE revoked")
    with server.connect(dbname="revoked") as db:
        db.execute("""CREATE EXTENSION flake; SELECT flake_create_layout('mine', '{"like": "si"}')""")
        of_makers = [name for name, in db.execute(
            "SELECT oid::regprocedure FROM pg_proc WHERE proname = ANY (%s)", ([maker.split("(")[0] for maker in makers],))]
        db.execute(f"REVOKE EXECUTE ON FUNCTION {', '.join(of_makers)} FROM PUBLIC")
    for database in ["revoked", dumped_and_restored(server, "revoked", "postgres")]:
        with (server.connect(dbname=database, user="stranger", autocommit=False) as db, server.connect(dbname=database) as other):
            assert {may(db, f"SELECT {maker}") for maker in makers} == {"-"}
            for call in (call for call, by_stranger, *_ in CALLS if by_stranger == "yes"):
                with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                    db.execute(call)
                assert other.execute("SELECT * FROM flake_open_transactions").fetchall() == [], call
                db.rollback()
