"""The check "layouts" of flake_check: it finds columns that are read by another layout than their default makes IDs of, or that
have no room for them."""

import re

import pytest

from conftest import ROOT

# Objects that read the column orders.id by twitter, although its default makes IDs of snowflake, with the names that
# flake_check shows.
WRONG = {
    "rule _RETURN on view v": "CREATE VIEW v AS SELECT flake_timestamp(id) AS at FROM orders",
    "default value for column at of table orders":
        "ALTER TABLE orders ADD at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED",
    "index i": "CREATE INDEX i ON orders (flake_timestamp(id))",
    "policy p on table orders": "CREATE POLICY p ON orders USING (flake_during(id, '[2024-01-01Z,)'))",
    "constraint c on table orders":
        "ALTER TABLE orders ADD CONSTRAINT c CHECK (flake_timestamp(id, layout => 'twitter') > '2011-01-01Z')",
    "trigger g on table orders": """CREATE TRIGGER g BEFORE UPDATE ON orders FOR EACH ROW
        WHEN (flake_timestamp(NEW.id) > '2024-01-01Z') EXECUTE FUNCTION suppress_redundant_updates_trigger()""",
    "statistics object s": "CREATE STATISTICS s ON (flake_timestamp(id)) FROM orders",
    "function g()": "CREATE FUNCTION g() RETURNS text BEGIN ATOMIC SELECT flake_explain(id, 'si') FROM orders; END",
    "rule _RETURN on materialized view m":
        "CREATE MATERIALIZED VIEW m AS SELECT (flake_decode(id)).worker, flake_node(id, 'twitter'::varchar) FROM orders",
    "rule r on table orders":
        "CREATE RULE r AS ON DELETE TO orders WHERE flake_timestamp(OLD.id) > '2024-01-01Z' DO INSTEAD NOTHING",
    # Objects that read it in a query inside another one.
    "rule _RETURN on view of_query":
        "CREATE VIEW of_query AS WITH a AS (SELECT flake_timestamp(id) AS at FROM orders) SELECT (SELECT max(at) FROM a)",
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
    # Not seen, as the documentation says: comparisons with bounds, and columns of queries and joins.
    "CREATE VIEW v AS SELECT id FROM orders WHERE id > flake_min('2024-01-01Z')",
    "CREATE VIEW v AS SELECT flake_timestamp(n) FROM (SELECT 1, id AS n FROM orders) s",
    "CREATE FUNCTION f() RETURNS timestamptz LANGUAGE sql AS 'SELECT flake_timestamp(id) FROM orders'",
    "CREATE FUNCTION f(id bigint) RETURNS timestamptz RETURN flake_timestamp(id)",
    """CREATE VIEW ids AS SELECT id FROM orders; CREATE VIEW v AS SELECT flake_timestamp(id) FROM ids""",  # views of views
    """CREATE TABLE t (a numeric DEFAULT flake_next('twitter'), b double precision DEFAULT flake_next('si'),
                       c numeric(19) DEFAULT flake_next('twitter'), d numeric(16, 0) DEFAULT flake_next('si'),
                       e varchar(19) DEFAULT flake_next('twitter'), f char(16) DEFAULT flake_next('si'),
                       g varchar DEFAULT flake_next('si'),
                       h bigint[] DEFAULT ARRAY[flake_next('twitter')])""",
    # Values that are not the IDs.
    """CREATE TABLE t (a varchar(13) DEFAULT flake_to_text(flake_next('tsid'), 'tsid'),
                       b smallint DEFAULT flake_next('twitter') % 16,
                       c char(5) DEFAULT left(md5(flake_next('twitter')::text), 5))""",
]

# Types that are too small, with the layout of the default.
SMALL = [
    ("int4", "twitter"), ("int2", "si"), ("float4", "si"), ("float8", "twitter"), ("int2", "tiny"), ("numeric(18)", "twitter"),
    ("numeric(20, 2)", "twitter"), ("numeric(30, -1)", "si"), ("varchar(18)", "twitter"), ("char(15)", "si"),
    ("int4_of_domain", "si"),
]  # fmt: skip


@pytest.fixture
def db(server):
    with server.connect(autocommit=False) as db:
        db.execute("""CREATE TABLE orders (item text, id bigint DEFAULT flake_next('snowflake'));
                      CREATE TABLE legacy (item text, other bigint DEFAULT flake_next('discord'));
                      CREATE TABLE tweets (item text, id bigint DEFAULT flake_next('twitter'))""")
        yield db
        db.rollback()


# Each function of the check that decodes IDs, or makes them.
DECODING = {
    name: f"{name}(id, 'si')" for name in ["flake_decode", "flake_timestamp", "flake_explain", "flake_node", "flake_cover"]
} | {"flake_during": "flake_during(id, '[2024-01-01Z,)', 'si')"}
MAKING = {"flake_next": "flake_next('discord')", "flake_batch": "(SELECT flake_batch('discord', 1) LIMIT 1)"}
SEALING = {name: f"{name}(id, 'usr')" for name in ["flake_seal", "flake_seal_uuid"]}


def test_each_function_of_the_check_has_an_example():
    text = (ROOT / "src/functions/check/uses.rs").read_text().partition("let argument = match")[2].partition("_ => continue")[0]
    opening = {"flake_unseal", "flake_unseal_or_error"}
    assert set(re.findall(r'"(\w+)"', text)) == {*DECODING, *MAKING, *SEALING, *opening, "sno_next"}


@pytest.mark.parametrize("function", [*DECODING, *SEALING])
def test_each_function_that_reads_by_another_layout_is_seen(db, function):
    db.execute("SELECT flake_create_key('usr', 'si')")
    db.execute(f"CREATE VIEW alone AS SELECT {(DECODING | SEALING)[function]} FROM orders")
    ok, detail, _ = layouts(db)
    view = 'view alone, with key "usr",' if function in SEALING else "view alone"
    assert (ok, detail) == (
        False,
        f"The default value for column id of table orders makes IDs of snowflake, but rule _RETURN on {view} reads them by si.",
    )


@pytest.mark.parametrize("function", MAKING)
def test_each_function_that_makes_ids_is_seen(db, function):
    db.execute(f"""CREATE FUNCTION alone() RETURNS bigint BEGIN ATOMIC SELECT {MAKING[function]}; END;
                   CREATE TABLE made (id bigint DEFAULT alone()); CREATE VIEW v AS SELECT flake_timestamp(id) FROM made""")
    assert "column id of table made makes IDs of discord, but rule _RETURN on view v reads" in layouts(db)[1]


def layouts(db):
    return db.execute("SELECT ok, detail, hint FROM flake_check() WHERE name = 'layouts'").fetchone()


@pytest.mark.parametrize("object", WRONG)
def test_columns_read_by_another_layout_are_named(db, object):
    db.execute(WRONG[object])
    by = "si" if "'si'" in WRONG[object] else "twitter"
    ok, detail, hint = layouts(db)
    assert (ok, detail) == (
        False, f"The default value for column id of table orders makes IDs of snowflake, but {object} reads them by {by}.",
    )  # fmt: skip
    assert "Name the layout" in hint
    db.execute("ALTER TABLE orders ALTER id DROP DEFAULT")
    assert layouts(db)[0], "nothing is known of the column's IDs"
    db.execute(f"ALTER TABLE orders ALTER id SET DEFAULT flake_next('{by}')")
    assert layouts(db)[0]


@pytest.mark.parametrize("other", RIGHT)
def test_columns_read_by_their_layout_are_not_named(db, other):
    db.execute(other)
    assert layouts(db)[0] and layouts(db)[2] is None


@pytest.mark.parametrize("kind, is_small", [
    ("int4", True), ("int2", True), ("narrow", True), ("bigint", False), ("wide", False)])  # fmt: skip
def test_references_that_are_too_small_are_named(db, kind, is_small):
    """PostgreSQL allows the foreign key, but refuses the first row that refers to an ID."""
    db.execute(f"""
        CREATE DOMAIN narrow AS integer; CREATE DOMAIN wide AS bigint; ALTER TABLE orders ADD UNIQUE (id);
        CREATE TABLE lines (n int, order_id {kind} REFERENCES orders (id))""")
    ok, detail, _ = layouts(db)
    named = "The type of column order_id of table lines is too small for IDs of snowflake."
    assert (ok, named in detail) == (not is_small, is_small)


@pytest.mark.parametrize("place, tables", {
    # Each column of a reference, references of references, and elements of arrays.
    "order_id": """ALTER TABLE orders ADD UNIQUE (item, id);
        CREATE TABLE small (item text, order_id int, FOREIGN KEY (item, order_id) REFERENCES orders (item, id))""",
    "line_id": """ALTER TABLE orders ADD UNIQUE (id); CREATE TABLE lines (order_id bigint UNIQUE REFERENCES orders (id));
        CREATE TABLE small (line_id int REFERENCES lines (order_id), up int)""",
    "ids": "CREATE TABLE small (ids int[] DEFAULT ARRAY[flake_next('snowflake')])",
}.items())  # fmt: skip
def test_places_that_are_too_small_are_named(db, place, tables):
    db.execute(tables)
    assert layouts(db)[1] == f"The type of column {place} of table small is too small for IDs of snowflake."


def test_the_key_of_partitions_is_checked(db):
    db.execute("CREATE TABLE p (id bigint DEFAULT flake_next('si')) PARTITION BY RANGE (flake_timestamp(id))")
    assert layouts(db)[1] == "The default value for column id of table p makes IDs of si, but table p reads them by twitter."


@pytest.mark.parametrize("type, layout", SMALL)
def test_types_that_are_too_small_are_named(db, type, layout):
    db.execute("""SELECT flake_create_layout('tiny', '{"epoch": "2024-01-01T00:00:00Z", "tick": "3600s", "fields": [
        {"name": "timestamp", "bits": 18, "role": "timestamp"}, {"name": "sequence", "bits": 10, "role": "sequence"}]}')""")
    db.execute("CREATE DOMAIN int4_of_domain AS int4")
    db.execute(f"CREATE TABLE t (id {type} DEFAULT flake_next('{layout}'), fits int DEFAULT flake_next('tiny'))")
    assert layouts(db)[:2] == (False, f"The type of column id of table t is too small for IDs of {layout}.")


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
    server.sql("DROP TABLE mine CASCADE; DROP FUNCTION bad; DROP ROLE asker")
    assert detail == (
        "The default value for column id of table mine makes IDs of si, but rule _RETURN on view reader reads them by twitter."
    )


def in_use(db):
    return db.execute("SELECT ok, detail FROM flake_check() WHERE name = 'end of layouts'").fetchone()


# Defaults that make IDs of si and do not call flake_next themselves.
BEHIND = {
    "a function": "CREATE FUNCTION made() RETURNS bigint RETURN flake_next('si')",
    "a function of the shard":
        """CREATE TABLE shard_key (id bigint) PARTITION BY HASH (id);
           CREATE FUNCTION made() RETURNS bigint LANGUAGE sql RETURN (
               SELECT id FROM (SELECT flake_next('si') AS id, generate_series(1, 4 * 32)) draw
               WHERE satisfies_hash_partition('shard_key'::regclass, 4, 2, id) LIMIT 1)""",
    "a function of a function":
        """CREATE FUNCTION inner_made() RETURNS bigint BEGIN ATOMIC SELECT flake_next('si'); END;
           CREATE FUNCTION made() RETURNS bigint RETURN (SELECT inner_made())""",
    "a default of an argument": "CREATE FUNCTION made(id bigint DEFAULT flake_next('si')) RETURNS bigint RETURN id",
    "a function that calls itself":
        """CREATE FUNCTION made() RETURNS bigint RETURN 1;
           CREATE OR REPLACE FUNCTION made() RETURNS bigint
           RETURN CASE WHEN now() IS NULL THEN made() ELSE flake_next('si') END""",
    "an operator":
        """CREATE FUNCTION inner_made(text) RETURNS bigint RETURN flake_next('si');
           CREATE OPERATOR #+# (FUNCTION = inner_made, RIGHTARG = text);
           CREATE FUNCTION made() RETURNS bigint RETURN #+# 'x'::text""",
}  # fmt: skip


@pytest.mark.parametrize("how", BEHIND)
def test_defaults_that_call_functions_are_seen(db, how):
    db.execute(f"{BEHIND[how]}; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT made()); CREATE TABLE r (t int REFERENCES t)")
    ok, detail = in_use(db)
    assert ok and "si ends in" in detail
    if how != "an operator":
        assert layouts(db)[:2] == (False, "The type of column t of table r is too small for IDs of si.")
        db.execute("CREATE VIEW v AS SELECT flake_timestamp(id) FROM t")
        assert "The default value for column id of table t makes IDs of si, but rule _RETURN on view v" in layouts(db)[1]


def test_defaults_of_domains_are_seen(db):
    """A domain has the default of the domain below it."""
    db.execute("""CREATE DOMAIN made AS bigint DEFAULT flake_next('si'); CREATE DOMAIN over AS made;
                  CREATE TABLE t (id made PRIMARY KEY, other over); CREATE TABLE r (t int REFERENCES t);
                  CREATE VIEW v AS SELECT flake_timestamp(other) FROM t""")
    assert "si ends in" in in_use(db)[1]
    ok, detail, _ = layouts(db)
    assert not ok and "The type of column t of table r is too small for IDs of si." in detail
    assert "The type over makes IDs of si, but rule _RETURN on view v reads them by twitter." in detail
    db.execute("ALTER TABLE t ALTER id SET DEFAULT NULL, ALTER other SET DEFAULT flake_next('twitter')")
    assert layouts(db)[0], "the column's own default is used"


# Objects that make IDs of a layout that their expression does not show, with the name that is shown.
UNKNOWN = {
    "function made()": "CREATE FUNCTION made() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN flake_next(''si''); END'; "
                       "CREATE TABLE t (id bigint DEFAULT made())",
    "function set_id()": "CREATE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS "
                         "'BEGIN NEW.id = flake_next(''si''); RETURN NEW; END'; CREATE TABLE t (id bigint); "
                         "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION set_id()",
    "default value for column id of table t": "CREATE TABLE t (id bigint DEFAULT flake_next(current_setting('search_path')))",
    "function made(text)": "CREATE FUNCTION made(layout text) RETURNS bigint RETURN flake_next(layout); "
                           "CREATE TABLE t (id bigint DEFAULT made('si'))",
}  # fmt: skip


@pytest.mark.parametrize("object", UNKNOWN)
def test_what_is_not_seen_is_said(db, object):
    db.execute(UNKNOWN[object])
    for name in ["rates", "end of layouts", "layouts"]:
        ok, detail = db.execute("SELECT ok, detail FROM flake_check() WHERE name = %s", (name,)).fetchone()
        assert ok is None and detail.endswith(f" It is not known which layouts these use: {object}.")
    db.execute("CREATE TABLE small (id int DEFAULT flake_next('si'))")
    assert layouts(db)[:2] == (False, "The type of column id of table small is too small for IDs of si.")


def test_a_function_that_only_clients_call_does_not_matter(db):
    db.execute("CREATE FUNCTION made() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN flake_next(''si''); END'")
    assert layouts(db)[0]


def test_a_deep_expression_is_read(db):
    """PostgreSQL reads it with more stack than a session has by default."""
    db.execute("SET max_stack_depth = '7MB'")
    deep = "abs(" * 2000 + "extract(epoch FROM flake_timestamp(id))" + ")" * 2000
    db.execute(f"CREATE VIEW v AS SELECT {deep} FROM orders")
    assert not layouts(db)[0]
