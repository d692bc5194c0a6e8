"""flake_watermark() stays below the IDs of transactions that have not ended for the snapshot, and passes all other IDs."""

import time

import psycopg
import pytest

from clients import EXIT, wait_for_server
from conftest import LAYOUTS
from watermark import (
    OUTBOX,
    holds,
    holds_sno,
    insert,
    insert_in_transactions,
    one,
    passes,
    passes_sno,
    take_snapshot,
    wait_for_next_tick,
    watermark,
)  # fmt: skip

INSERT, NEXT = "INSERT INTO outbox DEFAULT VALUES RETURNING id", "SELECT flake_next('twitter')"
# Layouts whose IDs are in the order of time, and one with a long tick.
ORDERED = [*(layout for layout in LAYOUTS if layout != "uniqueid"), "of_seconds"]
# How a transaction comes to hold the watermark: what is before its first ID, the query of that ID, and what comes after it.
HOLDERS = {
    "inserts": ("BEGIN", INSERT, INSERT),
    "a savepoint that is rolled back": ("BEGIN", INSERT, f"SAVEPOINT s; {INSERT}; ROLLBACK TO s; RELEASE s"),
    "an ID of a savepoint that is rolled back": ("BEGIN; SAVEPOINT s", NEXT, "ROLLBACK TO s; INSERT INTO outbox VALUES ({id})"),
    "a savepoint, prepared": ("BEGIN; SAVEPOINT s", NEXT, "ROLLBACK TO s; INSERT INTO outbox VALUES ({id}); {prepare}"),
    "a read-only transaction": ("BEGIN READ ONLY", NEXT, ""),
    # The other IDs of a cursor belong to the transaction from the first row on.
    "a cursor": ("BEGIN; DECLARE ids CURSOR FOR SELECT flake_batch('twitter', 100000)", "FETCH 1 FROM ids", "MOVE ALL FROM ids"),
    "flake_cover": ("", NEXT, "BEGIN; INSERT INTO outbox VALUES (flake_cover({id}))"),
    "flake_cover below a savepoint that is rolled back": (
        "", NEXT, "BEGIN; SAVEPOINT s; SELECT flake_cover({id}); ROLLBACK TO s; INSERT INTO outbox VALUES ({id})"),
    "flake_cover of an earlier ID": ("", NEXT, f"BEGIN; {NEXT}; SELECT flake_cover({{id}})"),
    "flake_cover of a cursor's ID": ("BEGIN; DECLARE ids CURSOR WITH HOLD FOR SELECT flake_batch('twitter', 3); COMMIT",
                                     "FETCH 1 FROM ids", "BEGIN; INSERT INTO outbox VALUES (flake_cover({id}))"),
    "flake_cover, prepared": ("", NEXT, "BEGIN; INSERT INTO outbox VALUES (flake_cover({id})); {prepare}"),
}  # fmt: skip
# How a transaction ends: by a statement, which can fail, or with its session.
ENDS = {
    "COMMIT": lambda tailer, writer: writer.execute("COMMIT"),
    "ROLLBACK": lambda tailer, writer: writer.execute("ROLLBACK"),
    "an error": lambda tailer, writer: pytest.raises(psycopg.errors.DivisionByZero, writer.execute, "SELECT 1 / 0"),
    "terminated": lambda tailer, writer: one(tailer, "SELECT pg_terminate_backend(%s)", writer.info.backend_pid),
    "disconnected": lambda tailer, writer: writer.close(),
    # A library may call libc's exit().
    "exited": lambda tailer, writer: pytest.raises(psycopg.OperationalError, writer.execute, "SELECT libc_exit(0)"),
}


@pytest.fixture(scope="module")
def server(servers):
    server = servers("max_prepared_transactions=2")
    server.sql(OUTBOX)
    server.sql("""SELECT flake_create_layout('of_seconds', '{"like": "twitter", "tick": "1s"}')""")
    server.sql(f"CREATE FUNCTION libc_exit(integer) RETURNS void STRICT LANGUAGE c AS '{server.compile('exit', EXIT)}'")
    return server


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_transaction_holds_it_until_it_ends(writer, tailer, holder):
    """Both the writer and others see that. The session has made an ID before."""
    before, make, after = HOLDERS[holder]
    one(writer, NEXT)
    writer.execute(before)
    id = one(writer, make)
    writer.execute(after.format(id=id, prepare="PREPARE TRANSACTION 'prepared'"))
    assert holds(tailer, id) and holds(writer, id)
    writer.execute("COMMIT PREPARED 'prepared'" if "{prepare}" in after else "COMMIT")
    assert passes(tailer, id)


@pytest.mark.parametrize("end", ENDS)
def test_a_transaction_lets_go_however_it_ends(server, tailer, end):
    writer = server.connect()
    writer.execute("BEGIN")
    id = insert(writer)
    assert holds(tailer, id)
    ENDS[end](tailer, writer)
    wait_for_server(server)
    assert passes(tailer, id)
    writer.close()


@pytest.mark.parametrize("layout", ORDERED)
def test_ids_of_every_layout_hold_it(writer, tailer, layout):
    writer.execute("BEGIN")
    id = one(writer, "SELECT flake_next(%s)", layout)
    assert holds(tailer, id, layout)
    writer.execute("COMMIT")
    assert passes(tailer, id, layout)


@pytest.mark.parametrize("before, after", [("BEGIN", ""), ("", "BEGIN; SELECT sno_cover('{id}')")], ids=["made", "covered"])
def test_a_transaction_with_a_sno_holds_it(writer, tailer, before, after):
    writer.execute(before)
    id = one(writer, "SELECT sno_next()::text")
    writer.execute(after.format(id=id))
    assert holds_sno(tailer, id)
    writer.execute("COMMIT")
    assert passes_sno(tailer, id)


def test_a_transaction_without_an_id_does_not_hold_it(writer, tailer):
    writer.execute("BEGIN; CREATE TABLE other (id bigint); INSERT INTO other VALUES (1)")
    assert passes(tailer, insert(tailer))
    assert tailer.execute("SELECT * FROM flake_open_transactions").fetchall() == []


def test_it_is_held_at_the_first_id_of_the_transaction_not_of_the_session(writer, tailer):
    before = insert(writer)
    assert passes(tailer, before)
    writer.execute("BEGIN; SELECT FROM outbox")
    assert passes(tailer, insert(tailer))
    id = insert(writer)
    assert holds(tailer, id)
    assert before < watermark(tailer)
    writer.execute("COMMIT")


def test_each_transaction_holds_it_however_soon_it_follows(writer):
    """A session reads the clock for the first ID of each transaction, and not for every ID."""
    writer.execute("""DO $$ BEGIN
        FOR n IN 1..500 LOOP
            PERFORM flake_next('seata');
            IF NOT EXISTS (SELECT FROM flake_open_transactions WHERE pid = pg_backend_pid()) THEN
                RAISE 'transaction % does not hold it', n;
            END IF;
            COMMIT;
            PERFORM flake_next('seata');
            COMMIT;
        END LOOP; END $$""")


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("asked", ["early", "late"])
@pytest.mark.parametrize("begun", ["before", "after"])
@pytest.mark.parametrize("later", [0, 3000])
def test_a_transaction_that_ended_after_the_snapshot_holds_it(writer, tailer, begun, asked, later, level):
    """Many other transactions have used its proc since."""
    writer.execute("BEGIN")
    if begun == "before":
        id = insert(writer)
        take_snapshot(tailer, level)
    else:
        take_snapshot(tailer, level)
        id = insert(writer)
    first = watermark(tailer) if asked == "early" else 0
    writer.execute("COMMIT")
    insert_in_transactions(writer, later)
    assert holds(tailer, id)
    assert watermark(tailer) >= first
    tailer.execute("COMMIT")
    assert passes(tailer, id)


def test_it_does_not_go_back_while_a_snapshot_lasts(writer, tailer):
    """If there are many ended transactions, those that ended later share an entry with earlier ones."""

    def insert_many():
        for _ in range(20):
            insert(writer)
            time.sleep(0.002)

    insert_many()
    assert passes(tailer, insert(writer))
    take_snapshot(tailer)
    first = watermark(tailer)
    insert_many()
    assert watermark(tailer) >= first
    tailer.execute("COMMIT")


CASCADES = """CREATE TABLE customers (id integer PRIMARY KEY);
              CREATE TABLE orders (customer integer REFERENCES customers ON DELETE CASCADE ON UPDATE CASCADE, asked timestamptz);
              CREATE FUNCTION pass_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN COALESCE(NEW, OLD); END $$;
              CREATE TRIGGER asking BEFORE DELETE OR UPDATE ON orders FOR EACH ROW
                  WHEN (OLD.asked < flake_watermark()) EXECUTE FUNCTION pass_on()"""
ACTIONS = {"DELETE": "DELETE FROM customers", "UPDATE": "UPDATE customers SET id = 2"}


@pytest.mark.parametrize("level, asked", [("REPEATABLE READ", "before"), ("SERIALIZABLE", "never")])
@pytest.mark.parametrize("action", ACTIONS)
def test_the_newer_snapshot_of_a_foreign_keys_action_does_not_raise_it(server, writer, tailer, action, level, asked):
    """The action's watermark is too high for the transaction's own snapshot, which does not see later commits."""
    server.sql(f"DROP TABLE IF EXISTS orders, customers; DROP FUNCTION IF EXISTS pass_on; {CASCADES}")
    server.sql("INSERT INTO customers VALUES (1); INSERT INTO orders VALUES (1, '-infinity')")
    writer.execute("BEGIN")
    id = insert(writer)
    take_snapshot(tailer, level)
    first = watermark(tailer) if asked == "before" else 0
    writer.execute("COMMIT")
    wait_for_next_tick(tailer, id)
    tailer.execute(ACTIONS[action])
    assert first <= watermark(tailer) <= id
    # A second statement of the transaction: the first one's watermark counts.
    assert first <= watermark(tailer) <= id
    tailer.execute("COMMIT")
    assert passes(tailer, id)


def test_a_session_that_exited_after_the_snapshot_holds_it(server, tailer):
    """Other sessions have used its proc since."""
    with server.session() as writer:
        writer.execute("BEGIN")
        id = insert(writer)
        take_snapshot(tailer)
        writer.execute("COMMIT")
    for _ in range(20):
        with server.connect() as other:
            insert(other)
    assert holds(tailer, id)


def test_a_transaction_that_ends_after_an_imported_snapshot_holds_it(server, writer, tailer):
    take_snapshot(tailer)
    exported = one(tailer, "SELECT pg_export_snapshot()")
    id = insert(writer)
    with server.connect() as other:
        other.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '{exported}'")
        assert holds(other, id)


def test_a_transaction_that_a_procedure_has_committed_lets_go(writer, tailer):
    writer.execute("""CREATE PROCEDURE two(INOUT id bigint) LANGUAGE plpgsql AS $$ BEGIN
                          INSERT INTO outbox DEFAULT VALUES; COMMIT;
                          INSERT INTO outbox DEFAULT VALUES RETURNING outbox.id INTO id; PERFORM pg_sleep(0.1);
                      END $$""")
    id = one(writer, "CALL two(NULL)")
    assert passes(tailer, id)


def test_other_databases_do_not_hold_it(server, tailer):
    server.sql("CREATE DATABASE other")
    with server.connect(dbname="other") as writer, server.connect(dbname="other") as there:
        writer.execute("CREATE EXTENSION flake")
        writer.execute("BEGIN")
        id = one(writer, "SELECT flake_next('twitter')")
        assert passes(tailer, id)
        assert tailer.execute("SELECT * FROM flake_open_transactions").fetchall() == []
        assert holds(there, id)
        assert there.execute("SELECT pid, gid FROM flake_open_transactions").fetchall() == [(writer.info.backend_pid, None)]


def test_the_view_shows_who_holds_it(server, writer, tailer):
    with server.connect() as other:
        for session in writer, other:
            session.execute("BEGIN")
            assert holds(tailer, insert(session))
        found = tailer.execute("SELECT pid, gid FROM flake_open_transactions ORDER BY since").fetchall()
        assert found == [(session.info.backend_pid, None) for session in (writer, other)]
        assert one(tailer, "SELECT flake_watermark() = min(since) FROM flake_open_transactions")
        writer.execute("COMMIT")
        assert tailer.execute("SELECT pid FROM flake_open_transactions").fetchall() == [(other.info.backend_pid,)]
        other.execute("ROLLBACK")
        assert tailer.execute("SELECT * FROM flake_open_transactions").fetchall() == []


def test_every_role_may_ask_for_it(server, writer, tailer):
    server.sql("CREATE ROLE stranger")
    writer.execute("BEGIN")
    id = insert(writer)
    tailer.execute("SET ROLE stranger; SET default_transaction_read_only = on")
    assert holds(tailer, id)
    assert tailer.execute("SELECT pid FROM flake_open_transactions").fetchall() == [(writer.info.backend_pid,)]


def test_only_roles_that_see_the_activity_see_since_when(server):
    """A role sees when the transactions of other roles began if it has their privileges, or is a member of pg_read_all_stats."""
    server.sql("""CREATE ROLE writes LOGIN; CREATE ROLE sees; CREATE ROLE manages; CREATE ROLE watches;
                  GRANT INSERT, SELECT ON outbox TO writes; GRANT writes TO manages; GRANT pg_monitor TO watches""")
    with server.connect(user="writes") as writer, server.connect() as tailer:
        writer.execute("BEGIN")
        id = insert(writer)
        assert one(writer, "SELECT since = flake_watermark() FROM flake_open_transactions")
        see = """SELECT o.pid, o.since IS NOT NULL, a.xact_start IS NOT NULL
                 FROM flake_open_transactions o JOIN pg_stat_activity a USING (pid)"""
        for role, can_see in {"sees": False, "manages": True, "watches": True, "postgres": True, "writes": True}.items():
            tailer.execute(f"SET ROLE {role}")
            assert tailer.execute(see).fetchall() == [(writer.info.backend_pid, can_see, can_see)], role
            assert holds(tailer, id)
        # The role of the session decides, and not the role that it has become.
        tailer.execute("SET ROLE sees")
        writer.execute("RESET ROLE")
        assert tailer.execute(see).fetchall() == [(writer.info.backend_pid, False, False)]
    server.sql("DROP OWNED BY writes, sees, manages, watches; DROP ROLE writes, sees, manages, watches")
