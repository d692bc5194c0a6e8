"""The check "layouts" of flake_check: it finds columns that are read by another layout than their default makes IDs of."""

import pytest

# Objects that read the column orders.id by twitter, although its default makes IDs of snowflake, with the names that
# flake_check shows.
WRONG = {
    "rule _RETURN on view v": "CREATE VIEW v AS SELECT flake_timestamp(id) AS at FROM orders",
    "default value for column at of table orders":
        "ALTER TABLE orders ADD at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED",
    "index i": "CREATE INDEX i ON orders (flake_timestamp(id))",
    "index j": "CREATE INDEX j ON orders (item) WHERE id >= flake_min('2024-01-01Z')",
    "policy p on table orders": "CREATE POLICY p ON orders USING (flake_during(id, '[2024-01-01Z,)'))",
    "policy q on table orders": "CREATE POLICY q ON orders FOR INSERT WITH CHECK (flake_max('2024-01-01Z') < id)",
    "constraint c on table orders":
        "ALTER TABLE orders ADD CONSTRAINT c CHECK (flake_timestamp(id, layout => 'twitter') > '2011-01-01Z')",
    "trigger g on table orders": """CREATE TRIGGER g BEFORE UPDATE ON orders FOR EACH ROW
        WHEN (flake_timestamp(NEW.id) > '2024-01-01Z') EXECUTE FUNCTION suppress_redundant_updates_trigger()""",
    "statistics object s": "CREATE STATISTICS s ON (flake_timestamp(id)) FROM orders",
    "function f()":
        "CREATE FUNCTION f() RETURNS bigint BEGIN ATOMIC SELECT max(id) FROM orders WHERE id < flake_min(flake_horizon()); END",
    "function g()": "CREATE FUNCTION g() RETURNS text BEGIN ATOMIC SELECT flake_explain(id, 'si') FROM orders; END",
    "rule _RETURN on materialized view m":
        "CREATE MATERIALIZED VIEW m AS SELECT (flake_decode(id)).worker, flake_node(id, 'twitter'::varchar) FROM orders",
    "rule r on table orders":
        "CREATE RULE r AS ON DELETE TO orders WHERE flake_timestamp(OLD.id) > '2024-01-01Z' DO INSTEAD NOTHING",
    # Objects that read it through queries.
    "rule _RETURN on view of_query": "CREATE VIEW of_query AS SELECT flake_timestamp(n) FROM (SELECT 1, id AS n FROM orders) s",
    "rule _RETURN on view of_with":
        "CREATE VIEW of_with AS WITH a AS (SELECT id FROM orders) SELECT (SELECT flake_timestamp(a.id)) FROM a",
    "rule _RETURN on view of_recursive":
        """CREATE VIEW of_recursive AS WITH RECURSIVE a AS (SELECT id FROM orders UNION SELECT a.id FROM a)
           SELECT flake_timestamp(id) FROM a""",
    "rule _RETURN on view of_join":
        """CREATE VIEW of_join AS SELECT j.id FROM (orders JOIN legacy USING (item)) AS j (item, id, other)
           WHERE flake_timestamp(j.id) > now()""",
    "rule _RETURN on view of_group":
        "CREATE VIEW of_group AS SELECT flake_timestamp(id) AS at, id, count(*) FROM orders GROUP BY id",
    "rule _RETURN on view of_lateral":
        "CREATE VIEW of_lateral AS SELECT at FROM orders o, LATERAL (SELECT flake_timestamp(o.id) AS at) l",
    # Names that look like parts of a node tree.
    r'rule _RETURN on view ":args )"':
        """CREATE VIEW ":args )" AS WITH ":a" AS (SELECT 1 AS id), ":b" AS (SELECT id FROM orders)
           SELECT flake_timestamp(id) AS "{FUNCEXPR :args (" FROM ":b" """,
    "rule _RETURN on view of_backslash":
        r"""CREATE VIEW of_backslash AS WITH "\" AS (SELECT id FROM orders) SELECT flake_timestamp(id) FROM "\" """,
}  # fmt: skip

# Objects that read the column by its layout, or read another column, or read nothing that can be checked.
RIGHT = [
    """CREATE VIEW v AS SELECT flake_timestamp(id, 'snowflake'), flake_decode(l.other, 'discord')
       FROM orders JOIN legacy l USING (item)""",
    "CREATE INDEX ON orders (flake_timestamp(id, 'snowflake')) WHERE id > flake_min('2024-01-01Z', 'snowflake')",
    "CREATE VIEW v AS SELECT flake_timestamp(t.id) FROM tweets t JOIN orders o USING (item)",
    "CREATE VIEW v AS SELECT flake_timestamp(t.id) FROM tweets t WHERE EXISTS (SELECT FROM orders WHERE id > t.id)",
    "CREATE VIEW v AS SELECT flake_timestamp(id, 'leaf') FROM tweets",  # the same bits as twitter
    "CREATE VIEW v AS SELECT flake_timestamp(id, layout) FROM orders, (VALUES ('twitter')) AS v (layout)",
    "CREATE VIEW v AS SELECT flake_timestamp(-id), flake_to_text(id, 'tsid') FROM orders",
    "CREATE VIEW v AS SELECT id > 5 AND flake_min('2024-01-01Z') > 5 FROM orders",
    "CREATE FUNCTION f() RETURNS timestamptz LANGUAGE sql AS 'SELECT flake_timestamp(id) FROM orders'",
    "CREATE FUNCTION f(id bigint) RETURNS timestamptz RETURN flake_timestamp(id)",
    """CREATE VIEW ids AS SELECT id FROM orders; CREATE VIEW v AS SELECT flake_timestamp(id) FROM ids""",  # views of views
    "CREATE TABLE t (a numeric DEFAULT flake_next('twitter'), b double precision DEFAULT flake_next('si'))",
]

# Types that are too small, with the layout of the default.
SMALL = [("int4", "twitter"), ("int2", "si"), ("float4", "si"), ("float8", "twitter"), ("int2", "tiny")]


@pytest.fixture
def db(server):
    with server.connect(autocommit=False) as db:
        db.execute("""CREATE TABLE orders (item text, id bigint DEFAULT flake_next('snowflake'));
                      CREATE TABLE legacy (item text, other bigint DEFAULT flake_next('discord'));
                      CREATE TABLE tweets (item text, id bigint DEFAULT flake_next('twitter'))""")
        yield db
        db.rollback()


def layouts(db):
    return db.execute("SELECT ok, detail, hint FROM flake_check() WHERE name = 'layouts'").fetchone()


@pytest.mark.parametrize("object", WRONG)
def test_columns_read_by_another_layout_are_named(db, object):
    db.execute(WRONG[object])
    by = "si" if "'si'" in WRONG[object] else "twitter"
    ok, detail, hint = layouts(db)
    assert (ok, detail) == (
        False, f"The default of column id of table orders makes IDs of snowflake, but {object} reads them by {by}.",
    )  # fmt: skip
    assert "Name the layout" in hint
    db.execute("ALTER TABLE orders ALTER id DROP DEFAULT")
    assert layouts(db)[0], "nothing is known of the column's IDs"
    db.execute(f"ALTER TABLE orders ALTER id SET DEFAULT flake_next('{by}')")
    assert layouts(db)[0]


@pytest.mark.parametrize("other", RIGHT)
def test_columns_read_by_their_layout_are_not_named(db, other):
    db.execute(other)
    assert layouts(db) == (True, "No column is read by another layout than its default names.", None)


@pytest.mark.parametrize("kind, is_small", [
    ("int4", True), ("int2", True), ("narrow", True), ("bigint", False), ("wide", False)])  # fmt: skip
def test_references_that_are_too_small_are_named(db, kind, is_small):
    """PostgreSQL allows the foreign key, but refuses the first row that refers to an ID."""
    db.execute(f"""
        CREATE DOMAIN narrow AS integer; CREATE DOMAIN wide AS bigint; ALTER TABLE orders ADD UNIQUE (id);
        CREATE TABLE lines (n int, order_id {kind} REFERENCES orders (id))""")
    ok, detail, _ = layouts(db)
    named = "The type of column order_id of table lines is too small for the IDs of snowflake that it refers to."
    assert (ok, named in detail) == (not is_small, is_small)


def test_each_column_of_a_reference_is_looked_at(db):
    db.execute("""
        ALTER TABLE orders ADD UNIQUE (item, id);
        CREATE TABLE lines (item text, order_id int, FOREIGN KEY (item, order_id) REFERENCES orders (item, id))""")
    assert "The type of column order_id of table lines is too small for the IDs of snowflake" in layouts(db)[1]


def test_the_key_of_partitions_is_checked(db):
    db.execute("CREATE TABLE p (id bigint DEFAULT flake_next('si')) PARTITION BY RANGE (flake_timestamp(id))")
    assert layouts(db)[1] == "The default of column id of table p makes IDs of si, but table p reads them by twitter."


@pytest.mark.parametrize("type, layout", SMALL)
def test_types_that_are_too_small_are_named(db, type, layout):
    db.execute("""SELECT flake_create_layout('tiny', '{"epoch": "2024-01-01T00:00:00Z", "tick": "3600s", "fields": [
        {"name": "timestamp", "bits": 18, "role": "timestamp"}, {"name": "sequence", "bits": 10, "role": "sequence"}]}')""")
    db.execute(f"CREATE TABLE t (id {type} DEFAULT flake_next('{layout}'), fits int DEFAULT flake_next('tiny'))")
    assert layouts(db)[:2] == (
        False, f"The type of column id of table t is too small for the IDs of {layout} that its default makes.",
    )  # fmt: skip


def test_many_findings_are_cut_short(db):
    db.execute("".join(f"CREATE VIEW v{n:02} AS SELECT flake_timestamp(id) FROM orders;" for n in range(12)))
    _, detail, _ = layouts(db)
    assert detail.count("snowflake") == 10 and detail.endswith("There are 2 more.")


def test_it_reads_no_table_and_calls_nothing(server):
    """Another role has locked the table, and the caller may not read it."""
    server.sql("""CREATE ROLE asker LOGIN; CREATE FUNCTION bad() RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RAISE 'called'; END $$; CREATE TABLE mine (id bigint DEFAULT flake_next('si'), a bigint DEFAULT bad());
        CREATE VIEW reader AS SELECT flake_timestamp(id), bad() FROM mine""")
    with server.connect(autocommit=False) as owner, server.connect(user="asker") as db:
        owner.execute("LOCK TABLE mine, reader")
        db.execute("SET lock_timeout = '1s'")
        _, detail, _ = layouts(db)
    assert detail == (
        "The default of column id of table mine makes IDs of si, but rule _RETURN on view reader reads them by twitter."
    )


def test_a_deep_expression_is_read_without_recursion(db):
    """The expression is deeply nested."""
    db.execute("SET max_stack_depth = '7MB'")
    deep = "abs(" * 2000 + "extract(epoch FROM flake_timestamp(id))" + ")" * 2000
    db.execute(f"CREATE VIEW v AS SELECT {deep} FROM orders")
    assert not layouts(db)[0]
