"""Sharding without an engine: foreign tables, PL/Proxy, and routers that know a shard by the hash of the key."""

import pathlib
import re

import pytest

from sharding import PAGE, Section, need, numbered

IDS = "SELECT id FROM orders"
ISSUED = "SELECT issued FROM flake_stat"


def test_every_section_of_the_page_is_executed():
    """Each section is executed here or in test_citus.py."""
    sources = "".join(pathlib.Path(__file__).with_name(name).read_text() for name in ("test_shards.py", "test_citus.py"))
    assert set(re.findall("^## (.*)$", PAGE.read_text(), re.M)) == set(re.findall(r'Section\("(.*?)"', sources))


def all_ids(shards):
    """Returns the IDs of all shards' rows, which must be different."""
    ids = [id for shard in shards for id, in shard.sql(IDS)]
    assert len(set(ids)) == len(ids)
    return ids


def nodes_of(server, ids):
    return set(server.value("SELECT array_agg(DISTINCT flake_node(id)) FROM unnest(%s) id", ids))


def insert(server):
    """Inserts one row, several, and many, as clients of this server do."""
    server.sql("INSERT INTO orders (tenant, item) VALUES (1, 'one')")
    server.sql("INSERT INTO orders (tenant, item) VALUES (1, 'two'), (2, 'two'), (3, 'two')")
    server.sql("INSERT INTO orders (tenant, item) SELECT n, 'many' FROM generate_series(1, 10000) n")


# Instants that are sent to the shards, as a constant or a parameter, and one that is not, as the page says.
INSTANTS = ["'2026-01-01Z'", "(SELECT now() - interval '1 hour')", "$1"]
KEPT = "now() - interval '1 hour'"
FILTERS = [
    "flake_timestamp(id) >= {}",
    "flake_timestamp(id) BETWEEN {} AND '2100-01-01Z'",
    "flake_during(id, tstzrange({}, NULL))",
]


def plan(server, query, *options):
    """Returns the plan of a statement with a parameter, an instant or a range, whatever its value."""
    value = "tstzrange '[2026-01-01Z,)'" if "$1::tstzrange" in query else "timestamptz '2026-01-01Z'"
    with server.connect(options="-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off") as db:
        db.execute(f"PREPARE planned({value.split()[0]}) AS {query}")
        explained = db.execute(f"EXPLAIN ({', '.join(['COSTS OFF', *options])}) EXECUTE planned({value})").fetchall()
        return "\n".join(line for line, in explained)


def sent(server, filter):
    """The statements that two shards get for it."""
    found = re.findall("Remote SQL: (.*)", plan(server, f"SELECT item FROM orders WHERE {filter}", "VERBOSE"))
    assert len(found) == 2
    return found


def looks_up(shard, query):
    """Returns whether a shard uses the primary key to find the IDs since an instant."""
    return re.search(r"Index Cond: .*id >= (flake_plan\.(since|first)\(.*\$1|'\d{15})", plan(shard, query))


def test_foreign_tables_have_ids_of_their_servers(own_servers):
    need("postgres_fdw")
    server, *shards = numbered(own_servers, range(3))
    with Section("Foreign tables", [server, *shards]) as section:
        section.sql_on_each(shards)
        section.sql(server)
        section.sql(server)
        assert all(shard.value("SELECT count(*) FROM orders") for shard in shards)
        section.sql(server)
        section.sql(server)
    for one in [server, *shards]:
        insert(one)
    made = all_ids(shards)
    assert len(made) == 1000 + 3 * 10004
    assert nodes_of(server, made) == {0, 1, 2}
    for filter in FILTERS:
        for instant in INSTANTS:
            for shard, query in zip(shards, sent(server, filter.format(instant)), strict=True):
                assert looks_up(shard, query), query
        for query in sent(server, filter.format(KEPT)):
            assert "now()" not in query and "$1" not in query
        since = server.value("SELECT flake_timestamp(%s)", sorted(made)[len(made) // 2])
        found = server.value(f"SELECT count(*) FROM orders WHERE {filter.format('%s')}", since)
        assert found == server.value("SELECT count(*) FROM orders WHERE flake_timestamp(id + 0) >= %s", since) > 10000


def test_plproxy_routes_by_the_id(own_servers):
    need("plproxy")
    proxy, *shards = numbered(own_servers, range(3))
    with Section("PL/Proxy", [proxy, *shards]) as section:
        section.sql_on_each(shards)
        section.sql(proxy)
    assert {len(nodes_of(shard, [id for id, in shard.sql(IDS)])) for shard in shards} == {1}
    for shard in shards:
        insert(shard)
    made = all_ids(shards)
    assert len(made) == 1000 + 2 * 10004
    assert nodes_of(shards[0], made) == {1, 2}
    for shard in shards:
        assert looks_up(shard, "SELECT * FROM orders_during(tstzrange($1, NULL))")


@pytest.fixture(scope="module")
def shard(servers):
    """A shard of four that draws IDs until one belongs to it."""
    server, = numbered(servers, [2])
    with Section("Routers that hash the key", []) as section:
        section.sql(server)
    return server


def test_draws_go_where_the_hash_says(shard):
    """PostgreSQL's own partitions agree."""
    shard.sql("CREATE TABLE by_hash (LIKE orders) PARTITION BY HASH (id)")
    for remainder in range(4):
        shard.sql(f"CREATE TABLE by_hash_{remainder} PARTITION OF by_hash FOR VALUES WITH (MODULUS 4, REMAINDER {remainder})")
    shard.sql("INSERT INTO by_hash SELECT * FROM orders")
    assert shard.sql("SELECT DISTINCT tableoid::regclass::text FROM by_hash") == [("by_hash_2",)]
    assert shard.value("SELECT count(DISTINCT id) FROM orders") >= 1000


def test_draws_are_as_many_as_shards_on_average(shard):
    """Each ID is drawn once, and none after the chosen one."""
    before = shard.value(ISSUED)
    with shard.session() as db:
        taken = [id for id, in db.execute("SELECT next_of_shard() FROM generate_series(1, 4000)")]
    issued = shard.value(ISSUED) - before
    assert len(set(taken)) == 4000 and taken == sorted(taken)
    # About 16,000 are expected, with a deviation of 220.
    assert 14500 < issued < 17500


def test_drawing_ids_ends_where_a_shard_does_not_exist(shard):
    """If the number of the shard does not exist, no ID belongs to it."""
    definition = shard.value("SELECT pg_get_functiondef('next_of_shard'::regproc)")
    shard.sql(definition.replace("next_of_shard", "next_of_none").replace("4, 2, ", "2147483647, 2, "))
    before = shard.value(ISSUED)
    with shard.session() as db:
        assert db.execute("SELECT next_of_none()").fetchone() == (None,)
    # The function sees only by a number beyond the range that the range has ended, so it draws one more than the range has.
    assert shard.value(ISSUED) - before == 128 + 1
