"""REVOKE and CREATE OR REPLACE reach kept plans: for each function in the range that replaced a filter, and for the filter
itself, even if an inlined SQL function has brought the filter into the query."""

import psycopg
import pytest

# Filters by time with a condition that holds for all rows, and the ends of their ranges.
FILTERS = {
    "flake_timestamp": "flake_timestamp(id) >= '2026-01-01Z'", "flake_during": "flake_during(id, '[2026-01-01Z,infinity)')",
    "sno_timestamp": "sno_timestamp(sno) >= '2026-01-01Z'", "sno_during": "sno_during(sno, '[2026-01-01Z,infinity)')",
}  # fmt: skip
# Filters with the functions that make their ranges, which one of snos has the same name for.
ENDS = {
    "since": "flake_timestamp(id) >= {}", "after": "flake_timestamp(id) > {}",
    "until": "flake_timestamp(id) <= {}", "before": "flake_timestamp(id) < {}",
    "first": "flake_during(id, tstzrange({}, 'infinity'))", "last": "flake_during(id, tstzrange('-infinity', {}))",
    "instant": "flake_timestamp(id) >= {}::timestamp",
    "since of snos": "sno_timestamp(sno) >= {}", "after of snos": "sno_timestamp(sno) > {}",
    "until of snos": "sno_timestamp(sno) <= {}", "before of snos": "sno_timestamp(sno) < {}",
    "first of snos": "sno_during(sno, tstzrange({}, 'infinity'))", "last of snos": "sno_during(sno, tstzrange('-infinity', {}))",
}  # fmt: skip
instants = pytest.mark.parametrize("instant", ["'2026-02-01Z'::timestamptz", "('2026-02-01Z'::timestamptz + (now() - now()))"],
                                   ids=["constant", "stable"])  # fmt: skip
FORMS = ["written", "inlined", "inlined twice", "a view"]
# CREATE OR REPLACE needs the same arguments and defaults.
SIGNATURES = """
    SELECT p.oid::regprocedure,
           format('%%s.%%I(%%s) RETURNS %%s', pronamespace::regnamespace, proname,
                  pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
    FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
    WHERE proname = %s AND (prorettype = 'sno'::regtype) = %s"""


@pytest.fixture(scope="module")
def server(servers):
    server = servers()
    server.sql("""
        CREATE TABLE ids (id bigint PRIMARY KEY, sno sno UNIQUE);
        INSERT INTO ids SELECT flake_min(at), sno_min(at) FROM generate_series('2026-01-01Z', '2026-03-01Z', interval '1 h') at;
        CREATE ROLE caller; GRANT SELECT ON ids TO caller""")
    return server


@pytest.fixture
def db(server):
    with server.connect(options="-c timezone=UTC -c enable_seqscan=off") as db, db.transaction(force_rollback=True):
        yield db


def plan(db):
    return "\n".join(line for line, in db.execute("EXPLAIN (COSTS OFF) EXECUTE kept"))


def keep(db, condition, form="written"):
    """Prepares a query with this condition on the rows of ids, and lets PostgreSQL keep its plan."""
    source = "ids"
    if form == "a view":
        db.execute(f"CREATE VIEW filtered AS SELECT * FROM ids WHERE {condition}; GRANT SELECT ON filtered TO caller")
        source, condition = "filtered", "true"
    elif form != "written":
        db.execute(f"""
            CREATE FUNCTION meets(id bigint, sno sno) RETURNS boolean LANGUAGE sql AS $$ SELECT {condition} $$;
            CREATE FUNCTION meets_it(bigint, sno) RETURNS boolean LANGUAGE sql AS 'SELECT meets($1, $2)'""")
        condition = "meets(id, sno)" if form == "inlined" else "meets_it(id, sno)"
    db.execute(f"SET LOCAL plan_cache_mode = force_generic_plan; PREPARE kept AS SELECT count(*) FROM {source} WHERE {condition}")
    assert "Index" in plan(db) and "Cond: " in plan(db), "the filter was not replaced"
    return db.execute("EXECUTE kept").fetchone()


@pytest.fixture(autouse=True)
def forget(db):
    """Deallocates prepared statements, because they outlast the transaction."""
    yield
    db.execute("DEALLOCATE ALL")


def functions(db, name):
    """Returns the functions with a name of FILTERS or ENDS."""
    end, _, of_snos = name.partition(" ")
    found = db.execute(SIGNATURES, (end, bool(of_snos))).fetchall()
    assert found
    return found


def revoke(db, name):
    for function, _ in functions(db, name):
        db.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
    db.execute("SET LOCAL ROLE caller")


@pytest.mark.matrix
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FILTERS)
def test_a_kept_plan_notices_that_a_role_may_not_call_the_filter(db, name, form):
    assert keep(db, FILTERS[name], form)[0] > 0
    revoke(db, name)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match=f"function {name}"), db.transaction():
        db.execute("EXECUTE kept")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FILTERS)
def test_a_kept_plan_notices_a_replaced_filter(db, name, form):
    """The new function is not flake's, and no row satisfies it."""
    assert keep(db, FILTERS[name], form)[0] > 0
    value = "false" if name.endswith("during") else "timestamptz '-infinity'"
    for _, signature in functions(db, name):
        db.execute(f"CREATE OR REPLACE FUNCTION {signature} IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN {value}; END $$")
    assert db.execute("EXECUTE kept").fetchone() == (0,)


@pytest.mark.matrix
@instants
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ENDS)
def test_a_kept_plan_notices_that_a_role_may_not_call_an_end(db, name, form, instant):
    """The filter stays a filter, with the same rows."""
    rows = keep(db, ENDS[name].format(instant), form)
    assert 0 < rows[0] < 1417
    revoke(db, name)
    assert "Cond: " not in plan(db)
    assert db.execute("EXECUTE kept").fetchone() == rows


@instants
@pytest.mark.parametrize("name", ENDS)
def test_a_kept_plan_notices_a_replaced_end(db, name, instant):
    """The kept plan had only the result of the old function. The new plan has the new function, which makes an empty range."""
    assert keep(db, ENDS[name].format(instant))[0] > 0
    least, most = ("sno '2222222222222222'", "sno 'xxxxxxxxxxxxxxxx'") if name.endswith("snos") else (0, 2**63 - 1)
    values = {"instant": "timestamptz 'infinity'", "until": least, "before": least, "last": least}
    value = values.get(name.partition(" ")[0], most)
    for _, signature in functions(db, name):
        db.execute(f"CREATE OR REPLACE FUNCTION {signature} IMMUTABLE LANGUAGE sql AS $$ SELECT {value} $$")
    assert db.execute("EXECUTE kept").fetchone() == (0,)
