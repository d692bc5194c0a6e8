"""flake_convert beside other sessions: both wait for each other, and no ID is below a key."""

import contextlib
import os

import psycopg
import pytest

import pages
from conftest import ROOT
from test_convert import convert, described, insert, own_schema, refused
from waiting import Background, Waiting, wait_until

PAGE = ROOT / "docs/how-to/convert.md"
# How many rows get IDs of their time. `make soak` uses a million.
ROWS = int(os.environ.get("FLAKE_CONVERT_ROWS", "20000"))


@pytest.fixture
def db(server):
    with own_schema(server) as db:
        yield db


def test_it_gives_up_behind_a_long_query(server, db):
    """After lock_timeout, sessions that wait behind the conversion continue, and the table is unchanged."""
    db.execute("CREATE TABLE t (id bigserial PRIMARY KEY); INSERT INTO t SELECT FROM generate_series(1, 10)")
    db.execute("SET lock_timeout = '1s'")
    schema, = db.execute("SELECT current_schema").fetchone()
    before = described(db)
    with server.connect() as reader, server.connect() as writer:
        reader.execute(f"BEGIN; SELECT count(*) FROM {schema}.t")
        waiting = Waiting(server, db, convert)
        # The insert waits for the conversion only.
        writer.execute(f"INSERT INTO {schema}.t DEFAULT VALUES")
        pytest.raises(psycopg.errors.LockNotAvailable, waiting.end)
        reader.execute("COMMIT")
    assert described(db) == before
    first, _ = convert(db)
    assert insert(db) >= first


def test_the_greatest_key_is_looked_for_without_the_lock(server, db):
    """The error about the greatest key comes although the lock is not available."""
    db.execute("CREATE TABLE t (id bigint PRIMARY KEY); INSERT INTO t VALUES (4000000000000000000)")
    schema, = db.execute("SELECT current_schema").fetchone()
    with server.connect() as reader:
        reader.execute(f"BEGIN; SELECT count(*) FROM {schema}.t")
        refused(db, "55000", "Its greatest ID is 4000000000000000000", "instagram")


# Statements that another session commits while a conversion waits for its lock, and the refusals.
MEANWHILE = {
    "a key above the first ID": (
        "INSERT INTO {} VALUES (4000000000000000000)", ("Its greatest ID is 4000000000000000000", "instagram")),
    "another table of its name": (
        "ALTER TABLE {0} RENAME TO replaced; CREATE TABLE {0} (id bigint PRIMARY KEY)",
        ("was renamed meanwhile", "Call flake_convert again")),
    "a conversion": ("SELECT flake_convert('{}', 'twitter', force => true)", ("calls flake already", "DROP DEFAULT first")),
}  # fmt: skip


@pytest.mark.parametrize("act", MEANWHILE)
def test_it_looks_again_when_it_has_the_lock(server, db, act):
    """So no key is above the first ID, and no table is converted twice."""
    db.execute("CREATE TABLE t (id bigint PRIMARY KEY); SET lock_timeout = '30s'")
    schema, = db.execute("SELECT current_schema").fetchone()
    statement, refusal = MEANWHILE[act]
    with server.connect() as other:
        other.execute(f"SET lock_timeout = '30s'; BEGIN; {statement.format(f'{schema}.t')}")
        waiting = Waiting(server, db, lambda db: refused(db, "55000", *refusal))
        assert waiting.is_alive()
        other.execute("COMMIT")
        waiting.end()


def test_it_asks_again_whether_clients_may_choose_keys(server, db):
    db.execute("CREATE TABLE t (id bigint PRIMARY KEY); SET lock_timeout = '30s'")
    schema, = db.execute("SELECT current_schema").fetchone()
    with server.connect() as other:
        other.execute(f"BEGIN; ALTER TABLE {schema}.t ALTER id ADD GENERATED ALWAYS AS IDENTITY")
        waiting = Waiting(server, db, lambda db: db.execute("SELECT flake_convert('t', 'twitter')"))
        other.execute("COMMIT")
        error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, waiting.end).value.diag
    assert "GENERATED ALWAYS" in error.message_detail


@contextlib.contextmanager
def writing(server, statement):
    """Four sessions that repeat a statement, many times before what happens meanwhile and many times after. Yields how many
    times each did."""
    background, made = Background(), [0] * 4

    def writes(number):
        with server.connect() as writer:
            while not background.ends.is_set():
                writer.execute(statement)
                made[number] += 1

    for number in range(len(made)):
        background.add(writes, number)
    with background:
        wait_until(lambda: min(made) > 50)
        yield made
        before = list(made)
        wait_until(lambda: all(now > then + 50 for now, then in zip(made, before, strict=True)))


def test_rows_of_concurrent_inserts_are_numbered_before_and_ids_after(server, db):
    """Each row has a number of the sequence or an ID, and rows inserted after the switch have IDs above the first one."""
    db.execute("CREATE TABLE t (id bigserial PRIMARY KEY, was_converted boolean); CREATE TABLE first (id bigint)")
    schema, = db.execute("SELECT current_schema").fetchone()
    with writing(server, f"INSERT INTO {schema}.t (was_converted) VALUES (EXISTS (SELECT FROM {schema}.first))") as made:
        db.execute("BEGIN")
        first, _ = convert(db)
        db.execute(f"INSERT INTO first VALUES ({first}); COMMIT")
    counts = "count(*), count(*) FILTER (WHERE was_converted AND id < %s), count(*) FILTER (WHERE id >= %s)"
    rows = db.execute(f"SELECT {counts} FROM t", (first, first)).fetchone()
    assert rows[:2] == (sum(made), 0) and rows[2] > 200


def test_existing_rows_get_ids_of_their_time(server, db):
    """The page's query runs twice with the same result, while others insert. No ID repeats, and each lies in the tick of its
    row."""
    db.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp())")
    # Some ticks have many rows.
    at = "timestamptz '2019-01-01Z' + CASE WHEN n % 10 = 0 THEN n % 7 ELSE random() * 2e8 END * interval '1 s'"
    db.execute(f"INSERT INTO orders (created_at) SELECT {at} FROM generate_series(1, {ROWS}) n")
    schema, = db.execute("SELECT current_schema").fetchone()
    query = next(block for block in pages.recipe(PAGE, "IDs for rows that exist") if "CREATE TABLE order_ids" in block)
    query = query[query.index("CREATE TABLE") :].split(";")[0]
    with writing(server, f"INSERT INTO {schema}.orders DEFAULT VALUES"):
        first, _ = convert(db, "orders")
        for table in ["order_ids", "again"]:
            db.execute(query.replace("order_ids", table).replace(":first_id", str(first)))
    assert db.execute("SELECT count(*) FROM (TABLE order_ids EXCEPT ALL TABLE again) d").fetchone() == (0,)
    count, wrong = db.execute("""SELECT count(*), count(*) FILTER (
        WHERE flake_timestamp(new_id) <> date_trunc('milliseconds', created_at)
        OR new_id > flake_max(created_at)) FROM order_ids JOIN orders ON id = old_id""").fetchone()  # fmt: skip
    assert count >= ROWS and wrong == 0
    all_ids = f"SELECT new_id FROM order_ids UNION ALL SELECT id FROM orders WHERE id >= {first}"
    total, different = db.execute(f"SELECT count(*), count(DISTINCT new_id) FROM ({all_ids}) ids").fetchone()
    assert total == different > count
