"""Adopted sequences and logical replication: servers with numbers of their own make keys that never meet."""

import re

import pytest

from adopting import IS_ID, ORDERS, adopt, code, is_closed, one, state
from conftest import pg_config
from waiting import Background, wait_until

LOGICAL = ["wal_level=logical", "max_worker_processes=8", "flake.node_count=2"]
MAJOR = int(re.search(r"\d+", pg_config("--version").name)[0])
READY = "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel"
CONFLICTS = "SELECT sum(apply_error_count) FROM pg_stat_subscription_stats"
ROWS = 1000


@pytest.fixture
def nodes(own_servers):
    """Two servers with an application's database that was adopted on one of them, and copied to the other."""
    first, second = (own_servers(f"flake.node_id={node}", *LOGICAL) for node in range(2))
    with first.session() as db:
        db.execute(f"CREATE EXTENSION flake_sequences; {ORDERS}")
        adopt(db)
    schema = first.run("pg_dump", "--schema-only").stdout
    second.sql("DROP EXTENSION flake")
    second.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", input=schema)
    # Such a dump does not set sequences: PostgreSQL's nextval has one number left, which is below all keys.
    assert second.value("SELECT nextval('orders_id_seq')") == -code("twitter")
    return first, second


def subscribe(to, of, publication, options=""):
    to.sql(f"CREATE SUBSCRIPTION s CONNECTION 'host={of.dir} user=postgres dbname=postgres' PUBLICATION {publication} {options}")
    wait_until(lambda: to.value(READY))


def insert(server):
    with server.session() as db:
        for _ in range(ROWS):
            db.execute("INSERT INTO orders (v) VALUES (1)")


@pytest.mark.matrix
def test_two_servers_write_and_no_key_meets_another(nodes):
    first, second = nodes
    first.sql("CREATE PUBLICATION p FOR TABLE orders")
    subscribe(second, first, "p")
    with Background(*[lambda server=server: insert(server) for server in nodes]):
        pass
    wait_until(lambda: second.value("SELECT count(*) FROM orders") == 10 + 2 * ROWS)
    assert second.value(CONFLICTS) == 0
    for server in nodes:
        with server.session() as db:
            assert is_closed(db) and one(db, IS_ID) == (True,)


@pytest.mark.skipif(MAJOR < 19, reason=f"PostgreSQL {MAJOR} does not replicate sequences")
@pytest.mark.parametrize("is_released", [False, True])
def test_replication_of_sequences_opens_none(nodes, is_released):
    """The ranges differ if the sequence counts on one of the servers. PostgreSQL then says so and copies nothing."""
    first, second = nodes
    if is_released:
        first.sql("CALL flake_release('orders', 11)")
    first.sql("CREATE PUBLICATION p FOR ALL SEQUENCES")
    second.sql(f"CREATE SUBSCRIPTION s CONNECTION 'host={first.dir} user=postgres dbname=postgres' PUBLICATION p")
    done = "SELECT srsubstate = 'r' FROM pg_subscription_rel WHERE srrelid = 'orders_id_seq'::regclass"
    wait_until(lambda: second.value(done) or second.value("SELECT sync_seq_error_count > 0 FROM pg_stat_subscription_stats"))
    second.sql("DROP SUBSCRIPTION s")
    with second.session() as db:
        assert is_closed(db) and one(db, IS_ID) == (True,)
        assert state(db, "SELECT nextval('orders_id_seq')") == "2200H"
