"""flake_node: which node made an ID, by the number of nodes that the server knows."""

import re

import psycopg
import pytest

from waiting import wait_until
from watermark import PARALLEL

NODES = [0, 2]
# In addition to built-in layouts, one with four workers, so that each of three nodes has one, and one with two worker fields.
LAYOUTS = ["twitter", "base64id", "sonyflake", "uniqueid", "instagram", "seata", "few", "split"]
CUSTOM = {
    "few": """{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
        {"name": "t", "bits": 41, "role": "timestamp"}, {"name": "w", "bits": 2, "role": "worker"},
        {"name": "k", "bits": 4, "role": "tag"}, {"name": "s", "bits": 10, "role": "sequence"}]}""",
    "split": """{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
        {"name": "t", "bits": 41, "role": "timestamp"}, {"name": "fine", "bits": 3, "role": "worker", "rank": 1},
        {"name": "s", "bits": 10, "role": "sequence"}, {"name": "coarse", "bits": 2, "role": "worker", "rank": 0}]}""",
}
# Snos in automatic partitions, and in a partition of the caller's.
SNOS = {"automatic": "sno_next(n % 256)", "caller's": "sno_next(n % 256, 7)"}
# The first ID of a worker of layout twitter.
WORKER = "flake_make('2026-01-01Z', jsonb_build_object('datacenter', {0} / 32, 'worker', {0} % 32))"
LAST_WORKER = f"CREATE FUNCTION last_worker() RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql RETURN {WORKER.format(1023)}"


def made_by(server):
    """IDs of each kind as calls of flake_node, and the number of the server that made them."""
    calls = {}
    for name, definition in CUSTOM.items():
        server.sql("SELECT flake_create_layout(%s, %s)", name, definition)
    with server.connect() as db:
        for layout in LAYOUTS:
            ids = db.execute(f"SELECT id FROM flake_batch('{layout}', 100) id").fetchall()
            calls[layout] = [f"flake_node({id}, '{layout}')" for id, in ids]
        for kind, call in SNOS.items():
            ids = db.execute(f"SELECT {call}::text FROM generate_series(1, 100) n").fetchall()
            calls[kind] = [f"sno_node('{id}')" for id, in ids]
        return calls, db.execute("SELECT node_id FROM flake_stat").fetchone()[0]


def nodes_of(server, calls):
    return set(server.value(f"SELECT ARRAY[{', '.join(calls)}]"))


@pytest.mark.matrix
def test_each_node_knows_what_each_has_made(servers):
    members = [servers("flake.node_count=3", f"flake.node_id={node}", "max_connections=20") for node in NODES]
    made = [made_by(server) for server in members]
    assert [node for _, node in made] == NODES
    for server in members:
        for calls, node in made:
            assert {kind: nodes_of(server, each) for kind, each in calls.items()} == {kind: {node} for kind in calls}
    # The ends of each part, and the rest: 3 times 341 workers are 1023.
    ends = {0: 0, 340: 0, 341: 1, 681: 1, 682: 2, 1022: 2, 1023: None}
    assert {worker: members[0].value(f"SELECT flake_node({WORKER.format(worker)})") for worker in ends} == ends
    # No node has these IDs: there are fewer workers than nodes, or the layout is read-only.
    assert members[0].sql("""SELECT DISTINCT flake_node(flake_make('2026-01-01Z', '{}', name), name)
                             FROM unnest('{si_single,yitter,pgedge,cockroach}'::text[]) name""") == [(None,)]


@pytest.fixture(scope="module")
def server(servers):
    """A server that is node 1 of 4 at first. The last worker belongs to node 3 of 4, or to node 1 of 2."""
    server = servers("flake.node_count=4", "flake.node_id=1")
    server.sql(LAST_WORKER)
    return server


def counted(server):
    return server.value("SELECT node_count FROM flake_stat")


def test_asking_puts_nothing_in_force(server):
    server.restart("flake.node_count=4")
    assert server.value("SELECT flake_node(last_worker())") == 3
    assert counted(server) is None
    # The configuration counts, as it would for the first ID.
    server.reload("flake.node_count=2")
    assert server.value("SELECT flake_node(last_worker())") == 1
    server.sql("SELECT flake_next('twitter')")
    assert counted(server) == 2
    # From then on, the pinned number counts.
    server.reload("flake.node_count=4")
    with server.connect() as db:
        notices = []
        db.add_notice_handler(notices.append)
        assert db.execute("SELECT flake_node(last_worker()), sno_node(sno_make('2026-01-01Z', 0, 65535))").fetchone() == (1, 1)
        assert notices == []
    assert counted(server) == 2


def test_what_a_client_sets_does_not_count(server):
    server.restart("flake.node_count=4")
    with server.connect(options="-c flake.node_count=2") as db:
        # This session has never seen the configuration.
        for call in ["flake_node(last_worker())", "sno_node(sno_make('2026-01-01Z'))"]:
            error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, f"SELECT {call}").value.diag
            assert error.message_primary == "number of this node is not known"
        assert counted(server) is None
        server.sql("SELECT flake_next('twitter')")
        assert db.execute("SELECT flake_node(last_worker())").fetchone() == (3,)


def test_an_impossible_node_number_is_an_error(server):
    server.restart("flake.node_count=1")
    error = pytest.raises(psycopg.errors.InvalidParameterValue, server.sql, "SELECT flake_node(1)").value.diag
    assert "flake.node_id is 1, but flake.node_count is 1" in error.message_detail
    server.reload("flake.node_count=4")
    assert server.value("SELECT flake_node(last_worker())") == 3


def found_by_workers(server):
    """Returns the least and the greatest node of the last worker's IDs. The leader does not take part, so workers have called
    the function."""
    server.sql("DROP TABLE IF EXISTS big; CREATE TABLE big AS SELECT last_worker() AS id FROM generate_series(1, 20000)")
    query = "SELECT min(flake_node(id)), max(flake_node(id)) FROM big"
    with server.connect() as db:
        db.execute(f"{PARALLEL}; SET max_parallel_workers_per_gather = 2")
        plan = "\n".join(line for line, in db.execute(f"EXPLAIN (ANALYZE, VERBOSE) {query}"))
        below = plan.partition("Gather")[2]
        assert re.search("Workers Launched: [12]", below) and "PARTIAL min(flake_node(" in below, plan
        return db.execute(query).fetchone()


def test_parallel_workers_know_the_same(server):
    """Workers agree before a number is pinned, and if the configuration has changed since."""
    server.restart("flake.node_count=4")
    assert found_by_workers(server) == (3, 3)
    assert counted(server) is None
    server.sql("SELECT flake_next('twitter')")
    server.reload("flake.node_count=2")
    assert found_by_workers(server) == (3, 3)


def test_parallel_workers_know_settings_that_were_removed(servers):
    """The boot values are the configuration's then, because only the configuration can set a preloaded library's settings."""
    server = servers("shared_preload_libraries=flake", "flake.node_count=4", "flake.node_id=1")
    server.sql(LAST_WORKER)
    server.restart()
    configuration = server.dir / "data" / "postgresql.conf"
    configuration.write_text(re.sub(r"^flake\..*\n", "", configuration.read_text(), flags=re.M))
    server.reload()
    wait_until(lambda: server.value("SHOW flake.node_count") == "1")
    assert server.value("SELECT flake_node(last_worker())") == 0
    assert found_by_workers(server) == (0, 0)
    assert counted(server) is None


def test_a_standby_has_its_own_number_of_nodes(servers):
    """The standby has made no ID, and does not pin a number. A promotion does not change that."""
    primary = servers("flake.node_count=4", "flake.node_id=1")
    standby = servers("flake.node_count=4", "flake.node_id=3", standby_of=primary)
    with standby.connect() as db:
        ids = primary.sql("SELECT flake_node(id) FROM flake_batch('twitter', 10) id")
        assert set(ids) == {(1,)}
        assert db.execute(f"SELECT flake_node({WORKER.format(300)}), flake_node({WORKER.format(1023)})").fetchone() == (1, 3)
        assert db.execute("SELECT node_count FROM flake_stat").fetchone() == (None,)
        standby.promote()
        assert db.execute("SELECT flake_node(flake_next('twitter')), sno_node(sno_next())").fetchone() == (3, 3)
        assert db.execute(f"SELECT flake_node({WORKER.format(300)})").fetchone() == (1,)


@pytest.mark.matrix
def test_it_cannot_be_indexed(server):
    """An index would keep results for an earlier number of nodes, so PostgreSQL must refuse it."""
    server.sql("DROP TABLE IF EXISTS kept; CREATE TABLE kept (id bigint)")
    with pytest.raises(psycopg.errors.InvalidObjectDefinition):
        server.sql("CREATE INDEX ON kept (flake_node(id))")
