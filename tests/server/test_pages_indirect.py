"""Statements of the pages run nothing of a role that refers to the caller's tables, or whose types and functions these use."""

import pytest

import hostile
from test_pages_rights import WIDEN, blocks, executed, psql

# mallory's function runs when PostgreSQL checks the foreign key again.
REFERS = "CREATE INDEX ON m.refers ((m.zero('reference')))"


@pytest.fixture
def server(own_servers):
    server = own_servers()
    hostile.plant(server)
    server.sql("CREATE SCHEMA postgres")
    return server


def has_acted(server):
    return bool(hostile.ran(server)) or hostile.has_risen(server)


def refer(server, table, type, column):
    """Lets mallory refer to a column of another role's table."""
    server.sql(f"GRANT USAGE ON SCHEMA postgres TO mallory; GRANT REFERENCES ON postgres.{table} TO mallory")
    hostile.act(server, "mallory", f"CREATE TABLE m.refers (x {type} REFERENCES postgres.{table} ({column}))", REFERS)


def test_a_partition_that_others_refer_to_is_not_widened(server):
    server.sql("""CREATE TABLE postgres.days (day bigint, n int) PARTITION BY RANGE (day);
        CREATE TABLE postgres.day PARTITION OF postgres.days FOR VALUES FROM (1) TO (100);
        ALTER TABLE postgres.day ADD UNIQUE (n)""")
    refer(server, "day", "int", "n")
    psql(server, "postgres", *blocks("other-applications.md", "On a copy", "CREATE TEMP VIEW", "ALTER TABLE %s"))
    assert not has_acted(server)
    hostile.act(server, "postgres", "ALTER TABLE postgres.days ALTER n TYPE bigint")
    assert has_acted(server)


CHILD = """
    CREATE TABLE postgres.{0} (id int PRIMARY KEY);
    CREATE TABLE postgres.old_{0} (UNIQUE (id)) INHERITS (postgres.{0})"""


def test_a_child_that_others_refer_to_is_in_the_way(server):
    server.sql(CHILD.format("tea"))
    plan = psql(server, "postgres", arguments=["-v", "table=postgres.tea", "-f", WIDEN])
    assert plan.count("ALTER TABLE") == 1 and "in the way" not in plan
    psql(server, "postgres", plan)
    server.sql(CHILD.format("milk"))
    refer(server, "old_milk", "int", "id")
    plan = psql(server, "postgres", arguments=["-v", "table=postgres.milk", "-f", WIDEN])
    assert "-- in the way: table m.refers: it, " in plan and "ALTER" not in plan


def test_no_cast_of_another_role_finds_keys(server):
    hostile.act(server, "mallory", "CREATE DOMAIN m.code AS bigint",
        "CREATE FUNCTION m.cast_of(m.code[]) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN m.act('array')::text; END $$",
        "CREATE CAST (m.code[] AS text) WITH FUNCTION m.cast_of(m.code[])")  # fmt: skip
    server.sql("""CREATE TABLE postgres.orders (id bigint PRIMARY KEY); INSERT INTO postgres.orders VALUES (1);
        CREATE TABLE postgres.baskets (codes m.code[]); INSERT INTO postgres.baskets VALUES ('{1}')""")
    block, = blocks("convert.md", "Look at these before", "CREATE FUNCTION columns_with_keys")
    block = block[: block.index("$$;") + 3]
    printed = psql(server, "postgres", block, "SELECT * FROM columns_with_keys('postgres.orders', 'id')")
    assert "baskets|codes|m.code[]|1.000" in printed
    assert not has_acted(server)
    server.sql("SELECT codes::text FROM postgres.baskets")
    assert has_acted(server)


def leave(server):
    query, = blocks("leave.md", "Removing flake", "WITH RECURSIVE")
    return psql(server, "postgres", executed(query))


def test_a_type_by_the_name_of_sno_stays(server):
    hostile.act(server, "mallory", "CREATE TYPE m.sno AS (n int)",
        "CREATE FUNCTION m.cast_of(m.sno) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN m.act('type')::text; END $$",
        "CREATE CAST (m.sno AS text) WITH FUNCTION m.cast_of(m.sno)")  # fmt: skip
    server.sql("CREATE TABLE postgres.notes (id m.sno); INSERT INTO postgres.notes VALUES ('(1)')")
    leave(server)
    assert not has_acted(server)


# Casts to both types keep the foreign key when the key becomes text.
CASTS = """
    CREATE TYPE m.both AS (n text);
    CREATE FUNCTION m.to_sno(m.both) RETURNS public.sno IMMUTABLE LANGUAGE sql AS 'SELECT ($1).n::public.sno';
    CREATE FUNCTION m.to_text(m.both) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT ($1).n';
    CREATE CAST (m.both AS public.sno) WITH FUNCTION m.to_sno(m.both) AS IMPLICIT;
    CREATE CAST (m.both AS text) WITH FUNCTION m.to_text(m.both) AS IMPLICIT"""


def test_a_sno_that_others_refer_to_stays(server):
    server.sql("CREATE TABLE postgres.notes (id public.sno PRIMARY KEY DEFAULT public.sno_next())")
    hostile.act(server, "mallory", CASTS)
    refer(server, "notes", "m.both", "id")
    leave(server)
    assert not has_acted(server)
    assert server.value("SELECT pg_typeof(id)::text FROM postgres.notes UNION ALL SELECT 'none'") == "none"
    # PostgreSQL 18 refuses such a change of type, whoever refers to the column.
    if server.value("SELECT current_setting('server_version_num')::int < 180000"):
        hostile.act(server, "postgres", "ALTER TABLE postgres.notes ALTER id DROP DEFAULT, ALTER id TYPE text USING id::text")
        assert has_acted(server)


def test_no_function_takes_the_place_of_setval(server):
    hostile.act(server, "mallory",
        "CREATE FUNCTION public.setval(text, bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT m.act('setval') $$")  # fmt: skip
    server.sql("""CREATE TABLE postgres.notes (id bigint PRIMARY KEY DEFAULT public.flake_next('twitter'));
        INSERT INTO postgres.notes DEFAULT VALUES""")
    leave(server)
    assert not has_acted(server)
    assert server.value("SELECT setval(pg_get_serial_sequence('postgres.notes', 'id'), 1)") == 0
    assert has_acted(server)
