"""pg_partman on a column of IDs: days as ranges of IDs."""

import pytest


def test_days(server):
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
            SELECT partman.create_parent('public.events', 'id', %s,
                p_interval := (flake_min('2026-01-02Z') - flake_min('2026-01-01Z'))::text,
                p_start_partition := flake_min(now())::text)""", (kind,))  # fmt: skip
        starts = """
            SELECT at::time = '01:42:54.657' FROM pg_class, flake_timestamp(
                (regexp_match(pg_get_expr(relpartbound, oid), 'FROM \\(''?(\\d+)'))[1]::bigint) at
            WHERE relispartition AND relname LIKE 'events%%' AND relkind = 'r'
              AND pg_get_expr(relpartbound, oid) <> 'DEFAULT'"""
        before = db.execute(starts).fetchall()
        assert len(before) >= 4 and set(before) == {(True,)}, "every partition is a day from the epoch's time of day on"
        db.execute("INSERT INTO public.events (kind) SELECT 'now' FROM generate_series(1, 100)")
        db.execute("INSERT INTO public.events VALUES (flake_min(now() + interval '2 days'), 'later')")
        assert db.execute("SELECT count(*) FROM ONLY public.events_default").fetchone() == (0,)
        db.execute("SELECT partman.run_maintenance('public.events')")
        after = db.execute(starts).fetchall()
        assert len(after) > len(before) and set(after) == {(True,)}, "partitions are made ahead of the newest ID"
        plan = db.execute("""
            EXPLAIN (COSTS OFF) SELECT * FROM public.events WHERE flake_during(
                id, tstzrange(date_trunc('day', now()), date_trunc('day', now()) + interval '1 day'))""")
        assert sum("Scan on events_p" in line for line, in plan) <= 2
