"""Public IDs: which roles may seal, which see a secret, and that an ID keeps its public name."""

import base64
import time

import psycopg
import pytest

from conftest import pg_config
from waiting import Background, Waiting

STATEMENTS = "pg_stat_statements"
OTHERS = [STATEMENTS, "dblink"]
SECRETS = "SELECT unnest(umoptions) FROM pg_user_mapping"
# All rows of each table and view of these schemas that a role may read.
EVERYTHING = """
    SELECT format('SELECT string_agg(t::text, E''\\n'') FROM %s t', c.oid::regclass)
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE nspname IN ('pg_catalog', 'information_schema', 'public') AND relkind IN ('r', 'v') AND relname <> 'pg_proc'"""


def secrets(server, **options):
    """Returns the secrets that a superuser sees."""
    with server.connect(**options) as db:
        return [option.partition("=")[2] for (option,) in db.execute(SECRETS)]


def spellings(secret):
    """Returns all ways to write 16 bytes."""
    raw = bytes.fromhex(secret)
    escaped = "".join(f"\\{byte:03o}" for byte in raw)
    return [secret, secret.upper(), base64.b64encode(raw).decode(), escaped, secret[:16], secret[16:]]


def seen(db):
    """Returns everything that a session can read as one text."""
    found = []
    for (query,) in db.execute(EVERYTHING).fetchall():
        try:
            found.append(db.execute(query).fetchone()[0] or "")
        except psycopg.Error as error:
            found.append(text_of(error))
    found += [" ".join(map(str, row)) for row in db.execute("SHOW ALL")]
    return "\n".join(found)


def text_of(error):
    diag = error.diag
    parts = [diag.message_primary, diag.message_detail, diag.message_hint, diag.context, diag.internal_query]
    return "\n".join(filter(None, parts))


def refused(db, query, *parameters):
    with pytest.raises(psycopg.Error) as error:
        db.execute(query, parameters or None)
    return error.value


@pytest.mark.matrix
def test_no_secret_is_shown(servers):
    """If PostgreSQL's additional modules are not installed, the test checks the rest before it is skipped."""
    others = [name for name in OTHERS if (pg_config("--sharedir") / "extension" / f"{name}.control").exists()]
    libraries = ",".join(["flake", *(name for name in others if name == STATEMENTS)])
    server = servers(
        f"shared_preload_libraries={libraries}", f"{STATEMENTS}.track=all", f"{STATEMENTS}.track_utility=on",
        "track_functions=all",
        "log_min_messages=debug5", "log_min_duration_statement=0", "log_statement=all", "log_error_verbosity=verbose",
        "log_parameter_max_length=0", "debug_print_parse=on", "debug_print_rewritten=on", "debug_print_plan=on",
    )  # fmt: skip
    imported = bytes(range(16, 32))
    for name in others:
        server.sql(f"CREATE EXTENSION {name}")
    server.sql("""CREATE ROLE snoop LOGIN;
                  GRANT pg_monitor TO snoop; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO snoop;
                  GRANT SELECT ON ALL TABLES IN SCHEMA public TO snoop""")
    with server.connect() as db:
        db.execute("SELECT flake_create_key('usr', 'twitter')")
        db.execute("SELECT flake_rotate_key('usr', 1000, true)")
        db.execute("SELECT flake_import_key('ord', 'twitter', %b)", (imported,))
        # These calls fail after they have stored a secret, with the statement in the CONTEXT.
        for call in ("flake_create_key('late', 'twitter')", "flake_rotate_key('ord', 1, true)"):
            db.execute("DROP FUNCTION IF EXISTS failing()")
            db.execute(f"""CREATE FUNCTION failing() RETURNS int LANGUAGE plpgsql AS
                           $$ BEGIN PERFORM {call}; RETURN 1 / 0; END $$""")
            error = refused(db, "SELECT failing()")
            assert "failing" in text_of(error)
        db.execute("GRANT USAGE ON FOREIGN SERVER usr, ord TO snoop")
        everything = seen(db)
    hidden = secrets(server)
    assert imported.hex() in hidden and len(hidden) == 3
    assert all(secret in everything for secret in hidden), "a superuser sees them, so the search finds them"

    with server.connect(user="snoop") as db:
        db.execute("SET client_min_messages = debug5")
        notices = []
        db.add_notice_handler(lambda diag: notices.append(str(diag.message_primary) + str(diag.message_detail)))
        found = [seen(db)]
        queries = [
            "EXPLAIN (VERBOSE, ANALYZE) SELECT flake_seal(1, 'usr'), flake_unseal('usr_0', 'ord')",
            "SELECT flake_unseal_or_error('usr_75ddtqrrhdhagam34yy93n037g', 'usr')",
            "SELECT flake_seal(1, 'nobody')",
            "SELECT * FROM pg_stat_statements",
            "SELECT dblink_connect('usr')",
            "SELECT * FROM dblink('usr', 'SELECT 1') t(i int)",
            "SELECT pg_options_to_table(umoptions) FROM pg_user_mappings",
            "SELECT * FROM pg_user_mapping",
            "SELECT flake_check()",
            "SELECT flake_rotate_key('usr', 5000, true)",
            "SELECT flake_import_key('usr', 'twitter', '\\x00')",
            "CREATE USER MAPPING FOR PUBLIC SERVER usr OPTIONS (key1 '00112233445566778899aabbccddeeff')",
            "ALTER USER MAPPING FOR PUBLIC SERVER usr OPTIONS (ADD key1 '00112233445566778899aabbccddeeff')",
            "ALTER SERVER usr OPTIONS (SET key1 'x')",
            "CREATE FOREIGN TABLE peek (i int) SERVER usr",
        ]
        for query in queries:
            try:
                found += map(str, db.execute(query))
            except psycopg.Error as error:
                found.append(text_of(error))
        found += notices
    log = (server.dir / "server.log").read_text(errors="replace")
    assert "flake_rotate_key" in log and "flake_import_key" in log and "failing" in log
    for name, text in {"a session": "\n".join(found), "the log": log}.items():
        for secret in hidden:
            assert not [spelling for spelling in spellings(secret) if spelling in text], f"{name} shows a secret"
    if others != OTHERS:
        pytest.skip(f"PostgreSQL's modules {' and '.join(OTHERS)} are not all installed; the rest was tested")
    statements = "\n".join(str(row) for row in server.sql("SELECT query FROM pg_stat_statements"))
    assert "CREATE SERVER usr" in statements, "pg_stat_statements has what functions run"
    assert not [secret for secret in hidden if secret in statements]


@pytest.fixture
def keys(server):
    with server.connect() as db:
        db.execute("""SELECT flake_create_key('usr', 'twitter');
                      CREATE ROLE sealer LOGIN; CREATE ROLE staff; CREATE ROLE other LOGIN;
                      GRANT USAGE ON FOREIGN SERVER usr TO staff; GRANT staff TO sealer""")
        yield db
        db.execute("DROP SERVER usr CASCADE; DROP OWNED BY sealer, staff, other; DROP ROLE sealer, staff, other")


def test_only_usage_allows_sealing_and_opening(server, keys):
    with server.connect(user="sealer") as sealer, server.connect(user="other") as other:
        (sealed,) = sealer.execute("SELECT flake_seal(42, 'usr')").fetchone()
        assert sealer.execute("SELECT flake_unseal(%s, 'usr')", (sealed,)).fetchone() == (42,)
        calls = [
            "flake_seal(42, 'usr')", "flake_seal_uuid(42, 'usr')", f"flake_unseal('{sealed}', 'usr')",
            f"flake_unseal_or_error('{sealed}', 'usr')", "flake_unseal(gen_random_uuid(), 'usr')",
        ]  # fmt: skip
        for call in calls:
            error = refused(other, f"SELECT {call}")
            assert (error.sqlstate, error.diag.message_primary) == ("42501", 'permission denied for key "usr"')
        # Each of these takes the right away from a session that has used the key, and gives it back.
        for ends, gives in [
            ("REVOKE staff FROM sealer", "GRANT staff TO sealer"),
            ("REVOKE USAGE ON FOREIGN SERVER usr FROM staff", "GRANT USAGE ON FOREIGN SERVER usr TO staff"),
        ]:
            keys.execute(ends)
            assert refused(sealer, "SELECT flake_seal(42, 'usr')").sqlstate == "42501"
            keys.execute(gives)
            assert sealer.execute("SELECT flake_seal(42, 'usr')").fetchone() == (sealed,)
    with server.connect() as db:
        # A role with fewer rights does not get the key that the session has used with more.
        assert db.execute("SELECT flake_seal(42, 'usr')").fetchone() == (sealed,)
        db.execute("SET ROLE other")
        assert refused(db, "SELECT flake_seal(42, 'usr')").sqlstate == "42501"


def test_the_hint_grants_a_key_whose_name_is_a_word_of_sql(keys):
    """So are "user" and "order", which fit keys well."""
    for name, quoted in [("usr", "usr"), ("user", '"user"')]:
        if name != "usr":
            keys.execute(f"SELECT flake_create_key('{name}', 'twitter')")
        keys.execute("SET ROLE other")
        hint = refused(keys, f"SELECT flake_seal(1, '{name}')").diag.message_hint
        keys.execute("RESET ROLE")
        _, _, grant = hint.partition(": ")
        assert grant == f"GRANT USAGE ON FOREIGN SERVER {quoted} TO …"
        keys.execute(grant.replace("…", "other"))
        keys.execute(f"SET ROLE other; SELECT flake_seal(1, '{name}'); RESET ROLE")
    keys.execute('DROP SERVER "user" CASCADE')


def test_usage_is_lost_also_while_another_key_is_used(server, keys):
    keys.execute("SELECT flake_create_key('ord', 'twitter'); GRANT USAGE ON FOREIGN SERVER ord TO staff")
    try:
        with server.connect(user="sealer") as sealer:
            sealer.execute("SELECT flake_seal(42, 'usr'), flake_seal(42, 'ord')")
            keys.execute("REVOKE USAGE ON FOREIGN SERVER usr FROM staff")
            sealer.execute("SELECT flake_seal(42, 'ord')")
            assert refused(sealer, "SELECT flake_seal(42, 'usr')").sqlstate == "42501"
    finally:
        keys.execute("DROP SERVER ord CASCADE")


def test_views_ask_the_caller_and_definers_functions_the_definer(server, keys):
    keys.execute("""CREATE VIEW sealed AS SELECT flake_seal(1, 'usr'); GRANT SELECT ON sealed TO PUBLIC;
                    CREATE FUNCTION definer() RETURNS text SECURITY DEFINER LANGUAGE sql AS $$ SELECT flake_seal(1, 'usr') $$""")
    try:
        with server.connect(user="other") as other:
            assert refused(other, "SELECT * FROM sealed").sqlstate == "42501"
            assert other.execute("SELECT definer()").fetchone() == keys.execute("SELECT flake_seal(1, 'usr')").fetchone()
            assert refused(other, "SELECT flake_seal(1, 'usr')").sqlstate == "42501"
    finally:
        keys.execute("DROP VIEW sealed; DROP FUNCTION definer")


def test_a_mapping_of_ones_own_changes_nothing(server, keys):
    (sealed,) = keys.execute("SELECT flake_seal(7, 'usr')").fetchone()
    keys.execute("GRANT USAGE ON FOREIGN SERVER usr TO sealer")
    with server.connect(user="sealer") as sealer:
        mapping = "CREATE USER MAPPING FOR CURRENT_USER SERVER usr"
        for options in ["", " OPTIONS (key1 '00112233445566778899aabbccddeeff')"]:
            error = refused(sealer, mapping + options)
            assert error.sqlstate == "42501" and "00112233" not in text_of(error)
        keys.execute("CREATE USER MAPPING FOR sealer SERVER usr")
        assert sealer.execute("SELECT flake_seal(7, 'usr')").fetchone() == (sealed,)
        keys.execute("ALTER USER MAPPING FOR sealer SERVER usr OPTIONS (key1 '00112233445566778899aabbccddeeff')")
        assert sealer.execute("SELECT flake_seal(7, 'usr'), flake_unseal(%s, 'usr')", (sealed,)).fetchone() == (sealed, 7)


def test_a_server_of_another_wrapper_is_not_a_key(server):
    with server.connect() as db:
        db.execute("""CREATE FOREIGN DATA WRAPPER other_wrapper;
                      CREATE SERVER lookalike FOREIGN DATA WRAPPER other_wrapper
                          OPTIONS (key1 'aes128-uuid8 -9223372036854775808 569239f16f90456a');
                      CREATE USER MAPPING FOR PUBLIC SERVER lookalike OPTIONS (key1 '00112233445566778899aabbccddeeff')""")
        assert refused(db, "SELECT flake_seal(1, 'lookalike')").sqlstate == "42704"
        assert refused(db, "SELECT flake_drop_key('lookalike')").sqlstate == "42704"
        assert refused(db, "SELECT flake_create_key('lookalike', 'twitter')").sqlstate == "42710"
        db.execute("DROP FOREIGN DATA WRAPPER other_wrapper CASCADE")


def test_changes_reach_sessions_that_use_the_key(server, keys):
    with server.connect() as db:
        assert db.execute("SELECT flake_seal(1, 'usr')").fetchone()
        keys.execute("ALTER USER MAPPING FOR PUBLIC SERVER usr OPTIONS (SET key1 '00112233445566778899aabbccddeeff')")
        error = refused(db, "SELECT flake_seal(1, 'usr')")
        assert error.sqlstate == "55000" and "00112233" not in text_of(error)
        keys.execute("""DROP SERVER usr CASCADE; SELECT flake_create_key('usr', 'twitter');
                        GRANT USAGE ON FOREIGN SERVER usr TO staff""")
        same = "SELECT flake_seal(1, 'usr')"
        assert db.execute(same).fetchone() == keys.execute(same).fetchone()


def test_workers_of_parallel_plans_seal_alike(server, keys):
    with server.connect() as db:
        db.execute("""CREATE TABLE many AS SELECT g::bigint AS id FROM generate_series(1, 20000) g; ANALYZE many;
                      SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0""")
        query = "SELECT count(*) FROM many WHERE flake_unseal(flake_seal(id, 'usr'), 'usr') = id"
        assert "Workers Planned" in str(db.execute(f"EXPLAIN {query}").fetchall())
        assert db.execute(query).fetchone() == (20000,)
        db.execute("DROP TABLE many")


def test_a_statement_that_runs_hears_of_a_rotation(server, keys):
    """The statement waits for a lock between two calls, and does not look at the catalog otherwise."""
    keys.execute("SELECT pg_advisory_lock(56)")
    query = "SELECT flake_seal(1000, 'usr'), pg_advisory_lock(56), flake_seal(1000, 'usr')"
    with server.connect() as db:
        db.execute("SELECT flake_seal(1000, 'usr')")
        waiting = Waiting(server, db, lambda db: db.execute(query).fetchone())
        keys.execute("SELECT flake_rotate_key('usr', 500, true)")
        keys.execute("SELECT pg_advisory_unlock(56)")
        before, _, after = waiting.end()
    assert before != after == keys.execute("SELECT flake_seal(1000, 'usr')").fetchone()[0]


@pytest.mark.matrix
@pytest.mark.parametrize("many", [False, True], ids=["a long statement", "many statements"])
def test_an_id_keeps_its_public_name_during_a_rotation_under_load(server, many):
    """Public IDs that were sealed during a change of the secret can be opened. An ID has one public name, even in a statement
    that began before."""
    server.sql("""DROP SERVER IF EXISTS load CASCADE; DROP TABLE IF EXISTS loaded;
                  SELECT flake_create_key('load', 'twitter'); CREATE TABLE loaded (id bigint, sealed text)""")
    ids = "SELECT flake_next('twitter') AS id, pg_sleep(0.001) OFFSET 0"
    row = f"INSERT INTO loaded SELECT id, flake_seal(id, 'load') FROM ({ids}) s"

    def write():
        with server.connect() as db:
            if many:
                while not writing.ends.is_set():
                    db.execute(row)
            else:
                db.execute("""INSERT INTO loaded SELECT id, flake_seal(id, 'load') FROM (
                                  SELECT flake_next('twitter') AS id, pg_sleep(0.001) FROM generate_series(1, 6000)) s""")

    writing = Background(*[write] * 3)
    with writing:
        for _ in range(2):
            server.sql("SELECT flake_rotate_key('load', flake_min(clock_timestamp() + interval '2 s'), force => true)")
            time.sleep(2.3)
    count, of_one_name, opened = server.sql("""
        SELECT count(*), count(*) FILTER (WHERE flake_seal(id, 'load') = sealed),
               count(*) FILTER (WHERE flake_unseal(sealed, 'load') = id)
        FROM loaded""")[0]
    starts = server.value("""SELECT count(DISTINCT width_bucket(id, bounds)) FROM loaded, (
        SELECT array_agg(lower(ids) ORDER BY version) FILTER (WHERE version > 1) AS bounds
        FROM flake_keys WHERE name = 'load') b""")
    assert starts == 3, "rows were written with each secret"
    assert (of_one_name, opened) == (count, count)


IMPORT = r"flake_import_key('raced', 'twitter', '\x00112233445566778899aabbccddeeff')"


@pytest.mark.parametrize("first, second, state", [
    ("flake_drop_key('raced')", "flake_drop_key('raced')", "42704"),
    ("flake_rotate_key('raced', 1000, true)", "flake_drop_key('raced')", None),
    ("flake_drop_key('raced')", "flake_rotate_key('raced', 1000, true)", "42704"),
    (IMPORT, IMPORT, "42710"),
    ("flake_drop_key('raced')", IMPORT, None),
    ("flake_rotate_key('raced', 1000, true)", "flake_rotate_key('raced', 700, true)", "22023"),
])  # fmt: skip
def test_changes_of_one_key_at_a_time_wait_for_each_other(server, first, second, state):
    """One secret of the key is missing, so importing it gives it back."""
    with server.connect() as one, server.connect() as two:
        one.execute(f"DROP SERVER IF EXISTS raced CASCADE; SELECT {IMPORT}")
        if "rotate" not in first + second:
            one.execute("SELECT flake_rotate_key('raced', 500, true)")
            one.execute("ALTER USER MAPPING FOR PUBLIC SERVER raced OPTIONS (DROP key1)")
        one.execute(f"BEGIN; SELECT {first}")
        waiting = Waiting(server, two, lambda db: db.execute(f"SELECT {second}"))
        one.execute("COMMIT")
        if state:
            assert pytest.raises(psycopg.Error, waiting.end).value.sqlstate == state
        else:
            waiting.end()
        if second == IMPORT:
            assert two.execute("SELECT flake_unseal(flake_seal(1, 'raced'), 'raced')").fetchone() == (1,)
        two.execute("DROP SERVER IF EXISTS raced CASCADE")
