"""The dangers of a STABLE default: no statement but COPY calls the twins of flake_next, also where it runs inside of COPY."""

import psycopg
import pytest

from copying import TRACKED, called_by_copy, counted, distinct, in_schema, load

ROWS = 1000
# Adds a column to a table of many rows. Its values have to differ.
ADD = "ALTER TABLE filled ADD COLUMN added {}"
COLUMNS = ["bigint DEFAULT flake_next('twitter')", "sno DEFAULT sno_next()", "own_id", "own_id NOT NULL DEFAULT flake_next('si')"]
ADD_ID = ADD.format(COLUMNS[0])
ADDS = f"LANGUAGE plpgsql AS $$ BEGIN {ADD_ID}; RETURN NULL; END $$"
# Statements that run the above at different times of COPY, which calls the twin for each row.
INSIDE = {
    "in a trigger before COPY":
        f"CREATE FUNCTION adds() RETURNS trigger {ADDS}; CREATE TRIGGER adds BEFORE INSERT ON rows EXECUTE FUNCTION adds()",
    "in a trigger after COPY":
        f"CREATE FUNCTION adds() RETURNS trigger {ADDS}; CREATE TRIGGER adds AFTER INSERT ON rows EXECUTE FUNCTION adds()",
    "in a trigger for each row":
        f"CREATE FUNCTION adds() RETURNS trigger {ADDS}; "
        "CREATE TRIGGER adds AFTER INSERT ON rows FOR EACH ROW WHEN (NEW.n = 3) EXECUTE FUNCTION adds()",
    "in a trigger of the commit":
        f"CREATE FUNCTION adds() RETURNS trigger {ADDS}; CREATE CONSTRAINT TRIGGER adds AFTER INSERT ON rows "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.n = 3) EXECUTE FUNCTION adds()",
    "in a function of a default":
        f"CREATE FUNCTION adds() RETURNS int {ADDS};"
        "ALTER TABLE rows ADD COLUMN other int DEFAULT CASE last() WHEN 3 THEN adds() END",
    # COPY has this evaluated where it plans its defaults.
    "in an immutable function of a default":
        f"CREATE FUNCTION adds() RETURNS int {ADDS}; "
        "CREATE FUNCTION constant() RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN adds(); END'; "
        "ALTER TABLE rows ALTER id SET DEFAULT COALESCE(constant(), flake_next('twitter'))",
    "in a domain's check":
        f"CREATE FUNCTION adds() RETURNS int {ADDS}; CREATE DOMAIN checked AS int CHECK (VALUE <> 3 OR adds() IS NULL); "
        "ALTER TABLE rows ALTER n TYPE checked",
    "in an event trigger":
        f"CREATE FUNCTION adds() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN {ADD_ID}; END $$; "
        "CREATE FUNCTION makes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN CREATE SEQUENCE any_ddl; RETURN NULL; END'; "
        "CREATE TRIGGER makes BEFORE INSERT ON rows EXECUTE FUNCTION makes(); "
        "CREATE EVENT TRIGGER adds ON ddl_command_end WHEN TAG IN ('CREATE SEQUENCE') EXECUTE FUNCTION adds()",
}  # fmt: skip


@pytest.fixture(scope="module")
def server(servers):
    server = servers(TRACKED)
    server.sql("CREATE DOMAIN own_id AS bigint DEFAULT flake_next('twitter')")
    return server


@pytest.fixture
def db(server):
    for db in in_schema(server):
        db.execute(f"""
            CREATE TABLE filled AS SELECT n FROM generate_series(1, {ROWS}) n;
            CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), n int)""")
        yield db


def all_differ(db):
    """Each row has a value of its own, which is stored in it."""
    missing = "SELECT atthasmissing FROM pg_attribute WHERE attrelid = 'filled'::regclass AND attname = 'added'"
    stored = db.execute(missing).fetchone()
    return stored == (False,) and distinct(db, "filled", "added") == (ROWS, ROWS)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_that_is_added_differs_in_each_row(db, column):
    with counted(db) as calls:
        db.execute(ADD.format(column))
    assert calls == {"plain": ROWS, "twin": 0} and all_differ(db)


@pytest.mark.parametrize("place", INSIDE)
def test_a_column_that_is_added_during_copy_differs_in_each_row(db, place):
    db.execute("CREATE FUNCTION last() RETURNS int LANGUAGE sql AS 'SELECT count(*)::int FROM rows'")
    db.execute(INSIDE[place])
    # A trigger or a function may alter a table while another one is loaded.
    rows = 5
    with db.transaction():
        calls = called_by_copy(db, "rows", rows)
        db.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert distinct(db, "rows") == (rows, rows) and all_differ(db)
    assert calls["twin"] == rows
    if "commit" not in place:
        assert calls["plain"] == ROWS


def test_a_column_that_is_added_beside_copy_in_a_function_differs_in_each_row(server, db):
    server.write("numbers", "1\n2\n3\n")
    with counted(db) as calls:
        db.execute(f"DO $$ BEGIN COPY rows (n) FROM 'numbers'; {ADD_ID}; COPY rows (n) FROM 'numbers'; END $$")
    assert calls == {"plain": ROWS, "twin": 6} and all_differ(db)


# COPY of a query has a memory context of the same name.

MAKE = "flake_next('twitter')"
ONE_EACH = [
    f"SELECT {MAKE} FROM filled ORDER BY n",
    f"SELECT DISTINCT {MAKE} FROM filled",
    "SELECT wrapped() FROM filled",
    "INSERT INTO rows (n) SELECT n FROM filled RETURNING id",
    "UPDATE rows SET id = DEFAULT RETURNING id",
]
QUERIES = [
    *ONE_EACH,
    "SELECT n, flake_next('si') + n FROM filled ORDER BY n",
    f"SELECT n FROM filled WHERE {MAKE} > n",
    f"SELECT DISTINCT ON ({MAKE}) n FROM filled",
    f"SELECT count(*), {MAKE} FROM filled GROUP BY {MAKE}",
    f"SELECT n FROM filled GROUP BY n HAVING {MAKE} > n",
    f"SELECT n FROM filled ORDER BY {MAKE}",
    f"SELECT n FROM filled LIMIT {MAKE}",
    f"SELECT n FROM filled OFFSET {MAKE} % 2",
    f"SELECT {MAKE}, count({MAKE}) OVER (PARTITION BY n % 2 ORDER BY n) FROM filled",
    f"SELECT lag({MAKE}, 1, {MAKE}) OVER w FROM filled WINDOW w AS (PARTITION BY {MAKE} ORDER BY n)",
    f"SELECT array_agg({MAKE} ORDER BY {MAKE}) FILTER (WHERE {MAKE} > 0) FROM filled",
    f"SELECT a.n FROM filled a JOIN filled b ON a.n = b.n AND {MAKE} > b.n",
    f"SELECT i FROM filled, LATERAL (SELECT {MAKE} + n OFFSET 0) l(i)",
    f"SELECT i FROM generate_series(1, 1000), {MAKE} i",
    f"SELECT i FROM filled, generate_series(1, {MAKE} % 2 + 1) i",
    f"VALUES ({MAKE}), ({MAKE})",
    f"WITH made AS MATERIALIZED (SELECT {MAKE} FROM filled) SELECT * FROM made",
    f"WITH RECURSIVE made(i, n) AS (SELECT {MAKE}, 1 UNION ALL SELECT {MAKE}, n + 1 FROM made WHERE n < 100) SELECT i FROM made",
    f"SELECT (SELECT {MAKE} + 0 * filled.n) FROM filled",
    f"SELECT CASE WHEN {MAKE} > 0 THEN {MAKE} ELSE 0 END FROM filled",
    f"SELECT {MAKE} FROM filled UNION SELECT {MAKE} FROM filled",
    f"SELECT n FROM filled TABLESAMPLE bernoulli ({MAKE} % 100)",
    f"SELECT n FROM filled WHERE n IN (SELECT {MAKE} % 10)",
    f"SELECT {MAKE}::own_id, sno_next(), sno_next(1, 1), flake_next(repeat('si', 1)) FROM filled",
    f"DELETE FROM rows WHERE {MAKE} > 0 RETURNING {MAKE}",
    f"SELECT {MAKE} FROM parted WHERE day = 1 + 0 * {MAKE}",
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("query", QUERIES)
def test_copy_of_a_query_calls_no_twin(db, query):
    db.execute("""
        INSERT INTO rows (n) VALUES (1), (2);
        CREATE FUNCTION wrapped() RETURNS bigint LANGUAGE sql AS 'SELECT flake_next(''twitter'')';
        CREATE TABLE parted (day int, n int) PARTITION BY RANGE (day, (n % 10));
        CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0, 0) TO (10, 0);
        CREATE TABLE rest PARTITION OF parted DEFAULT; CREATE INDEX ON part ((day + n));
        CREATE STATISTICS s ON (day + n), n FROM part;
        INSERT INTO parted SELECT n, n FROM filled; ANALYZE""")
    with counted(db) as calls, db.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT") as stream:
        printed = list(stream.rows())
    assert calls["twin"] == 0 and calls["plain"] > 0
    if query in ONE_EACH:
        assert len(set(printed)) == len(printed) > 1


# Other expressions that PostgreSQL plans by themselves.


def test_what_must_be_immutable_is_still_refused(db):
    for statement in [
        f"CREATE INDEX ON filled (({MAKE}))",
        f"CREATE INDEX ON filled (n) WHERE n > {MAKE}",
        f"ALTER TABLE filled ADD COLUMN made bigint GENERATED ALWAYS AS ({MAKE}) STORED",
        f"CREATE TABLE parted (n int) PARTITION BY RANGE (({MAKE}))",
    ]:
        assert pytest.raises(psycopg.Error, db.execute, statement).value.sqlstate in ("42P17", "42P16"), statement


def test_other_expressions_of_tables_are_evaluated_as_before(db):
    with counted(db) as calls:
        db.execute(f"""
            ALTER TABLE filled ALTER n TYPE bigint USING {MAKE};
            CREATE TABLE parted (id bigint) PARTITION BY RANGE (id);
            CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO ({MAKE});
            ALTER TABLE rows ADD CHECK (id <= {MAKE});
            CREATE DOMAIN below AS bigint CHECK (VALUE <= {MAKE});
            CREATE TABLE checked (id below DEFAULT {MAKE}, n int)""")
    assert calls == {"plain": ROWS + 1, "twin": 0}
    assert distinct(db, "filled", "n") == (ROWS, ROWS)
    # The checks call flake_next, and the defaults the twin.
    assert called_by_copy(db, "rows", 5) == {"plain": 5, "twin": 5}
    assert called_by_copy(db, "checked", 5) == {"plain": 5, "twin": 5}


def test_a_domain_that_copy_uses_first_keeps_its_check(server, db):
    """The session remembers the planned check of a domain."""
    db.execute(f"CREATE DOMAIN below AS bigint CHECK (VALUE <= {MAKE}); CREATE TABLE checked (id below DEFAULT {MAKE}, n int)")
    with server.session(options="-c search_path=test,public") as other:
        assert called_by_copy(other, "checked", 5) == {"plain": 5, "twin": 5}
        with counted(other) as calls:
            other.execute("INSERT INTO checked (n) VALUES (6)")
        assert calls == {"plain": 2, "twin": 0}


def test_a_condition_of_copy_is_evaluated_row_by_row(db):
    with counted(db) as calls:
        load(db, f"COPY rows (n) FROM STDIN WHERE {MAKE} > n AND n < 4", range(1, 6))
    assert calls == {"plain": 5, "twin": 5} and distinct(db, "rows") == (3, 3)
