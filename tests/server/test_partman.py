"""pg_partman on a column of IDs: days as ranges of IDs."""

import datetime

import pytest

DAY = datetime.timedelta(days=1)
# A day of IDs begins at the epoch's time of day. So one day of the clock lies in two partitions.
BEGINS = "01:42:54.657"
PARTITIONS = """
    SELECT relname, at, at + interval '1 day' FROM pg_class, flake_timestamp(
        (regexp_match(pg_get_expr(relpartbound, oid), 'FROM \\(''?(\\d+)'))[1]::bigint) at
    WHERE relispartition AND relname LIKE 'events%' AND relkind = 'r' AND pg_get_expr(relpartbound, oid) <> 'DEFAULT'"""


@pytest.mark.parametrize("time", ["00:30:00", "01:42:50", "12:00:00", "23:59:50"])
def test_pg_partman_makes_partitions_of_days(own_servers, time):
    server = own_servers(clock=f"@2026-10-31 {time}")
    version = server.sql("SELECT default_version FROM pg_available_extensions WHERE name = 'pg_partman'")
    if not version:
        pytest.skip("pg_partman is not installed for this PostgreSQL")
    kind = "native" if version[0][0].startswith("4.") else "range"
    server.sql("CREATE SCHEMA partman")
    server.sql("CREATE EXTENSION pg_partman SCHEMA partman")
    with server.connect() as db:
        db.execute("SET timezone = 'UTC'")
        db.execute("""
            CREATE TABLE public.events (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), kind text)
            PARTITION BY RANGE (id)""")
        db.execute("""
            SELECT partman.create_parent('public.events', 'id', p_type := %s,
                p_interval := (flake_min('2026-01-02Z') - flake_min('2026-01-01Z'))::text,
                p_start_partition := flake_min(now())::text)""", (kind,))  # fmt: skip
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
