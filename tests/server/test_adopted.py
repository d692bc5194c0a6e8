"""A sequence that was adopted stays closed, wherever it goes and whatever is done to it: an error, and never a small number."""

import re

import psycopg
import pytest

from adopting import IS_ID, LARGE, ORDERS, PATH, adopt, code, db, is_closed, one, server, state
from waiting import Waiting

__all__ = ["db", "server"]

CALLS = """SELECT funcname, sum(calls)::int FROM pg_stat_xact_user_functions WHERE funcname ~ '^nextval' GROUP BY 1"""


@pytest.fixture
def adopted(db):
    db.execute(ORDERS)
    adopt(db)
    return db


# Changes of the sequence.


@pytest.mark.matrix
@pytest.mark.parametrize("change", [
    "CYCLE", "NO MAXVALUE", "MAXVALUE -1", "INCREMENT -1", "CACHE 20", "MINVALUE -9007199254740993 CYCLE RESTART",
    f"START {-code('twitter') - 1}",
])  # fmt: skip
def test_a_sequence_that_was_opened_makes_nothing(adopted, change):
    adopted.execute(f"ALTER SEQUENCE orders_id_seq {change}")
    error = pytest.raises(psycopg.Error, adopted.execute, IS_ID).value
    assert error.sqlstate == "55000"
    alter, set = re.findall(r"(ALTER SEQUENCE .*?), and (SELECT .*?\))\.", error.diag.message_hint)[0]
    adopted.execute(alter.replace("…", "orders_id_seq"))
    adopted.execute(set.replace("…", "orders_id_seq"))
    assert is_closed(adopted) and one(adopted, IS_ID) == (True,)
    assert state(adopted, "SELECT nextval('orders_id_seq')") == "2200H"


@pytest.mark.parametrize("change", ["START 1", "MINVALUE 1", "RESTART WITH 1", "AS integer", "AS smallint"])
def test_other_changes_are_refused(adopted, change):
    """The range does not fit."""
    assert state(adopted, f"ALTER SEQUENCE orders_id_seq {change}") == "22023" and is_closed(adopted)


def test_a_session_notices_that_a_sequence_was_opened_in_whole(adopted):
    """Nothing in the catalog tells it any more. A session that has used it gets no small number."""
    assert one(adopted, IS_ID) == (True,)
    adopted.execute("ALTER SEQUENCE orders_id_seq MINVALUE 1 MAXVALUE 1000000 START 1 RESTART")
    assert state(adopted, IS_ID) == "55000"
    assert one(adopted, f"SELECT flake_sequences.currval('orders_id_seq') > {LARGE}") == (True,)


def test_a_sequence_that_is_altered_meanwhile_makes_nothing(server, adopted):
    """The statement waits for the lock of whoever alters it, and looks again."""
    with server.session(dbname="test") as owner:
        owner.execute("BEGIN; ALTER SEQUENCE orders_id_seq NO MAXVALUE")
        waiting = Waiting(server, adopted, lambda adopted: state(adopted, IS_ID))
        owner.execute("COMMIT")
        assert waiting.end() == "55000"


@pytest.mark.parametrize("restart", ["ALTER SEQUENCE orders_id_seq RESTART", "TRUNCATE orders RESTART IDENTITY"])
def test_a_restart_gives_one_number_that_moves_no_consumer(adopted, restart):
    adopted.execute(restart)
    assert one(adopted, IS_ID) == (True,)
    assert one(adopted, "SELECT nextval('orders_id_seq')") == (-code("twitter"),)
    assert state(adopted, "SELECT nextval('orders_id_seq')") == "2200H"
    assert one(adopted, IS_ID) == (True,)


def test_a_layout_that_is_gone_makes_nothing(db):
    db.execute("SELECT flake_create_layout('own', (SELECT jsonb_build_object('epoch', epoch, 'tick', '1ms', 'fields', fields) "
               "FROM flake_layouts WHERE name = 'twitter'))")
    db.execute(ORDERS)
    adopt(db, layout="own")
    assert one(db, IS_ID) == (True,)
    assert state(db, "SELECT flake_drop_layout('own')") == "2BP01"
    db.execute("DROP SERVER own")
    assert state(db, IS_ID) == "22023"
    db.execute("DISCARD ALL")
    assert state(db, IS_ID) == "22023" and state(db, "SELECT nextval('orders_id_seq')") == "2200H"
    assert state(db, "CALL flake_release('orders')") == "55000"
    db.execute("CALL flake_release('orders', 11)")


# Where it goes.


def dumped(server, *arguments, into="restored", extensions=True, database="test"):
    """Restores a dump into a new database."""
    server.sql(f"DROP DATABASE IF EXISTS {into}")
    server.sql(f"CREATE DATABASE {into}")
    dump = server.run("pg_dump", *arguments, database).stdout
    if extensions:
        with server.session(dbname=into) as db:
            db.execute("CREATE EXTENSION flake; CREATE EXTENSION flake_sequences")
    return dump


@pytest.mark.matrix
@pytest.mark.parametrize("arguments", [
    [], ["-t", "orders"], ["-n", "public"], ["--no-comments", "--no-privileges", "--no-owner"],
])  # fmt: skip
def test_a_dump_keeps_it(server, adopted, arguments):
    dump = dumped(server, *arguments, extensions=arguments in (["-t", "orders"], ["-n", "public"]))
    server.run("psql", "-X", "-q", "-d", "restored", input=dump)
    with server.session(dbname="restored") as db:
        assert one(db, "SELECT count(*) FROM orders") == (10,)
        assert is_closed(db) and one(db, IS_ID) == (True,) and state(db, "SELECT nextval('orders_id_seq')") == "2200H"


def test_its_data_do_not_go_into_a_table_that_counts(server, adopted):
    """The dump sets the sequence to its last number, which no other sequence has."""
    dump = dumped(server, "--data-only", "-n", "public")
    with server.session(dbname="restored") as db:
        db.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, v int)")
    said = server.run("psql", "-X", "-q", "-d", "restored", "-v", "VERBOSITY=sqlstate", input=dump).stderr
    assert "ERROR:  22003" in said


def test_a_copy_of_the_database_keeps_it(server, adopted):
    adopted.close()
    server.sql("DROP DATABASE IF EXISTS restored")
    server.sql("CREATE DATABASE restored TEMPLATE test")
    with server.session(dbname="restored") as db:
        assert is_closed(db) and one(db, IS_ID) == (True,)


@pytest.mark.matrix
def test_an_upgrade_of_the_server_keeps_it(own_servers):
    old = own_servers()
    with old.session() as db:
        db.execute(f"CREATE EXTENSION flake_sequences; {ORDERS}")
        db.execute("CALL flake_route('public')")
        adopt(db)
        greatest, = one(db, "INSERT INTO orders (v) VALUES (1) RETURNING id")
    old.stop()
    new = own_servers(upgrade_of=old)
    new.launch()
    with new.session() as db:
        after = one(db, f"INSERT INTO orders (v) VALUES (1) RETURNING id > {greatest}, lastval() = id")
        assert is_closed(db) and after == (True, True)
        assert one(db, f"SELECT nextval('orders_id_seq') > {greatest}") == (True,)
        assert state(db, "SELECT pg_catalog.nextval('orders_id_seq')") == "2200H"


def test_other_names_and_schemas_keep_it(adopted):
    adopted.execute("ALTER SEQUENCE orders_id_seq RENAME TO s; CREATE SCHEMA other; ALTER TABLE orders SET SCHEMA other")
    adopted.execute("SET search_path = other, public")
    assert is_closed(adopted, "s") and one(adopted, IS_ID) == (True,)
    adopted.execute("CREATE TABLE same (LIKE orders INCLUDING ALL)")
    assert one(adopted, f"INSERT INTO same (v) VALUES (1) RETURNING id > {LARGE}") == (True,)


# Privileges.


@pytest.mark.parametrize(("grant", "may"), [
    ("USAGE ON SEQUENCE orders_id_seq", True), ("UPDATE ON SEQUENCE orders_id_seq", True),
    ("SELECT ON SEQUENCE orders_id_seq", False),
    ("INSERT ON orders", True), ("INSERT (id) ON orders", True), ("INSERT (v) ON orders", True), ("UPDATE ON orders", False),
    ("SELECT ON orders", False), ("INSERT ON other", False),
])  # fmt: skip
def test_a_role_makes_ids_where_it_may_insert(adopted, grant, may):
    """An identity column asks for no privilege on its sequence."""
    adopted.execute(f"CREATE TABLE other (id int); GRANT {grant} TO app; SET ROLE app")
    if may:
        assert one(adopted, f"SELECT flake_sequences.nextval('orders_id_seq') > {LARGE}") == (True,)
        assert one(adopted, f"SELECT lastval() > {LARGE}") == (True,)
    else:
        assert state(adopted, "SELECT flake_sequences.nextval('orders_id_seq')") == "42501"
    if "SEQUENCE" not in grant:
        assert state(adopted, "SELECT flake_sequences.currval('orders_id_seq')") == "42501"
    if "UPDATE ON SEQ" not in grant:
        assert state(adopted, "SELECT flake_sequences.setval('orders_id_seq', 5)") == "42501"


def test_a_privilege_that_is_taken_away_is_missed_at_once(adopted, server):
    """Also in a statement that has checked it, and by another role in the same transaction."""
    adopted.execute("GRANT USAGE ON SEQUENCE orders_id_seq TO app")
    adopted.execute("BEGIN; SELECT flake_sequences.nextval('orders_id_seq'); SET LOCAL ROLE reader")
    assert state(adopted, "SELECT flake_sequences.nextval('orders_id_seq')") == "42501"
    adopted.execute("ROLLBACK")
    adopted.execute("SET ROLE app; SELECT flake_sequences.nextval('orders_id_seq')")
    with server.session(dbname="test") as owner:
        owner.execute("REVOKE USAGE ON SEQUENCE orders_id_seq FROM app")
    assert state(adopted, "SELECT flake_sequences.nextval('orders_id_seq')") == "42501"


def test_a_privilege_that_is_taken_away_is_missed_by_a_statement_that_runs(server, adopted):
    """Also after so many IDs that it looks at nothing else. It learns of the change when it locks something."""
    adopted.execute("""CREATE FUNCTION wait(i int) RETURNS void LANGUAGE plpgsql STABLE AS $$
        BEGIN IF i = 150 THEN PERFORM pg_advisory_xact_lock(1); PERFORM FROM pg_opfamily; END IF; END $$;
        GRANT USAGE ON SEQUENCE orders_id_seq TO app; SET ROLE app""")
    statement = "SELECT flake_sequences.nextval('orders_id_seq'), wait(i) FROM generate_series(1, 200) i"
    with server.session(dbname="test") as owner:
        owner.execute("SELECT pg_advisory_lock(1)")
        waiting = Waiting(server, adopted, lambda adopted: state(adopted, statement))
        owner.execute("REVOKE USAGE ON SEQUENCE orders_id_seq FROM app")
        # In one call with the other statement, the lock would end before the transaction.
        owner.execute("SELECT pg_advisory_unlock(1)")
        assert waiting.end() == "42501"


def test_only_owners_adopt_and_release(db):
    db.execute(f"{ORDERS}; CREATE SEQUENCE s; SET ROLE app")
    assert state(db, "CALL flake_adopt('orders', 'twitter')") == state(db, "CALL flake_adopt('s', 'twitter')") == "42501"
    assert one(db, "SELECT count(*) FROM flake_candidates") == (0,)
    db.execute("RESET ROLE")
    adopt(db)
    adopt(db, "s")
    db.execute("SET ROLE app")
    assert state(db, "CALL flake_release('orders')") == state(db, "CALL flake_release('s', 1)") == "42501"


def test_a_function_of_another_role_makes_ids_with_its_rights(adopted):
    adopted.execute("""CREATE FUNCTION made() RETURNS bigint LANGUAGE sql SECURITY DEFINER
                       AS 'SELECT flake_sequences.nextval(''orders_id_seq'')'; SET ROLE app""")
    assert one(adopted, f"SELECT made() > {LARGE}, lastval() > {LARGE}") == (True, True)
    assert state(adopted, "SELECT flake_sequences.nextval('orders_id_seq')") == "42501"


def test_nobody_gets_at_the_sequence_of_all_sessions(adopted):
    """CREATE RULE would wait for a lock that stops every session. By its OID, a role reaches what lastval() returns to itself."""
    adopted.execute("SET ROLE app")
    for statement in [
        "CREATE RULE r AS ON UPDATE TO flake_internal.flake_last DO ALSO SELECT 1",
        "ALTER SEQUENCE flake_internal.flake_last RESTART",
        "DROP SEQUENCE flake_internal.flake_last", "SELECT * FROM flake_internal.flake_last",
        "CREATE FUNCTION flake_sequences.nextval(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE flake_sequences.t (id int)", "ALTER SCHEMA flake_sequences OWNER TO app",
    ]:  # fmt: skip
        assert state(adopted, statement) == "42501", statement
    adopted.execute("RESET ROLE")
    oid, = one(adopted, "SELECT 'flake_internal.flake_last'::regclass::oid::bigint")
    for value in (1, (1 << 63) - 1, -(1 << 63)):
        adopted.execute(f"SET ROLE app; SELECT setval({oid}::regclass, {value}); RESET ROLE")
        assert one(adopted, IS_ID) == (True,)


def test_a_schema_of_another_role_is_not_taken(server):
    """Its owner could change what the functions do."""
    server.sql("DROP DATABASE IF EXISTS restored")
    server.sql("CREATE DATABASE restored")
    with server.session(dbname="restored") as db:
        db.execute("GRANT CREATE ON DATABASE restored TO app; SET ROLE app; CREATE SCHEMA flake_sequences; RESET ROLE")
        assert state(db, "CREATE EXTENSION flake_sequences CASCADE") == "42P06"
    server.sql("DROP DATABASE restored")


def test_a_hostile_path_changes_nothing(db):
    """The owner of a table plants functions where an administrator who adopts it would call them."""
    db.execute(f"""CREATE SCHEMA evil AUTHORIZATION app; {ORDERS}; ALTER TABLE orders OWNER TO app; SET ROLE app;
        CREATE FUNCTION evil.boom() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'ran as %', current_user; END $$;
        CREATE FUNCTION evil.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT evil.boom()';
        CREATE FUNCTION evil.setval(regclass, bigint, boolean) RETURNS bigint LANGUAGE sql AS 'SELECT evil.boom()';
        CREATE FUNCTION evil.same(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT evil.boom() = 1';
        CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = evil.same);
        CREATE DOMAIN evil."char" AS pg_catalog."char" CHECK (evil.boom() = 1);
        CREATE DOMAIN evil.regclass AS text; CREATE DOMAIN evil.int8 AS text; CREATE TABLE evil.pg_class (oid oid);
        RESET ROLE; SET search_path = evil, public, pg_catalog""")
    undo = adopt(db)
    db.execute("SELECT FROM flake_candidates")
    db.execute("SET search_path = public")
    assert is_closed(db)
    db.execute("SET search_path = evil, public, pg_catalog")
    db.execute(undo)
    one(db, "CALL flake_adopt_schema('public', 'twitter')")
    db.execute("CALL flake_release('orders', 11)")
    db.execute("SET search_path = public")
    assert one(db, "INSERT INTO orders (v) VALUES (1) RETURNING id") == (11,)


def test_a_forged_sequence_gives_its_owner_nothing(db):
    """Only the owner of a sequence can close it, and gets IDs that flake_next gives to every role."""
    low, high = -code("si") - 1, -code("si")
    db.execute("SET ROLE app")
    db.execute(f"CREATE SEQUENCE s MINVALUE {low} MAXVALUE {high} START {high}")
    assert one(db, "SELECT flake_sequences.nextval('s') > 1000000") == (True,)
    # A code that no layout has, and one that is open.
    db.execute(f"CREATE SEQUENCE t MINVALUE {low - 8} MAXVALUE {high - 8} START {high - 8}")
    assert state(db, "SELECT flake_sequences.nextval('t')") == "22023"
    db.execute(f"CREATE SEQUENCE u MINVALUE {low - 8} START {high}")
    assert state(db, "SELECT flake_sequences.nextval('u')") == "55000"


# COPY, plans, read-only transactions.


def test_copy_inserts_many_rows_at_a_time(adopted):
    adopted.execute("SET track_functions = 'all'")
    with adopted.transaction():
        with adopted.cursor() as cursor, cursor.copy("COPY orders (v) FROM STDIN") as stream:
            stream.write("".join(f"{n}\n" for n in range(500)))
        assert dict(adopted.execute(CALLS).fetchall()) == {"nextval_in_copy": 500}
        adopted.execute("INSERT INTO orders (v) VALUES (1)")
        assert dict(adopted.execute(CALLS).fetchall()) == {"nextval_in_copy": 500, "nextval": 1}
    assert one(adopted, f"SELECT count(*), count(DISTINCT id) FROM orders WHERE id > {LARGE}") == (501, 501)
    adopted.execute("ALTER TABLE orders ADD COLUMN n bigint DEFAULT flake_sequences.nextval('orders_id_seq')")
    assert one(adopted, "SELECT count(*) = count(DISTINCT n) FROM orders") == (True,)


def test_plans_are_not_parallel(adopted):
    name = "debug_parallel_query" if adopted.info.server_version >= 160000 else "force_parallel_mode"
    adopted.execute(f"SET {name} = on")
    assert one(adopted, f"SELECT min(flake_sequences.nextval('orders_id_seq')) > {LARGE} FROM orders") == (True,)
    assert one(adopted, IS_ID) == (True,)
    labels = """SELECT array_agg(DISTINCT proparallel::text) FROM pg_proc
                WHERE pronamespace = 'flake_sequences'::regnamespace AND prolang <> 14"""
    assert one(adopted, labels) == (["u"],)


@pytest.mark.parametrize("oid", [0, 999999])
@pytest.mark.parametrize("call", ["nextval({})", "currval({})", "setval({}, 5)", "setval({}, 5, true)"])
def test_a_relation_that_does_not_exist_is_an_error_of_the_caller(db, oid, call):
    error = pytest.raises(psycopg.errors.UndefinedTable, db.execute, f"SELECT flake_sequences.{call.format(oid)}").value
    assert error.diag.message_primary == f"relation with OID {oid} does not exist" and error.diag.message_detail


@pytest.mark.parametrize("call", ["nextval('orders_id_seq')", "setval('orders_id_seq', 5)", "setval('orders_id_seq', 5, false)"])
def test_a_read_only_transaction_makes_nothing(adopted, call):
    adopted.execute("BEGIN READ ONLY")
    assert state(adopted, f"SELECT flake_sequences.{call}") == "25006"
    adopted.execute("ROLLBACK")


def test_rails_resets_an_empty_table(adopted):
    """It sets the sequence to pg_sequence.seqmin, not called."""
    adopted.execute(f"SET search_path = {PATH}")
    least = "FROM pg_sequence WHERE seqrelid = 'orders_id_seq'::regclass"
    assert one(adopted, f"SELECT setval('orders_id_seq', seqmin, false) = seqmin {least}") == (True,)
    assert one(adopted, IS_ID) == (True,)
    assert state(adopted, f"SELECT setval('orders_id_seq', seqmin) {least}") == "22003"


@pytest.mark.parametrize("path", ["public", PATH, "flake_sequences, pg_temp, pg_catalog, nosuch, public"])
def test_current_schemas_leaves_out_what_is_no_applications(db, path):
    db.execute(f"CREATE TEMP TABLE t (); SET search_path = {path}")
    everything, = one(db, "SELECT pg_catalog.current_schemas(false)")
    native = [name for name in everything if name not in ("flake_sequences", "pg_catalog")]
    assert one(db, "SELECT flake_sequences.current_schemas(false)") == (native,)
    assert one(db, "SELECT flake_sequences.current_schemas(true)")[0][0] == "pg_catalog"
