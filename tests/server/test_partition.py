"""The functions of docs/how-to/partition.md, for two tables, in each kind of session."""

import psycopg
import pytest

import pages
from conftest import ROOT
from session_kinds import every_session

PAGE = ROOT / "docs/how-to/partition.md"
TABLES = ["events", '"Other ""events"""']
BOUNDS = """SELECT relname, flake_timestamp(low[1]::bigint) = %s::timestamptz, flake_timestamp(low[2]::bigint) = %s::timestamptz
    FROM pg_class, regexp_match(pg_get_expr(relpartbound, oid), 'FROM \\(''(\\d+)''\\) TO \\(''(\\d+)''\\)') AS low
    WHERE oid = %s::regclass"""


def function(name):
    """Returns the definition of the function on the page."""
    blocks = pages.recipe(PAGE, "Partition by time") + pages.recipe(PAGE, "Remove old partitions")
    block, = (block for block in blocks if f"CREATE FUNCTION {name}" in block)
    return block[: block.index("$$;") + 3]


@pytest.fixture
def db(server, session):
    server = server if session.is_plain else session.of(server, extension=True)
    with server.connect() as db:
        if session.is_plain:
            db.execute("DROP SCHEMA IF EXISTS recipe CASCADE; CREATE SCHEMA recipe; SET search_path = recipe, public")
        for table in TABLES:
            db.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY DEFAULT flake_next('twitter')) PARTITION BY RANGE (id)")
        db.execute(function("make_partition") + function("drop_partitions"))
        yield db


def name_of(table, month):
    return f'"{table[1:-1]}_{month}"' if table.startswith('"') else f"{table}_{month}"


@every_session
def test_partitions_of_months_are_made_once(db, session):
    """Each begins and ends at midnight UTC. A second call for the same month does nothing, and a name that is taken is an
    error."""
    for table in TABLES:
        for month, then in ["02", "03"], ["03", "04"], ["10", "11"], ["12", "01"]:
            for _ in range(2):
                db.execute("SELECT make_partition(%s, %s)", (table, f"2026-{month}-17"))
            year = 2027 if then == "01" else 2026
            found = db.execute(BOUNDS, (f"2026-{month}-01Z", f"{year}-{then}-01Z", name_of(table, f"2026_{month}"))).fetchone()
            assert found[1:] == (True, True)
        db.execute(f"INSERT INTO {table} VALUES (flake_min('2026-03-30 12:00Z')), (flake_max('2026-03-31 23:59:59.999Z'))")
        db.execute(f"CREATE TABLE {name_of(table, '2026_05')} ()")
        pytest.raises(psycopg.errors.DuplicateTable, db.execute, "SELECT make_partition(%s, '2026-05-01')", (table,))
    assert db.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'events'::regclass").fetchone() == (4,)


@every_session
@pytest.mark.parametrize("name", ["t" * 55, "t" * 56, "ä" * 31], ids=["fits", "long", "of two bytes each"])
def test_tables_with_long_names_get_all_partitions(db, session, name):
    db.execute(f"CREATE TABLE {name} (id bigint PRIMARY KEY) PARTITION BY RANGE (id)")
    for month in range(1, 13):
        db.execute("SELECT make_partition(%s, %s)", (name, f"2026-{month}-01"))
    ids = "SELECT flake_min('2026-01-15Z'::timestamptz + n * interval '1 month') FROM generate_series(0, 11) n"
    db.execute(f"INSERT INTO {name} {ids}")
    assert db.execute(f"SELECT count(DISTINCT tableoid) FROM {name}").fetchone() == (12,)


@every_session
def test_retention_drops_partitions_that_have_ended_for_all_consumers(db, session):
    """Partitions that have ended are dropped, of one table only, and none if a consumer has not begun."""
    for table in TABLES:
        for month in "01", "02", "03":
            db.execute("SELECT make_partition(%s, %s)", (table, f"2026-{month}-01"))
    block = pages.recipe(PAGE, "Remove old partitions")[1]
    db.execute(block)
    drop = block.split(";")[2]
    assert db.execute(drop).fetchall() == []
    db.execute("UPDATE positions SET last = flake_min('2026-02-01Z') WHERE last IS NULL")
    assert db.execute(drop).fetchall() == [("events_2026_01",)]
    assert db.execute("SELECT drop_partitions(%s, 0, flake_min('2026-03-01Z'))", (TABLES[1],)).fetchall() == [
        (name_of(TABLES[1], f"2026_{month}"),) for month in ("01", "02")
    ]
    # Partitions of keys that flake did not make stay.
    db.execute("CREATE TABLE oldest PARTITION OF events FOR VALUES FROM (MINVALUE) TO (10)")
    db.execute("CREATE TABLE old PARTITION OF events FOR VALUES FROM (10) TO (1000)")
    for since, dropped in (11, []), (10, [("old",)]):
        assert db.execute("SELECT drop_partitions('events', %s, flake_min('2026-02-01Z'))", (since,)).fetchall() == dropped
    db.execute("DROP TABLE oldest")
    left = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass"
    assert sorted(db.execute(left, ("events",)).fetchall()) == [("events_2026_02",), ("events_2026_03",)]
