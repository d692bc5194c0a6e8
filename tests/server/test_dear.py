"""Objects that any role can create and that calls of other roles read: they must not make these calls slow or large.
flake_check and flake_drop_layout read all expressions that call flake, and flake_take reads the defaults of a table's
relatives."""

import time

import psycopg
import pytest

# In bytes, and in seconds.
MOST, LONGEST = 100_000_000, 30
# Eight bytes of a constant take about 24 bytes in the tree of an expression.
LONG, SHORT_ENOUGH = 10_000_000, 320_000


@pytest.fixture(scope="module")
def server(servers):
    server = servers("fsync=off", "max_wal_size=4GB")
    server.sql("CREATE ROLE joe LOGIN")
    return server


def memory(db, name):
    """Memory of a session in bytes: VmRSS is the current amount, VmHWM the largest so far."""
    status = db.execute("SELECT pg_read_file('/proc/self/status')").fetchone()[0]
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(name + ":"))


def bounded(server, act):
    """Runs an act in a session of its own, and checks its memory and its time."""
    with server.connect() as db:
        before, begun = memory(db, "VmRSS"), time.monotonic()
        found = act(db)
        assert memory(db, "VmHWM") - before < MOST and time.monotonic() - begun < LONGEST
        return found


def layouts(db):
    return next(row[1:3] for row in db.execute("SELECT * FROM flake_check()").fetchall() if row[0] == "layouts")


def make(db, statement, times, length):
    """Runs a statement with its number and a long text."""
    db.execute(f"DO $$ BEGIN FOR n IN 1..{times} LOOP EXECUTE format('{statement}', n, repeat('a', {length})); END LOOP; END $$")


@pytest.mark.matrix
def test_long_expressions_of_others_are_not_read(server):
    server.sql("SELECT flake_create_layout('mine', '{\"like\": \"twitter\"}')")
    with server.connect(user="joe") as joe:
        make(joe, "CREATE TEMP TABLE big%s (t text DEFAULT flake_explain(1, ''twitter'') || %L)", 8, LONG)
        make(joe, "CREATE TEMP VIEW v%s AS SELECT flake_timestamp(1) AS at, %L::text AS t", 2, LONG)
        ok, detail = bounded(server, layouts)
        assert ok is None and detail.count(".big") == 8 and detail.count(".v") == 2
        drop = "SELECT flake_drop_layout('mine')"
        error = bounded(server, lambda db: pytest.raises(psycopg.errors.DependentObjectsStillExist, db.execute, drop).value)
        assert "(perhaps; its expression is too long or too deep to read)" in error.diag.message_detail


def test_deep_expressions_are_not_read(server):
    """Where reading takes more of the stack than making has taken, any role can make an expression that no session can read."""
    server.sql("SELECT flake_create_layout('deep', '{\"like\": \"twitter\"}')")
    with server.connect() as db:
        db.execute("SET max_stack_depth = '7MB'")
        db.execute(f"CREATE TEMP VIEW deep AS SELECT flake_timestamp(1) AS at, 1{'::int::bigint' * 2000} AS n")
        db.execute("SET max_stack_depth = '500kB'")
        ok, detail = layouts(db)
        assert ok is None and detail.count("rule _RETURN on view deep") == 1
        drop = "SELECT flake_drop_layout('deep')"
        error = pytest.raises(psycopg.errors.DependentObjectsStillExist, db.execute, drop).value
        assert "view deep (perhaps; its expression is too long or too deep to read)" in error.diag.message_detail


@pytest.mark.matrix
def test_many_expressions_of_others_are_not_all_read(server):
    """Each expression is short enough. Expressions of ordinary tables are much shorter, and are read first."""
    server.sql("CREATE TABLE small (id integer DEFAULT flake_next('twitter'))")
    with server.connect(user="joe") as joe:
        make(joe, "CREATE TEMP TABLE many%s (t text DEFAULT flake_explain(1, ''twitter'') || %L)", 110, SHORT_ENOUGH)
        assert bounded(server, layouts) == (
            False, "The type of column id of table small is too small for IDs of twitter.",
        )  # fmt: skip
        server.sql("ALTER TABLE small ALTER id TYPE bigint")
        ok, detail = bounded(server, layouts)
        assert ok is None and "It is not known which layouts these use: default value for column t of table " in detail
    server.sql("DROP TABLE small")


def test_a_default_of_a_child_is_not_called(server):
    """The default does not show the layout of its IDs, and is not called to find out."""
    server.sql("""
        CREATE TABLE positions (name text, source regclass, last bigint, PRIMARY KEY (name, source));
        CREATE TABLE x (id bigint PRIMARY KEY DEFAULT flake_next('twitter')); INSERT INTO positions VALUES ('mailer', 'x');
        CREATE TABLE x1 () INHERITS (x)""")
    default = "CASE %s + length(%L) WHEN 0 THEN 1 ELSE flake_next(''twitter'') END"
    with server.connect() as db:
        make(db, f"ALTER TABLE x1 ALTER id SET DEFAULT {default}", 1, LONG)
    take = "SELECT * FROM flake_take(NULL::x, 'positions', 'mailer', 1)"
    error = bounded(server, lambda db: pytest.raises(psycopg.Error, db.execute, take).value)
    assert error.diag.message_primary == "table public.x has no key to take its rows by"
