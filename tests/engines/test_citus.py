"""Citus: which node makes IDs, filters by time on shards, new nodes, and nodes with the same number."""

import collections
import re

import psycopg
import pytest

from clients import EXPECTED
from pages import recipe
from sharding import PAGE, Section, need, numbered
from waiting import Background, wait_until

# The columns that rows are written with, in addition to the ID.
TABLES = {"orders": "tenant, item", "events": "item", "items": "item"}
LAYOUT = """SELECT flake_create_layout('ours', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}')"""
LAYOUTS = "SELECT count(*) FROM flake_layouts WHERE source = 'custom'"
NUMBERS = recipe(PAGE, "Citus")[-1]


def started(make, numbers):
    """Starts nodes with these numbers. They also connect to themselves through their sockets."""
    nodes = numbered(make, numbers, "Citus", **{"citus.shard_count": 8})
    for node in nodes:
        node.reload(f"citus.local_hostname={node.dir}")
    return nodes


def set_up(make, numbers):
    """Starts nodes with these numbers, the coordinator first, with the tables of the page."""
    need("citus")
    nodes = started(make, numbers)
    with Section("Citus", nodes) as section:
        section.next("conf")
        section.sql_on_each(nodes)
        section.sql(nodes[0])
        assert section.next("sql") == NUMBERS and section.next("text")
    return nodes


@pytest.fixture(scope="module")
def nodes(servers):
    nodes = set_up(servers, range(3))
    nodes[0].sql("""CREATE TABLE copies (LIKE orders INCLUDING ALL); SELECT create_distributed_table('copies', 'tenant');
        CREATE TABLE countries (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text);
        SELECT create_reference_table('countries')""")
    return nodes


def emptied(nodes, *tables):
    nodes[0].sql(f"TRUNCATE {', '.join(tables)}")


def rows(table, count):
    written = ", ".join(f"({n}, 'tea')" if "tenant" in TABLES.get(table, "item") else "('tea')" for n in range(count))
    return f"INSERT INTO {table} ({TABLES.get(table, 'item')}) VALUES {written}"


def made_by(node, table):
    """Returns the numbers of the nodes that have made a table's IDs. Each ID must exist once."""
    found = node.sql(f"SELECT flake_node(id), count(*), count(DISTINCT id) FROM {table} GROUP BY 1")
    assert all(count == ids for _, count, ids in found)
    return {number for number, *_ in found}


def plan(node, statement):
    with node.connect() as db:
        db.execute("SET citus.explain_all_tasks = on")
        return "\n".join(line for line, in db.execute(f"EXPLAIN (VERBOSE, COSTS OFF) {statement}"))


def test_each_node_has_its_number(nodes):
    for node in nodes:
        assert node.sql(NUMBERS) == [(f"This server is node {number} of 8.", 1) for number in range(3)]


@pytest.mark.parametrize("table", [*TABLES, "countries"])
def test_the_node_of_the_client_makes_the_ids_of_rows(nodes, table):
    for number, node in enumerate(nodes):
        emptied(nodes, table)
        for count in [1, 1, 50]:
            node.sql(rows(table, count))
        node.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", f"COPY {table} ({TABLES.get(table, 'item')}) FROM stdin",
                 input="".join(f"{n}\ttea\n" if table == "orders" else "tea\n" for n in range(100)))  # fmt: skip
        assert made_by(node, table) == {number}
        assert {each.value(f"SELECT count(*) FROM {table}") for each in nodes} == {152}


# How a statement is executed, and which node makes its IDs: the nodes with the selected rows, the client's node, or none.
SELECTS = {
    "INSERT INTO copies SELECT * FROM orders": (r"Task Count: 8\n(.*\n)*? +-> +Insert on", "nobody"),
    "INSERT INTO copies (tenant, item) SELECT tenant, item FROM orders": ("method: repartition", "those with rows"),
    "INSERT INTO events (item) SELECT item FROM orders": ("method: repartition", "those with rows"),
    "INSERT INTO items (item) SELECT item FROM orders": ("method: repartition", "those with rows"),
    "INSERT INTO copies (tenant, item) SELECT tenant, item FROM orders LIMIT 200": ("method: pull", "those with rows"),
    "INSERT INTO countries (item) SELECT item FROM orders": ("method: pull", "those with rows"),
    "INSERT INTO copies (tenant, item) SELECT n, 'tea' FROM generate_series(1, 200) n": ("method: pull", "the client's"),
}


@pytest.mark.parametrize("statement", SELECTS)
def test_insert_select_makes_ids_on_the_expected_nodes(nodes, statement):
    method, makers = SELECTS[statement]
    table = statement.split()[2]
    emptied(nodes, "orders")
    nodes[0].sql(rows("orders", 400))
    for number, node in enumerate(nodes):
        emptied(nodes, table)
        assert re.search(method, plan(node, statement))
        node.sql(statement)
        expected = {"nobody": {0}, "the client's": {number}, "those with rows": {1, 2}}[makers]
        found = made_by(node, table)
        assert found <= expected if "LIMIT" in statement else found == expected
        assert node.value(f"SELECT count(*) FROM {table}") in (200, 400)


TIME = {"orders": "flake_timestamp", "events": "flake_timestamp", "items": "sno_timestamp"}
DURING = {"orders": "flake_during", "events": "flake_during", "items": "sno_during"}
FILTERS = [
    "{time}(id) >= '{at}'",
    "{time}(id) BETWEEN '{at}' AND now()",
    "{time}(id) > now() - (now() - '{at}')",
    "{time}(id) >= (SELECT '{at}'::timestamptz)",
    "{during}(id, tstzrange('{at}', NULL))",
    "{during}(id, tstzrange('{at}', now()))",
]


@pytest.fixture(scope="module")
def filled(nodes):
    """Fills the tables with rows of two instants, few of the later one, and indexes what has no index. Returns the later
    instant."""
    coordinator = nodes[0]
    emptied(nodes, *TABLES)
    for table, columns in TABLES.items():
        values = "n % 100, 'tea'" if "tenant" in columns else "'tea'"
        coordinator.sql(f"INSERT INTO {table} ({columns}) SELECT {values} FROM generate_series(1, 20000) n")
    at = coordinator.value("SELECT (clock_timestamp() + interval '10 ms')::text FROM pg_sleep(0.02)")
    wait_until(lambda: coordinator.value("SELECT clock_timestamp() > %s::timestamptz + interval '10 ms'", at))
    for table in TABLES:
        coordinator.sql(rows(table, 50))
    coordinator.sql("CREATE INDEX ON orders (id)")
    coordinator.sql(f"ANALYZE {', '.join(TABLES)}")
    return at


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("table", TABLES)
def test_shards_look_up_a_time(nodes, filled, table, filter):
    filter = filter.format(time=TIME[table], during=DURING[table], at=filled)
    for node in nodes:
        query = f"SELECT item FROM {table} WHERE {filter}"
        conditions = re.findall(r"Index Cond: .*\bid (>=|>) ", plan(node, query))
        assert len(conditions) == 8, plan(node, query)
        assert len(node.sql(query)) == 50


def test_a_filter_by_time_of_a_join_is_a_range_on_shards(nodes, filled):
    query = f"SELECT o.item FROM orders o JOIN orders p USING (tenant) WHERE flake_timestamp(o.id) >= '{filled}' AND p.id = o.id"
    # PostgreSQL derives the condition on the other table from this one.
    assert len(re.findall(r"Index Cond: .*\b[op]\.id >= '\d+'", plan(nodes[0], query))) >= 8
    assert len(nodes[0].sql(query)) == 50


def test_a_new_node_makes_ids_of_its_own(servers, nodes):
    """A new node takes over shards while rows are written through all others. Each row exists once, and the node makes IDs of
    its own."""
    coordinator = nodes[0]
    emptied(nodes, *TABLES)
    coordinator.sql(LAYOUT)
    coordinator.sql("CREATE TABLE ours (id bigint PRIMARY KEY DEFAULT flake_next('ours'), item text)")
    coordinator.sql("SELECT create_distributed_table('ours', 'id')")
    new, = started(servers, [3])
    new.sql("CREATE EXTENSION citus")
    written, refused = collections.defaultdict(set), collections.Counter()

    def write(node):
        turn = 0
        with node.connect() as db:
            while not writers.ends.is_set():
                for table in [*TABLES, "ours"]:
                    turn += 1
                    try:
                        returned = {id for id, in db.execute(f"{rows(table, turn % 7 + 1)} RETURNING id::text")}
                    except EXPECTED as error:
                        refused[str(error)] += 1
                        continue
                    assert len(returned) == turn % 7 + 1 and not returned & written[table]
                    written[table] |= returned

    writers = Background()
    for node in nodes:
        writers.add(write, node)
    with writers:
        wait_until(lambda: len(written["ours"]) > 100)
        coordinator.sql("SELECT citus_add_node(%s, 5432)", str(new.dir))
        writers.add(write, new)
        writers.threads[-1].start()
        coordinator.sql("SELECT rebalance_table_shards()")
        wait_until(lambda: len(written["ours"]) > 1000)
    print(f"Rows written while a node came: {sum(map(len, written.values()))}; refused: {dict(refused)}")
    assert not refused
    assert coordinator.value("SELECT count(*) FROM citus_shards WHERE nodename = %s", str(new.dir)) >= 8
    for table in written:
        found = coordinator.sql(f"SELECT id::text FROM {table}")
        assert len(found) == len(written[table]) and {id for id, in found} == written[table]
    assert made_by(new, "orders") == made_by(new, "items") == {0, 1, 2, 3}
    assert [node.value(LAYOUTS) for node in [*nodes, new]] == [1] * 4
    assert new.sql(NUMBERS) == [(f"This server is node {number} of 8.", 1) for number in range(4)]
    emptied(nodes, "copies")
    coordinator.sql("INSERT INTO copies (tenant, item) SELECT tenant, item FROM orders")
    assert made_by(coordinator, "copies") == {1, 2, 3}


def joined(coordinator, worker):
    """Two nodes with Citus; one is the coordinator."""
    for node in [coordinator, worker]:
        node.sql("CREATE EXTENSION citus")
    coordinator.sql("SELECT citus_set_coordinator_host(%s, 5432)", str(coordinator.dir))
    coordinator.sql("SELECT citus_add_node(%s, 5432)", str(worker.dir))


def test_flake_created_before_citus_works_as_the_page_says(own_servers):
    """The page says how. Once this error is gone, the page and sql/flake.sql can do without."""
    need("citus")
    coordinator, _ = nodes = started(own_servers, [0, 1])
    coordinator.sql("CREATE EXTENSION flake")
    joined(*nodes)
    coordinator.sql("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    with pytest.raises(psycopg.Error, match="invalid role OID: 0"):
        coordinator.sql("SELECT create_distributed_table('orders', 'id')")
    coordinator.sql("REVOKE USAGE ON FOREIGN DATA WRAPPER flake_layout, flake_key FROM PUBLIC")
    coordinator.sql("SELECT create_distributed_table('orders', 'id')")


def test_roles_create_the_extension_and_layouts_on_all_nodes(own_servers):
    """A superuser other than initdb's creates the extension, with a table. An owner with USAGE creates a layout."""
    need("citus")
    coordinator, _ = nodes = started(own_servers, [0, 1])
    joined(*nodes)
    coordinator.sql("CREATE ROLE boss SUPERUSER LOGIN; CREATE ROLE keeper LOGIN; GRANT CREATE ON DATABASE postgres TO keeper")
    with coordinator.connect(user="boss", autocommit=False) as db:
        db.execute("CREATE EXTENSION flake")
        db.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
        db.execute("SELECT create_distributed_table('orders', 'id')")
    owner = "SELECT extowner::regrole::text FROM pg_extension WHERE extname = 'flake'"
    assert [node.value(owner) for node in nodes] == ["boss"] * 2
    coordinator.sql("DROP TABLE orders; DROP EXTENSION flake")
    with coordinator.connect(user="keeper") as db:
        db.execute("CREATE EXTENSION flake")
        for query in (LAYOUT, "SELECT flake_create_key('usr', 'twitter')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(query)
        coordinator.sql("GRANT USAGE ON FOREIGN DATA WRAPPER flake_layout, flake_key TO keeper")
        db.execute(LAYOUT)
        db.execute("SELECT flake_create_key('usr', 'twitter')")
    assert [node.value(LAYOUTS) for node in nodes] == [1] * 2


def test_nodes_with_one_number_make_the_same_ids_and_are_found(own_servers):
    """Both make the same IDs. The page's query shows that; a primary key that begins with another column does not."""
    coordinator, *_ = set_up(own_servers, [0, 1, 1])
    assert coordinator.sql(NUMBERS) == [("This server is node 0 of 8.", 1), ("This server is node 1 of 8.", 2)]
    coordinator.sql("INSERT INTO orders (tenant, item) SELECT n, 'tea' FROM generate_series(1, 50000) n")
    twice = []

    def some_are():
        """Returns whether some IDs are equal within a few milliseconds. On a busy machine, the two nodes may not make IDs at
        the same time."""
        coordinator.sql("INSERT INTO orders (tenant, item) SELECT tenant, 'more' FROM orders WHERE item = 'tea'")
        twice.append(coordinator.value("SELECT count(*) - count(DISTINCT id) FROM orders"))
        return twice[-1] > 0

    wait_until(some_are)
    print(f"Two nodes with one number made {twice[-1]} of {len(twice)} times 50,000 IDs twice")
