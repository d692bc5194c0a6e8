"""flake_drop_layout finds the objects that name the layout, and refuses to drop it."""

import psycopg
import pytest

# Objects that name the layout, with the names that flake shows.
USES = {
    "default value for column id of table t": "CREATE TABLE t (id bigint DEFAULT flake_next('mine'))",
    "default value for column at of table t":
        "CREATE TABLE t (id bigint, at timestamptz GENERATED ALWAYS AS (flake_timestamp(id, 'mine')) STORED)",
    "constraint c on table t": "CREATE TABLE t (id bigint, CONSTRAINT c CHECK (flake_timestamp(id, 'mine') > '2020-01-01Z'))",
    "index i": "CREATE TABLE t (id bigint); CREATE INDEX i ON t (flake_timestamp(id, 'mine'))",
    "index j": "CREATE TABLE t (id bigint); CREATE INDEX j ON t (id) WHERE id >= flake_min('2024-01-01Z', 'mine')",
    "table p": "CREATE TABLE p (id bigint) PARTITION BY RANGE (flake_timestamp(id, 'mine'))",
    "rule _RETURN on view v": "CREATE TABLE t (id bigint); CREATE VIEW v AS SELECT flake_decode(id, 'mine') FROM t",
    "rule _RETURN on materialized view m":
        "CREATE MATERIALIZED VIEW m AS WITH c AS (SELECT flake_batch('mine', 3) AS id) SELECT (SELECT max(id)) FROM c",
    "rule r on table t": "CREATE TABLE t (id bigint); CREATE RULE r AS ON INSERT TO t DO ALSO SELECT flake_next('mine')",
    "policy p on table t":
        "CREATE TABLE t (id bigint); CREATE POLICY p ON t USING (flake_during(id, '[2024-01-01Z,)', 'mine'))",
    "policy q on table t":
        "CREATE TABLE t (id bigint); CREATE POLICY q ON t FOR INSERT WITH CHECK (flake_timestamp(id, 'mine') > '2024-01-01Z')",
    "statistics object s":
        "CREATE TABLE t (id bigint); CREATE STATISTICS s ON (flake_timestamp(id, 'mine')) FROM t",
    "trigger g on table t":
        """CREATE TABLE t (id bigint); CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW
           WHEN (flake_timestamp(NEW.id, 'mine') > '2024-01-01Z') EXECUTE FUNCTION suppress_redundant_updates_trigger()""",
    "function f()": "CREATE FUNCTION f() RETURNS bigint RETURN flake_next('mine')",
    "function g(bigint)": "CREATE FUNCTION g(id bigint DEFAULT flake_next('mine')) RETURNS bigint RETURN id",
    "type d": "CREATE DOMAIN d AS bigint DEFAULT flake_next('mine'); CREATE TABLE t (id d)",
    "constraint c": "CREATE DOMAIN d AS bigint CONSTRAINT c CHECK (flake_timestamp(VALUE, 'mine') > '2024-01-01Z')",
    "index o": """CREATE TABLE t (id bigint); CREATE OPERATOR ### (FUNCTION = flake_to_text, LEFTARG = bigint, RIGHTARG = text);
                  CREATE INDEX o ON t ((id ### 'mine'))""",
    "default value for column n of table t":
        "CREATE TABLE t (id bigint, n timestamptz GENERATED ALWAYS AS (flake_timestamp(id, ('mine'::name)::text)) STORED)",
    "default value for column id of table other.t":
        "CREATE TABLE other.t (id bigint DEFAULT flake_next(upper('x')) + flake_next('mine'::varchar))",
    # The text may name something else, but the call may also get it.
    "rule _RETURN on view w": "CREATE VIEW w AS SELECT flake_next(layout) FROM (SELECT 'mine' AS layout) s",
}  # fmt: skip

# Objects that do not name the layout, or name another one.
OTHERS = [
    "CREATE TABLE t (id bigint DEFAULT flake_next('twitter'), layout text DEFAULT 'mine')",
    "CREATE VIEW v AS SELECT flake_next('twitter') AS id, 'a mine' AS layout, '[ 32 0 0 0 109 105 110 101 ]' AS text",
    "CREATE VIEW v AS SELECT flake_next(('mines'::name)::text) AS a",
    "CREATE VIEW v AS SELECT flake_next('mines') AS a, flake_next('min') AS b",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT flake_next(''mine'')'",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN flake_next(''mine''); END'",
]


@pytest.fixture
def db(server):
    with server.connect(autocommit=False) as db:
        db.execute("""SELECT flake_create_layout(name, '{"like": "twitter"}') FROM unnest('{mine,mines,min}'::text[]) name;
                      CREATE SCHEMA other""")
        yield db
        db.rollback()


@pytest.mark.parametrize("object", USES)
def test_uses_of_a_layout_are_found(db, object):
    db.execute(USES[object])
    db.execute("SELECT flake_drop_layout('mines')")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        db.execute("SELECT flake_drop_layout('mine')")
    assert error.value.diag.message_primary == 'cannot drop layout "mine" because other objects name it'
    assert error.value.diag.message_detail == f"It is named in {object}."
    assert error.value.diag.message_hint == "Drop or change these objects first; DROP SERVER drops the layout without this check."


@pytest.mark.parametrize("other", OTHERS)
def test_expressions_that_do_not_name_it_are_not_found(db, other):
    db.execute(other)
    db.execute("SELECT flake_drop_layout('mine')")


def test_all_uses_are_listed(db):
    db.execute("CREATE TABLE t (id bigint)")
    for n in range(120):
        db.execute(f"CREATE VIEW v{n:03} AS SELECT flake_timestamp(id, 'mine') FROM t")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist) as error:
        db.execute("SELECT flake_drop_layout('mine')")
    detail = error.value.diag.message_detail
    assert detail.startswith("It is named in rule _RETURN on view v000, ")
    assert detail.endswith("view v099, and 20 others.")


def test_a_layout_can_be_dropped_once_its_uses_are_gone(db):
    db.execute("CREATE TABLE t (id bigint DEFAULT flake_next('mine')); ALTER TABLE t ALTER id DROP DEFAULT")
    db.execute("SELECT flake_drop_layout('mine')")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        db.execute("SELECT flake_next('mine')")
