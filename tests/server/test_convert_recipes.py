"""The recipes of docs/how-to/convert.md for existing rows, in each kind of session."""

import concurrent.futures
import re

import psycopg
import pytest

import pages
from conftest import ROOT
from session_kinds import every_session

PAGE = ROOT / "docs/how-to/convert.md"
FEW = "FROM generate_series(1, 10) n"


def statement(heading, beginning):
    """Returns the first statement with this beginning below a heading."""
    block = next(block for block in pages.recipe(PAGE, heading) if beginning in block)
    return re.match(r"(?:[^;$]|\$\$.*?\$\$)*", block[block.index(beginning) :], re.S)[0]


IDS = statement("IDs for rows that exist", "CREATE TABLE order_ids")
WITHOUT_ZONE = "created_at AT TIME ZONE 'UTC' AS at"


@pytest.fixture
def db(server, session):
    """A session in a schema of its own, unless the kind of session provides one."""
    server = server if session.is_plain else session.of(server, extension=True)
    with server.connect() as db:
        if session.is_plain:
            db.execute("DROP SCHEMA IF EXISTS recipe CASCADE; CREATE SCHEMA recipe; SET search_path = recipe, public")
        db.execute("SET lock_timeout = '2s'")
        yield db


@every_session
@pytest.mark.parametrize("kind, at", [("timestamptz", "created_at AS at"), ("timestamp", WITHOUT_ZONE)])
def test_rows_get_ids_of_their_times(db, session, kind, at):
    """Times are compared as UTC texts for each type of the column, because both time zones of the session could be wrong
    alike."""
    assert WITHOUT_ZONE in PAGE.read_text()
    db.execute(f'''CREATE TABLE "Posts" (id bigserial PRIMARY KEY, created_at {kind} NOT NULL);
        INSERT INTO "Posts" (created_at) SELECT (now() AT TIME ZONE 'UTC' - n * interval '1 hour'){
            " AT TIME ZONE 'UTC'" if kind == "timestamptz" else ""} {FEW}''')
    first, = db.execute("SELECT first_id FROM flake_convert('\"Posts\"', 'twitter')").fetchone()
    db.execute(IDS.replace("created_at AS at FROM orders", f'{at} FROM "Posts"').replace(":first_id", str(first)))
    there = "created_at" if kind == "timestamp" else "created_at AT TIME ZONE 'UTC'"
    form = "'YYYY-MM-DD HH24:MI:SS.MS'"
    same = f"to_char(flake_timestamp(new_id) AT TIME ZONE 'UTC', {form}) = to_char({there}, {form})"
    rows = f'SELECT count(*), count(*) FILTER (WHERE {same}) FROM order_ids JOIN "Posts" ON id = old_id'
    assert db.execute(rows).fetchone() == (10, 10)


@every_session
def test_a_late_row_gets_a_free_id_of_its_time(db, session):
    """The ID lies in the tick of the row. If the first ID is taken, it is another one."""
    db.execute(session.named(f"""CREATE TABLE orders (id bigint PRIMARY KEY, item text, created_at timestamptz);
        {statement("A late row", "CREATE FUNCTION insert_late")}"""))
    ids = []
    for _ in range(3):
        # The random numbers repeat, so all attempts but the first must try again.
        db.execute("SELECT setseed(0.5)")
        ids += db.execute("SELECT insert_late('salt', '2026-03-29 01:30:00.123Z')").fetchone()
    assert len(set(ids)) == 3
    same = "flake_timestamp(id) = '2026-03-29 01:30:00.123Z' AND created_at = flake_timestamp(id)"
    at = session.named(f"SELECT count(*) FROM orders WHERE {same}")
    assert db.execute(at).fetchone() == (3,)


def test_late_rows_of_one_tick_can_deadlock_in_long_transactions(server):
    """The page says so: two sessions take the same free IDs in another order."""
    with server.connect() as db:
        db.execute("DROP SCHEMA IF EXISTS recipe CASCADE; CREATE SCHEMA recipe; SET search_path = recipe, public")
        db.execute(f"""CREATE TABLE orders (id bigint PRIMARY KEY, item text, created_at timestamptz);
            {statement("A late row", "CREATE FUNCTION insert_late")}""")

    def late(db, seed):
        db.execute("SELECT setseed(%s)", (seed,))
        db.execute("SELECT insert_late('salt', '2026-03-29Z')")

    with server.connect() as one, server.connect() as other, concurrent.futures.ThreadPoolExecutor() as pool:
        for db, seed in (one, 0.1), (other, 0.2):
            db.execute("SET search_path = recipe, public; SET deadlock_timeout = '100ms'; BEGIN")
            late(db, seed)
        both = [pool.submit(late, one, 0.2), pool.submit(late, other, 0.1)]
        failed = [job.exception() for job in both if job.exception()]
        assert [type(error) for error in failed] == [psycopg.errors.DeadlockDetected]


@every_session
def test_keys_can_be_moved_to_a_narrower_layout(db, session):
    """Rows of twitter get keys of si with the same times and in the same order, which JavaScript does not round."""
    db.execute("CREATE TABLE notes (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    db.execute("INSERT INTO notes SELECT FROM generate_series(1, 5000)")
    first, = db.execute("SELECT flake_next('twitter')").fetchone()
    db.execute("ALTER TABLE notes ALTER id SET DEFAULT flake_next('si')")
    assert "`flake_timestamp(id, 'twitter') AS at` and `flake_min(at, 'si')`" in PAGE.read_text()
    query = IDS.replace("created_at AS at FROM orders", "flake_timestamp(id, 'twitter') AS at FROM notes")
    query = query.replace("flake_min(at)", "flake_min(at, 'si')")
    db.execute(query.replace(":first_id", str(first + 2**40)))
    wrong = """flake_timestamp(old_id) <> flake_timestamp(new_id, 'si') OR new_id >= 2::bigint ^ 53 OR new_id <= before"""
    assert db.execute(f"""SELECT count(*), count(*) FILTER (WHERE {wrong})
        FROM (SELECT *, lag(new_id, 1, 0) OVER (ORDER BY old_id) AS before FROM order_ids) o""").fetchone() == (5000, 0)


@every_session
def test_a_key_that_a_client_rounds_finds_no_row(db, session):
    """A program that keeps 53 bits does not delete the page's row, and the page's query shows such rows."""
    insert, = (block for block in pages.recipe(PAGE, "Look at these before") if "'a test'" in block)
    db.execute(session.named(insert.replace("CREATE EXTENSION flake;", "")))
    look, = (block for block in pages.recipe(PAGE, "Look at these before") if "BETWEEN" in block)
    (key, _), = db.execute(session.named(look)).fetchall()
    deleted = session.named("DELETE FROM orders WHERE id = %s")
    assert db.execute(deleted, (int(float(key)),)).rowcount == 0 and len(db.execute(session.named(look)).fetchall()) == 1
    assert db.execute(deleted, (key,)).rowcount == 1 and db.execute(session.named(look)).fetchall() == []


@every_session
def test_the_query_finds_columns_that_contain_keys(db, session):
    """Columns are found by their values, also among keys of other tables. Columns with a foreign key or other values are not
    found."""
    db.execute(session.named(statement("Look at these before", "CREATE FUNCTION columns_with_keys")))
    db.execute('''CREATE TABLE "Keys" ("The id" bigint PRIMARY KEY);
        INSERT INTO "Keys" SELECT 1000 + n FROM generate_series(1, 50) n;
        CREATE TABLE "Other" ("Object id" text, n smallint, far bigint, mixed varchar,
            none int, said varchar, ref int REFERENCES "Keys");
        INSERT INTO "Other" SELECT "The id", "The id", "The id" + 100, NULL, NULL, 'tea', "The id" FROM "Keys";
        INSERT INTO "Keys" VALUES (2125435522999532180);
        INSERT INTO "Other" (mixed) SELECT 5000000 + n FROM generate_series(1, 4000) n;
        INSERT INTO "Other" (mixed) SELECT '2125435522999532180' FROM generate_series(1, 1000)''')
    query = "SELECT of::text, name, type::text, share FROM columns_with_keys('\"Keys\"', 'The id') ORDER BY 2"
    found = db.execute(query).fetchall()
    shares = [share for *_, share in found]
    # Every fifth of the random values is a key.
    assert [row[:3] for row in found] == [('"Other"', name, type) for name, type in (
        ("Object id", "text"), ("mixed", "character varying"), ("n", "smallint"))]
    assert shares[0] == shares[2] == 1 and 0.1 < shares[1] < 0.3
    with pytest.raises(psycopg.errors.UndefinedTable):
        db.execute("SELECT * FROM columns_with_keys('nothing', 'id')")
