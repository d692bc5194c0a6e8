"""flake_take: returns the next rows of a table, and moves a position over them."""

import subprocess

import psycopg
import pytest

from conftest import as_server, bindir
from memory import peak_memory
from taking import LAST, POSITIONS, TAKE, events, prepared, refused, role, wait_until_complete
from waiting import Waiting, wait_until


@pytest.fixture
def db(server):
    yield from prepared(server)


# Rows.


def test_each_row_comes_once_and_in_order(db):
    few = TAKE.replace("100", "3")
    assert [events(db, few) for _ in range(5)] == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10], []]
    assert db.execute(LAST).fetchone() == db.execute("SELECT max(id) FROM outbox").fetchone()


def test_rows_of_one_id_come_together(server, db):
    """The position can only be before all of them or after all of them."""
    db.execute("""
        CREATE TABLE lines (id bigint DEFAULT flake_next('twitter'), line int, PRIMARY KEY (id, line));
        INSERT INTO positions VALUES ('mailer', 'lines');
        WITH first AS (INSERT INTO lines (line) VALUES (1) RETURNING id)
        INSERT INTO lines SELECT id, n FROM first, generate_series(2, 5) n;
        INSERT INTO lines (line) VALUES (6), (7)""")
    wait_until_complete(server, "lines")
    take = "SELECT * FROM flake_take(NULL::lines, 'positions', 'mailer', 2)"
    assert [sorted(events(db, take)) for _ in range(3)] == [[1, 2, 3, 4, 5], [6, 7], []]


def test_rows_that_are_not_below_the_watermark_stay(server, db):
    """Not even the first row of the watermark's tick is returned."""
    with server.session() as writer:
        writer.execute("BEGIN; INSERT INTO outbox (event) VALUES (11)")
        db.execute("INSERT INTO outbox SELECT flake_min(flake_watermark(), 'twitter'), 0")
        db.execute("INSERT INTO outbox SELECT flake_next('twitter'), 12")
        assert events(db) == list(range(1, 11))
        writer.execute("COMMIT")
    wait_until_complete(server)
    assert events(db) == [0, 11, 12]


def test_rows_are_as_the_table_has_them(server, db):
    """Columns were dropped and added, values are stored out of line, and names need quotes or occur in the queries."""
    server.sql("""
        CREATE SCHEMA "S ""ß";
        CREATE TABLE "S ""ß"."T {key}" (gone text, t text, p int DEFAULT 7, large text,
                                        "I d" bigint PRIMARY KEY DEFAULT flake_next('twitter'),
                                        twice int GENERATED ALWAYS AS (p * 2) STORED);
        ALTER TABLE "S ""ß"."T {key}" ALTER large SET STORAGE EXTERNAL, DROP gone, ADD added text DEFAULT 'new';
        INSERT INTO "S ""ß"."T {key}" (t, large) SELECT n, repeat('x', n * 100000) FROM generate_series(1, 3) n;
        INSERT INTO positions VALUES ('mailer', '"S ""ß"."T {key}"')""")
    wait_until(lambda: server.value("""SELECT max("I d") < flake_min(flake_watermark(), 'twitter') FROM "S ""ß"."T {key}" """))
    take = """SELECT * FROM flake_take(NULL::"S ""ß"."T {key}", 'positions', 'mailer', 100)"""
    assert db.execute(take).fetchall() == db.execute("""SELECT * FROM "S ""ß"."T {key}" ORDER BY "I d" """).fetchall() != []


@pytest.mark.parametrize("kind, default, watermark", [
    ("bigint", "flake_next('twitter')", "flake_min(flake_watermark(), 'twitter')"),
    ("sno", "sno_next()", "sno_min(flake_watermark())")])  # fmt: skip
def test_a_key_of_a_domain_is_taken(server, db, kind, default, watermark):
    """docs/how-to/json.md does this. The position may have the same domain, or another one."""
    server.sql(f"""
        CREATE DOMAIN public_id AS {kind}; CREATE DOMAIN own_id AS public_id; CREATE DOMAIN place AS {kind};
        CREATE TABLE lines (id own_id PRIMARY KEY DEFAULT {default}, n int); INSERT INTO lines (n) SELECT generate_series(1, 5);
        DROP TABLE positions; CREATE TABLE positions (name text, source regclass, last place, PRIMARY KEY (name, source));
        INSERT INTO positions VALUES ('mailer', 'lines')""")
    wait_until_complete(server, "lines", watermark)
    take = "SELECT * FROM flake_take(NULL::lines, 'positions', 'mailer', 3)"
    assert [events(db, take) for _ in range(3)] == [[1, 2, 3], [4, 5], []]


def test_a_key_that_its_domain_makes_is_taken(server, db):
    server.sql("""CREATE DOMAIN made AS bigint DEFAULT flake_next('twitter'); CREATE TABLE lines (id made PRIMARY KEY, n int);
                  CREATE TABLE more (PRIMARY KEY (id)) INHERITS (lines);
                  INSERT INTO lines (n) VALUES (1), (2); INSERT INTO more (n) VALUES (3);
                  INSERT INTO positions VALUES ('mailer', 'lines')""")
    wait_until_complete(server, "lines")
    take = "SELECT * FROM flake_take(NULL::lines, 'positions', 'mailer', 3)"
    assert events(db, take) == [1, 2, 3]
    server.sql("ALTER TABLE more ALTER id SET DEFAULT flake_next('instagram')")
    refused(db, "55000", take)


def test_it_can_be_called_in_any_place_of_a_query(db):
    assert events(db, "SELECT (flake_take(NULL::outbox, 'positions', 'mailer', 3)).event") == [1, 2, 3]
    db.execute("UPDATE positions SET last = NULL")
    below = "SELECT (r).event FROM (SELECT flake_take(NULL::outbox, 'positions', 'mailer', 3) OFFSET 0) q(r)"
    assert events(db, below) == [1, 2, 3]
    joined = "SELECT o.event FROM outbox o JOIN flake_take(NULL::outbox, 'positions', 'mailer', 3) USING (id) ORDER BY id"
    assert events(db, joined) == [4, 5, 6]
    db.execute("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT event FROM flake_take(NULL::outbox, 'positions', 'mailer', 3)")
    assert events(db, "FETCH 2 FROM c") == [7, 8]
    assert events(db, "FETCH BACKWARD 1 FROM c") == [7]
    db.execute("COMMIT")
    assert events(db) == [10]


@pytest.mark.parametrize("kind", ["PARTITION BY HASH (id)", "INHERITS (base)"])
def test_rows_of_partitions_and_children_are_taken(server, db, kind):
    """A partition may have its columns in another order."""
    join = "ATTACH PARTITION part FOR VALUES WITH (MODULUS 1, REMAINDER 0)"
    server.sql(f"""
        CREATE TABLE base (); CREATE TABLE log (id bigint DEFAULT flake_next('twitter'), event int) {kind};
        CREATE UNIQUE INDEX ON log (id);
        CREATE TABLE part (event int, id bigint NOT NULL DEFAULT flake_next('twitter'), gone int); ALTER TABLE part DROP gone;
        {f"ALTER TABLE log {join}" if "HASH" in kind else "ALTER TABLE part INHERIT log"};
        INSERT INTO log (event) SELECT generate_series(1, 5); INSERT INTO part (event) SELECT generate_series(6, 9);
        INSERT INTO positions VALUES ('mailer', 'log')""")
    wait_until_complete(server, "log")
    assert events(db, "SELECT * FROM flake_take(NULL::log, 'positions', 'mailer', 7)") == list(range(1, 8))
    assert events(db, "SELECT * FROM flake_take(NULL::log, 'positions', 'mailer', 7)") == [8, 9]


def test_more_rows_than_fit_in_memory_are_taken(server, db):
    db.execute("INSERT INTO outbox (event) SELECT repeat('x', 1000) || n FROM generate_series(1, 20000) n")
    wait_until_complete(server)
    db.execute("SET work_mem = '64kB'")
    before = peak_memory(db)
    plan = db.execute("EXPLAIN (ANALYZE, BUFFERS) " + TAKE.replace("100", "2147483647")).fetchall()
    assert "temp read=" in str(plan)
    assert peak_memory(db) - before < 10, "the rows take 20 MB"
    assert db.execute(LAST).fetchone() == db.execute("SELECT max(id) FROM outbox").fetchone()
    assert events(db) == []


def test_a_consumer_can_begin_with_new_rows(server, db):
    db.execute("""INSERT INTO positions SELECT 'auditor', 'outbox', max(id) FROM outbox
                  WHERE id < flake_min(flake_watermark(), 'twitter')""")
    take = TAKE.replace("mailer", "auditor")
    assert events(db, take) == []
    db.execute("INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(server)
    assert events(db, take) == [11]


# Transactions.


def test_the_position_and_the_consumers_work_commit_together(server, db):
    db.execute("BEGIN")
    assert events(db, TAKE.replace("100", "4")) == [1, 2, 3, 4]
    assert events(db, TAKE.replace("100", "1")) == [5]
    db.execute("SAVEPOINT a")
    assert events(db, TAKE.replace("100", "1")) == [6]
    db.execute("ROLLBACK TO a")
    assert events(db, TAKE.replace("100", "1")) == [6]
    db.execute("ROLLBACK")
    db.execute("BEGIN")
    assert events(db) == list(range(1, 11))
    db.execute("COMMIT")
    assert events(db) == []


def test_an_empty_result_writes_nothing_and_waits_for_nobody(server, db):
    events(db)
    db.execute("BEGIN")
    assert events(db) == []
    assert db.execute("SELECT pg_current_xact_id_if_assigned()").fetchone() == (None,)
    with server.session() as other:
        other.execute("SET lock_timeout = '5s'")
        other.execute("SELECT FROM positions FOR UPDATE")
        assert events(other) == []
    db.execute("COMMIT")


def test_other_consumers_do_not_wait(server, db):
    db.execute("INSERT INTO positions VALUES ('auditor', 'outbox')")
    db.execute("BEGIN")
    events(db)
    with server.session() as other:
        other.execute("SET lock_timeout = '5s'")
        assert events(other, TAKE.replace("mailer", "auditor")) == list(range(1, 11))
    db.execute("COMMIT")


# Each row: the statements of another session's transaction while a consumer waits for its end, its end, and the events that the
# consumer gets then, or its error.
ROWS, TAKES = list(range(1, 11)), TAKE.replace("100", "6")
CHANGED = "columns of table public.outbox have changed while the call waited"
MEANWHILE = {
    "the consumer's other session takes rows": (TAKES, "COMMIT", [7, 8, 9, 10]),
    "the consumer's other session takes rows, rolled back": (TAKES, "ROLLBACK", ROWS),
    "the consumer is canceled": (TAKES, None, psycopg.errors.QueryCanceled),
    "the position is dropped": ("DELETE FROM positions", "COMMIT", psycopg.errors.UndefinedObject),
    "the table is rewritten": ("ALTER TABLE outbox SET UNLOGGED", "COMMIT", ROWS),
    "the table is rewritten with another type": ("ALTER TABLE outbox ALTER event TYPE varchar(10)", "COMMIT", ROWS),
    "the table is filled again": ("CREATE TEMP TABLE was AS TABLE outbox; TRUNCATE outbox; INSERT INTO outbox TABLE was",
                                  "COMMIT", ROWS),
    "a column is added": ("ALTER TABLE outbox ADD more int", "COMMIT", psycopg.errors.SerializationFailure),
    "a column is dropped": ("ALTER TABLE outbox DROP event", "COMMIT", psycopg.errors.SerializationFailure),
    "row security comes": ("ALTER TABLE outbox ENABLE ROW LEVEL SECURITY", "COMMIT", psycopg.errors.InsufficientPrivilege),
}  # fmt: skip


@pytest.mark.parametrize("change", MEANWHILE)
def test_what_another_session_does_while_a_call_waits(server, db, change):
    """The consumer has called before, so it knows the row type: it does not look the type up under a lock of the table."""
    statements, end, expected = MEANWHILE[change]
    with role(server) as consumer:
        db.execute("GRANT SELECT ON outbox TO consumer; GRANT SELECT, UPDATE ON positions TO consumer")
        take = TAKE.replace("*", "event") if "rewritten" in change or "filled" in change else TAKE
        assert events(consumer, take) == ROWS
        db.execute("UPDATE positions SET last = NULL")
        db.execute(f"BEGIN; {statements}")
        waiting = Waiting(server, consumer, lambda consumer: events(consumer, take))
        if end is None:
            consumer.cancel()
        else:
            db.execute(end)
        if isinstance(expected, list):
            assert waiting.end() == expected
            return
        error = pytest.raises(expected, waiting.end).value
        db.execute("COMMIT")
        if expected is psycopg.errors.SerializationFailure:
            assert error.diag.message_primary == CHANGED and "again" in error.diag.message_hint
            assert len(consumer.execute(TAKE).fetchall()) == 10
        elif expected is psycopg.errors.InsufficientPrivilege:
            assert "row security" in str(error) and db.execute(LAST).fetchone() == (None,)
        elif expected is psycopg.errors.QueryCanceled:
            assert events(consumer) == [7, 8, 9, 10]


def test_rows_of_a_partition_that_comes_meanwhile_are_taken(server, db):
    """The new partition's row is below a row of a partition that the call knows."""
    server.sql("""CREATE TABLE log (id bigint DEFAULT flake_next('twitter'), event int, PRIMARY KEY (id, event))
                      PARTITION BY LIST (event);
                  CREATE TABLE log1 PARTITION OF log FOR VALUES IN (1);
                  INSERT INTO log (event) SELECT 1 FROM generate_series(1, 9);
                  INSERT INTO positions VALUES ('mailer', 'log')""")
    wait_until_complete(server, "log")
    take = "SELECT * FROM flake_take(NULL::log, 'positions', 'mailer', {})"
    with server.session() as other, server.session() as writer:
        assert [events(other, take.format(1)) for _ in range(8)] == [[1]] * 8
        db.execute("BEGIN; SELECT FROM positions WHERE source = 'log'::regclass FOR UPDATE")
        writer.execute("BEGIN")
        id, = writer.execute("SELECT flake_next('twitter')").fetchone()
        server.sql("INSERT INTO log (event) VALUES (1)")
        waiting = Waiting(server, other, lambda other: events(other, take.format(100)))
        server.sql("CREATE TABLE log2 (LIKE log INCLUDING ALL); ALTER TABLE log ATTACH PARTITION log2 FOR VALUES IN (2)")
        writer.execute("INSERT INTO log VALUES (%s, 2)", (id,))
        writer.execute("COMMIT")
        wait_until_complete(server, "log")
        db.execute("COMMIT")
        assert waiting.end() == [1, 2, 1]


def test_another_table_that_gets_the_name_meanwhile_is_not_read(server, db):
    """A schema can be renamed while a consumer waits for its turn."""
    server.sql("""CREATE SCHEMA a; ALTER TABLE outbox SET SCHEMA a""")
    take = TAKE.replace("outbox", "a.outbox")
    with server.session() as other:
        db.execute("BEGIN")
        assert events(db, take.replace("100", "1")) == [1]
        waiting = Waiting(server, other, lambda other: events(other, take))
        server.sql("""ALTER SCHEMA a RENAME TO b; CREATE SCHEMA a;
                      CREATE TABLE a.outbox (small smallint, id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
                      INSERT INTO a.outbox DEFAULT VALUES; SELECT pg_sleep(0.01)""")
        server.sql("SELECT pg_sleep(0.01)")
        db.execute("COMMIT")
        with pytest.raises(psycopg.errors.WrongObjectType):
            waiting.end()
    assert events(db, take.replace("a.outbox", "b.outbox")) == list(range(2, 11))
    server.sql("DROP SCHEMA a, b CASCADE")


def test_a_function_whose_snapshot_is_older_loses_no_row(server, db):
    """The function has waited for the inserting transaction, which its statement's snapshot does not see."""
    server.sql("""
        CREATE FUNCTION late() RETURNS SETOF outbox STABLE LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(1);
            RETURN QUERY SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100);
        END $$""")
    events(db)
    with server.session() as writer:
        writer.execute("BEGIN; SELECT pg_advisory_xact_lock(1); INSERT INTO outbox (event) VALUES (11)")
        waiting = Waiting(server, db, lambda db: events(db, "SELECT * FROM late()"))
        writer.execute("COMMIT")
        found = waiting.end()
    wait_until_complete(server)
    assert found + events(db) == [11]


# The meaning of a position.


def test_a_position_belongs_to_a_table(server, db):
    server.sql("CREATE TABLE other (LIKE outbox INCLUDING ALL); INSERT INTO other DEFAULT VALUES")
    wait_until_complete(server, "other")
    error = refused(db, "42704", TAKE.replace("outbox", "other"))
    assert error.diag.message_primary == 'consumer "mailer" has no position for table public.other in public.positions'
    assert events(db) == list(range(1, 11))


def test_a_position_above_a_watermark_that_is_held_takes_nothing(server, db):
    """Watermarks can go back a little, because a transaction holds them from just before it has read what was announced."""
    with server.session() as writer:
        writer.execute("BEGIN; INSERT INTO outbox (event) VALUES (11)")
        db.execute("UPDATE positions SET last = flake_min(clock_timestamp(), 'twitter')")
        assert events(db) == []
        writer.execute("ROLLBACK")


def test_a_position_ahead_of_the_clock_is_an_error(db):
    """Rows below the position would be skipped."""
    db.execute("UPDATE positions SET last = flake_min(now() + interval '1 minute', 'twitter')")
    refused(db, "55000")
    db.execute("UPDATE positions SET last = NULL; ALTER TABLE outbox ALTER id SET DEFAULT flake_next('instagram')")
    db.execute("UPDATE positions SET last = 2 * (SELECT max(id) FROM outbox)")
    refused(db, "55000")


@pytest.mark.parametrize("kind", ["text", "name", "bigint", None])
def test_sources_of_another_type_are_refused(db, kind):
    change = f"ALTER source TYPE {kind} USING source::oid::{kind}" if kind else "DROP source"
    db.execute(f"ALTER TABLE positions {change}")
    error = refused(db, "42804")
    assert error.diag.message_primary == 'column "source" of positions in public.positions is missing, or has the wrong type'
    assert "source regclass" in error.diag.message_hint


@pytest.mark.parametrize("kind", ["float8", "integer", "numeric", "text", "sno", None])
def test_positions_of_another_type_are_refused(db, kind):
    """A float would be rounded up, past some rows."""
    db.execute("ALTER TABLE positions DROP last")
    if kind:
        db.execute(f"ALTER TABLE positions ADD last {kind}")
    assert "last bigint" in refused(db, "42804").diag.message_hint


def test_a_restored_position_continues(server, own_servers, tmp_path, db):
    """The restored position continues where it was."""
    assert events(db, TAKE.replace("100", "4")) == [1, 2, 3, 4]
    server.run("pg_dump", "-f", tmp_path / "dump.sql")
    restored = own_servers(extension=False)
    restored.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", tmp_path / "dump.sql")
    restored.sql("INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(restored)
    with restored.connect() as there:
        assert events(there) == [5, 6, 7, 8, 9, 10, 11]


@pytest.mark.matrix
def test_a_position_continues_after_pg_upgrade(own_servers):
    old = own_servers()
    old.sql(f"""{POSITIONS}; CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text);
                INSERT INTO outbox (event) SELECT generate_series(1, 10); INSERT INTO positions VALUES ('mailer', 'outbox')""")
    wait_until_complete(old)
    with old.connect() as there:
        assert events(there, TAKE.replace("100", "4")) == [1, 2, 3, 4]
    old.stop()
    # The new server has no checksums, which are the default since version 18.
    disable = as_server(bindir() / "pg_checksums", "--disable", "-D", old.dir / "data")
    subprocess.run(disable, check=False, capture_output=True)
    new = own_servers(upgrade_of=old)
    new.launch()
    new.sql("INSERT INTO outbox (event) VALUES (11)")
    wait_until_complete(new)
    with new.connect() as there:
        assert events(there) == [5, 6, 7, 8, 9, 10, 11]
