"""managed/to_extension.sql lets the functions of managed/flake.sql call the extension, and everything that uses them stays."""

import psycopg
import pytest

import managed
from waiting import Background, wait_until

TABLES = """
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'),
                         at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED,
                         CHECK (flake_timestamp(id) > '2020-01-01Z'));
    CREATE INDEX by_time ON orders (flake_timestamp(id, 'leaf'));
    CREATE TABLE parted (id bigint DEFAULT flake_next('si')) PARTITION BY RANGE (flake_timestamp(id, 'si'));
    CREATE TABLE parted_all PARTITION OF parted FOR VALUES FROM ('2020-01-01Z') TO ('2055-01-01Z');
    CREATE VIEW shown AS SELECT id, (flake_decode(id)).worker, flake_to_text(id) AS text FROM orders;
    CREATE DOMAIN key AS bigint DEFAULT flake_next('uniqueid');
    CREATE TABLE others (id key PRIMARY KEY);
    INSERT INTO orders SELECT FROM generate_series(1, 100);
    INSERT INTO parted SELECT FROM generate_series(1, 100);
    INSERT INTO others SELECT FROM generate_series(1, 100);"""
STORED = """
    SELECT 'function', p.oid FROM pg_proc p
    WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'flake%' AND proname <> 'flake_set_node'
    UNION SELECT 'files', relfilenode FROM pg_class WHERE relname IN ('orders', 'by_time', 'parted_all') ORDER BY 1, 2"""


@pytest.fixture
def server(own_servers):
    server = own_servers(extension=False)
    managed.create_pgcrypto(server)
    managed.install(server)
    return server


def test_everything_that_uses_the_functions_stays(server):
    server.sql(TABLES)
    server.sql("CREATE ROLE app LOGIN; GRANT INSERT, SELECT ON orders TO app")
    server.sql("GRANT EXECUTE ON FUNCTION flake_seal(bigint, text) TO app")
    server.sql("SELECT flake_create_key('usr', 'twitter')")
    sealed = server.value("SELECT flake_seal(42, 'usr')")
    before, greatest = server.sql(STORED), [server.value(f"SELECT max(id) FROM {table}") for table in ("orders", "parted")]
    shown = server.sql("SELECT * FROM shown ORDER BY id")
    managed.leave(server)
    assert server.sql(STORED) == before
    assert server.sql("SELECT * FROM shown ORDER BY id") == shown
    assert server.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'flake'") == 0
    server.sql("INSERT INTO orders SELECT FROM generate_series(1, 100); INSERT INTO parted SELECT FROM generate_series(1, 100)")
    server.sql("INSERT INTO others SELECT FROM generate_series(1, 100)")
    assert server.value("SELECT issued FROM flake_extension.flake_stats") >= 0
    for table, id in zip(("orders", "parted"), greatest, strict=True):
        assert server.sql(f"SELECT count(*), count(*) FILTER (WHERE id > {id}) FROM {table}") == [(200, 100)]
    assert server.sql("SELECT count(*) FROM orders WHERE at = flake_timestamp(id)") == [(200,)]
    with server.connect(user="app") as app:
        assert app.execute("SELECT flake_seal(42, 'usr')").fetchone() == (sealed,)
        app.execute("INSERT INTO orders VALUES (DEFAULT)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app.execute("SELECT flake_unseal('x', 'usr')")
    assert server.value(f"SELECT flake_unseal('{sealed}', 'usr')") == 42
    assert server.value("SELECT count(*) FROM flake_layouts") == 24
    assert server.value("SELECT count(*) FROM flake_batch('twitter', 10)") == 10
    assert server.value("SELECT bool_and(ok IS NOT false) FROM flake_check()")
    with server.connect() as db:
        db.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        for condition, index in [
            ("flake_timestamp(id, 'leaf') = now()", "by_time"), ("flake_during(id, '[2026-01-01Z,2026-01-02Z)')", "orders_pkey"),
            ("flake_timestamp(id) > now() - interval '1 hour'", "orders_pkey"),
        ]:  # fmt: skip
            plan = "\n".join(line for line, in db.execute(f"EXPLAIN SELECT id FROM orders WHERE {condition}").fetchall())
            assert index in plan, plan


def test_sessions_that_insert_meanwhile_make_no_id_twice(server):
    server.sql("CREATE TABLE made (id bigint DEFAULT flake_next('twitter'))")
    counts = [0] * 4

    def insert(number):
        with server.connect(prepare_threshold=0) as db:
            while not work.ends.is_set():
                try:
                    db.execute("INSERT INTO made SELECT FROM generate_series(1, 20)")
                    counts[number] += 1
                except (psycopg.errors.UndefinedTable, psycopg.errors.InternalError_, psycopg.errors.UndefinedFunction,
                        psycopg.errors.InvalidSchemaName):  # fmt: skip
                    # The sequences were dropped between the plan and its execution.
                    pass

    work = Background(*[lambda number=number: insert(number) for number in range(4)])
    with work:
        wait_until(lambda: min(counts) > 5)
        managed.leave(server)
        before = list(counts)
        wait_until(lambda: all(count > old + 20 for count, old in zip(counts, before, strict=True)))
    assert server.value("SELECT count(*) = count(DISTINCT id) AND count(*) > 3000 FROM made")


def test_a_key_that_is_created_meanwhile_moves(server):
    server.sql("ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'")
    managed.create_extension(server)
    with server.connect() as creator, server.connect() as db:
        db.execute("SET lock_timeout = '20s'")
        creator.execute("BEGIN; SELECT flake_create_key('usr', 'twitter')")
        sealed, = creator.execute("SELECT flake_seal(42, 'usr')").fetchone()
        with Background(lambda: db.execute(managed.LEAVING.read_text())):
            waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'flake.key'::regclass"
            wait_until(lambda: server.value(waits))
            creator.execute("COMMIT")
    assert server.value("SELECT flake_unseal(%s, 'usr')", sealed) == 42


@pytest.mark.parametrize("using", [
    "CREATE TABLE t (id bigint, at timestamptz GENERATED ALWAYS AS (flake.start_of(id, 'twitter')) STORED)",
    "CREATE TABLE t (d flake.division)", "CREATE TABLE t (id bigint DEFAULT nextval('flake.si'))",
    "CREATE TABLE t (id bigint DEFAULT flake_next('si')); CREATE ROLE other; ALTER FUNCTION flake_next(text) OWNER TO other",
])  # fmt: skip
def test_nothing_that_uses_the_edition_is_dropped(server, using):
    server.sql(using)
    managed.create_extension(server)
    columns = """SELECT count(*), count(*) FILTER (WHERE atthasdef) FROM pg_attribute
                 WHERE attrelid = 't'::regclass AND NOT attisdropped"""
    before = server.sql(columns)
    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        server.sql(managed.LEAVING.read_text())
    assert server.sql(columns) == before
    assert server.value("SELECT flake_next('twitter') > 0")


def test_the_server_must_be_the_node_of_the_edition(own_servers):
    server = own_servers("flake.node_id=1", "flake.node_count=4", extension=False)
    managed.install(server, node=(2, 4))
    managed.create_extension(server)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="node 2 of 4, and the server is node 1 of 4"):
        server.sql(managed.LEAVING.read_text())
    server.sql("SELECT flake_set_node(1, 4)")
    managed_ids = server.sql("SELECT flake_batch('twitter', 3)")
    server.sql(managed.LEAVING.read_text())
    assert server.sql("SELECT flake_batch('twitter', 3)") > managed_ids


def test_it_waits_for_ids_of_the_future(server):
    far = server.value("SELECT flake_min(now() + interval '10 min', 'si')")
    server.sql("SELECT flake_start_above(%s, 'si')", far)
    managed.create_extension(server)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match='clock is behind the last ID of layout "si"'):
        server.sql("SET statement_timeout = '20s';" + managed.LEAVING.read_text())
    assert server.value("SELECT flake_next('twitter') > 0")


def test_the_extension_begins_after_the_tick_in_which_the_edition_ends(server):
    """Ticks of base64id are seconds."""
    managed.create_extension(server)
    wait_until(lambda: server.value("SELECT extract(microseconds FROM clock_timestamp())::bigint % 1000000 < 100000"))
    tick = "SELECT flake_timestamp(flake_next('base64id'), 'base64id')"
    before = server.value(tick)
    server.sql(managed.LEAVING.read_text())
    assert server.value(tick) > before
