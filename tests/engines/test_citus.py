"""Citus: IDs of all nodes, wherever the default is evaluated, filters by time on shards, and nodes that come."""

import re

import psycopg
import pytest

from sharding import Section, need, numbered
from waiting import Background, wait_until

TABLES = {"orders": "tenant, item", "events": "item", "items": "item"}
FEW_SHARDS = {"citus.shard_count": 8}


def set_up(servers, numbers):
    """Nodes with these numbers, the coordinator first, with the tables of the page; the page's query of their numbers."""
    need("citus")
    nodes = numbered(servers, numbers, "Citus", **FEW_SHARDS)
    with Section("Citus", nodes) as section:
        section.next("conf")
        section.sql_on_each(nodes)
        section.sql(nodes[0])
        query = section.next("sql")
        section.next("text")
    return nodes, query


@pytest.fixture(scope="module")
def nodes(servers):
    return set_up(servers, range(3))[0]


def made_by(node, table):
    """Which nodes have made the IDs of a table, each of which is there once."""
    (rows, ids, numbers), = node.sql(f"SELECT count(*), count(DISTINCT id), array_agg(DISTINCT flake_node(id)) FROM {table}")
    assert rows == ids > 0
    return numbers


def emptied(nodes, *tables):
    nodes[0].sql(f"TRUNCATE {', '.join(tables)}")


def values(table, count):
    """As many rows, written out."""
    columns = TABLES[table]
    rows = (f"({n}, 'tea')" if "," in columns else "('tea')" for n in range(count))
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join(rows)}"


@pytest.mark.parametrize("table", TABLES)
def test_rows_that_a_client_writes_have_the_number_of_its_node(nodes, table):
    for number, node in enumerate(nodes):
        emptied(nodes, table)
        for count in [1, 1, 50]:
            node.sql(values(table, count))
        node.sql(f"COPY {table} (item{', tenant' if table == 'orders' else ''}) FROM PROGRAM 'seq -f ''tea\t%g'' 100'"
                 if table == "orders" else f"COPY {table} (item) FROM PROGRAM 'seq 100'")
        assert made_by(node, table) == [number]
        assert node.value(f"SELECT count(*) FROM {table}") == 152


def plan(node, statement, *options):
    return "\n".join(line for line, in node.sql(f"EXPLAIN ({', '.join([*options, 'COSTS OFF'])}) {statement}"))


# INSERT INTO orders … SELECT, what Citus says of it, and whether the nodes that have the rows make the IDs.
KINDS = {
    "pushed down": ("copies", "SELECT tenant, id, item FROM orders", "Task Count: 8"),
}


def test_experiment(nodes):
    c = nodes[0]
    c.sql("CREATE TABLE copies (tenant int, id bigint DEFAULT flake_next('twitter'), item text, PRIMARY KEY (tenant, id))")
    c.sql("SELECT create_distributed_table('copies', 'tenant')")
    c.sql("CREATE TABLE refs (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)")
    c.sql("SELECT create_reference_table('refs')")
    c.sql(values("orders", 100))
    for target, statement in [
        ("copies", "INSERT INTO copies SELECT * FROM orders"),
        ("copies", "INSERT INTO copies (tenant, item) SELECT tenant, item FROM orders"),
        ("copies", "INSERT INTO copies (tenant, item) SELECT tenant, item FROM orders LIMIT 10"),
        ("copies", "INSERT INTO copies (tenant, item) SELECT tenant + 1, item FROM orders"),
        ("events", "INSERT INTO events (item) SELECT item FROM orders"),
        ("events", "INSERT INTO events SELECT id, item FROM orders"),
        ("copies", "INSERT INTO copies (tenant, item) SELECT n, 'x' FROM generate_series(1,100) n"),
        ("copies", "INSERT INTO copies (tenant, item) SELECT tenant, item FROM orders WHERE tenant = 5"),
        ("copies", "INSERT INTO copies (tenant, item) SELECT tenant, item FROM (SELECT tenant, item FROM orders OFFSET 0) o"),
        ("refs", "INSERT INTO refs (item) SELECT item FROM orders"),
        ("refs", "INSERT INTO refs (item) SELECT item FROM refs"),
        ("refs", "INSERT INTO refs (item) VALUES ('x')"),
    ]:
        for number, node in enumerate(nodes):
            if target != "refs":
                emptied(nodes, target)
            try:
                print(statement, "from", number)
                if number == 0: print(plan(node, statement))
                node.sql(statement)
                print("   MADE BY", node.sql(f"SELECT count(*), count(DISTINCT id), array_agg(DISTINCT flake_node(id)) FROM {target}"))
            except psycopg.Error as e:
                print("   ERROR", e)
    print(c.sql("SELECT flake_create_layout('ours', '{\"like\": \"twitter\", \"epoch\": \"2024-01-01T00:00:00Z\"}')"))
    for node in nodes:
        print(node.sql("SELECT srvname FROM pg_foreign_server"))
    for q in ["flake_timestamp(id) >= '2026-01-01Z'", "flake_timestamp(id) >= now() - interval '1 hour'",
              "flake_timestamp(id) BETWEEN now() - interval '1 hour' AND now()", "flake_during(id, tstzrange(now() - interval '1 h', now()))",
              "flake_timestamp(id) >= (SELECT now() - interval '1 hour')"]:
        for t in "events", "orders":
            print(q, t); print(plan(c, f"SELECT item FROM {t} WHERE {q}", "VERBOSE"))
    print(plan(c, f"SELECT count(*) FROM events WHERE {q}", "VERBOSE"))
    print(plan(c, f"SELECT item FROM items WHERE sno_timestamp(id) >= '2026-01-01Z'", "VERBOSE"))
    print(plan(c, f"SELECT o.item FROM orders o JOIN copies USING (tenant) WHERE flake_timestamp(o.id) >= '2026-01-01Z'", "VERBOSE"))
