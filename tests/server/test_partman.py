"""pg_partman on a column of IDs: days as ranges of IDs."""

import datetime
import re

import pytest

from conftest import ROOT

DAY = datetime.timedelta(days=1)
# A day of IDs begins at the epoch's time of day. So one day of the clock lies in two partitions.
BEGINS = "01:42:54.657"
PARTITIONS = """
    SELECT relname, at, at + interval '1 day' FROM pg_class, flake_timestamp(
        (regexp_match(pg_get_expr(relpartbound, oid), 'FROM \\(''?(\\d+)'))[1]::bigint) at
    WHERE relispartition AND relname LIKE 'events%' AND relkind = 'r' AND pg_get_expr(relpartbound, oid) <> 'DEFAULT'"""


PAGE = ROOT / "docs/how-to/partition.md"


def with_partman(server):
    """The kind of partitioning that a server's pg_partman has to be told."""
    version = server.sql("SELECT default_version FROM pg_available_extensions WHERE name = 'pg_partman'")
    if not version:
        pytest.skip("pg_partman is not installed for this PostgreSQL")
    server.sql("CREATE SCHEMA partman")
    server.sql("CREATE EXTENSION pg_partman SCHEMA partman")
    return "native" if version[0][0].startswith("4.") else "range"


def create(db, kind, start="now()"):
    db.execute("""
        CREATE TABLE public.events (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), kind text)
        PARTITION BY RANGE (id)""")
    db.execute(f"""
        SELECT partman.create_parent('public.events', 'id', p_type := %s,
            p_interval := (flake_min('2026-01-02Z') - flake_min('2026-01-01Z'))::text,
            p_start_partition := flake_min({start})::text)""", (kind,))  # fmt: skip


@pytest.mark.matrix
def test_rows_after_quiet_days_are_moved_out_of_the_default_partition(own_servers):
    server = own_servers()
    kind = with_partman(server)
    with server.connect() as db:

        def lost():
            return db.execute("SELECT count(*) FROM ONLY public.events_default").fetchone()[0]

        create(db, kind, "now() - interval '20 days'")
        db.execute("INSERT INTO public.events SELECT flake_min(now() - interval '12 days') + n FROM generate_series(1, 10) n")
        db.execute("CALL partman.run_maintenance_proc()")
        db.execute("INSERT INTO public.events (kind) SELECT 'today' FROM generate_series(1, 100)")
        assert lost() >= 100
        for statement in re.findall(r"^    (CALL .*;)$", PAGE.read_text(), re.M):
            db.execute(statement)
        assert lost() == 0
        db.execute("INSERT INTO public.events VALUES (flake_min(now() + interval '1 day'), 'tomorrow')")
        db.execute("CALL partman.run_maintenance_proc()")
        assert lost() == 0
        assert db.execute("SELECT count(*) FROM public.events").fetchone() == (111,)


@pytest.mark.matrix
@pytest.mark.parametrize("time", ["00:30:00", "01:42:50", "12:00:00", "23:59:50"])
def test_pg_partman_makes_partitions_of_days(own_servers, time):
    server = own_servers(clock=f"@2026-10-31 {time}")
    kind = with_partman(server)
    with server.connect() as db:
        db.execute("SET timezone = 'UTC'")
        create(db, kind)
        before = db.execute(PARTITIONS).fetchall()
        assert len(before) >= 4
        db.execute("INSERT INTO public.events (kind) SELECT 'now' FROM generate_series(1, 100)")
        db.execute("INSERT INTO public.events VALUES (flake_min(now() + interval '2 days'), 'later')")
        assert db.execute("SELECT count(*) FROM ONLY public.events_default").fetchone() == (0,)
        db.execute("SELECT partman.run_maintenance('public.events')")
        after = db.execute(PARTITIONS).fetchall()
        assert len(after) > len(before), "partitions are made ahead of the newest ID"
        assert {f"{begins:%H:%M:%S.%f}"[:-3] for _, begins, _ in after} == {BEGINS}
        db.execute("BEGIN")
        midnight, = db.execute("SELECT date_trunc('day', now())").fetchone()
        plan = "\n".join(line for line, in db.execute("""
            EXPLAIN (COSTS OFF) SELECT * FROM public.events WHERE flake_during(
                id, tstzrange(date_trunc('day', now()), date_trunc('day', now()) + interval '1 day'))"""))  # fmt: skip
        db.execute("COMMIT")
        scanned = {name for name, _, _ in after if f"Scan on {name} " in plan}
        assert scanned == {name for name, begins, ends in after if begins < midnight + DAY and ends > midnight}, plan
