"""Three servers that all write to one table and replicate it to each other, with the settings and commands of
docs/how-to/logical-replication.md. One of them is cut off for a while. FLAKE_TEST_SECONDS says for how long they write."""

import itertools
import os
import subprocess
import time

import pytest

import conftest
import writers
from replication import connected, execute, recipe, settings
from test_upgrades import pg_config
from waiting import wait_until

NODES, CLIENTS_OF_EACH = range(3), 2
SECONDS = float(os.environ.get("FLAKE_TEST_SECONDS", "6"))
# The bits below the timestamp of a twitter ID, and how long its tick is.
TICK, LENGTH = 22, 0.001


class Builtin:
    """PostgreSQL's own subscriptions."""

    HEADING, VERSION, EXTENSION = "Many writers", "18", "plpgsql"
    CUT, BACK = "ALTER SUBSCRIPTION from_{}_to_{} DISABLE", "ALTER SUBSCRIPTION from_{}_to_{} ENABLE"
    CONFLICTS = """
        SELECT sum(value::bigint) FROM pg_stat_subscription_stats s, jsonb_each_text(to_jsonb(s))
        WHERE key LIKE 'confl_%' OR key LIKE '%_error_count'"""

    def conflicts(self, server):
        return server.value(self.CONFLICTS)


class Pglogical:
    """Subscriptions of pglogical, which Debian packages."""

    HEADING, VERSION, EXTENSION = "Many writers with pglogical", "15", "pglogical"
    CUT = "SELECT pglogical.alter_subscription_disable('from_{}_to_{}', true)"
    BACK = "SELECT pglogical.alter_subscription_enable('from_{}_to_{}', true)"

    def conflicts(self, server):
        return (server.dir / "server.log").read_text(errors="replace").count("CONFLICT:")


def known(program, settings):
    """Leaves out a setting that older minor releases do not know."""
    command = [conftest.bindir(program) / "postgres", "--describe-config"]
    newer, described = "output_plugin_libraries", subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [setting for setting in settings if not setting.startswith(newer) or newer in described]


def connect(engine, servers):
    """Runs the first command once for each server, and the second one for each pair."""
    once, for_each_other = recipe(engine.HEADING, "bash")
    for number, server in enumerate(servers):
        execute(server, once, NODE=connected(server), TO=str(number))
    for (to, server), (of, other) in itertools.permutations(enumerate(servers), 2):
        execute(server, for_each_other, NODE=connected(server), OTHER=connected(other), FROM=str(of), TO=str(to))


def cut_off(statement, servers):
    """Cuts the last server off from all others, or reconnects it."""
    *others, last = servers
    for number, other in enumerate(others):
        last.sql(statement.format(number, len(others)))
        other.sql(statement.format(len(others), number))


def is_in_order_of_time(batches):
    """Returns whether no ID that was requested after another one existed has an earlier tick."""
    ended, latest = iter(sorted(batches, key=lambda batch: batch.ended)), 0
    one = next(ended)
    for batch in sorted(batches, key=lambda batch: batch.began):
        while one.ended + LENGTH < batch.began:
            latest, one = max(latest, max(one.ids) >> TICK), next(ended)
        if min(batch.ids) >> TICK < latest:
            return False
    return True


@pytest.mark.parametrize("engine", [Builtin(), Pglogical()], ids=lambda engine: type(engine).__name__)
def test_servers_that_all_write_one_table_agree_in_the_end(own_servers, engine):
    program = pg_config(engine.VERSION)
    if not (conftest.pg_config("--sharedir", program) / "extension" / f"{engine.EXTENSION}.control").exists():
        pytest.skip(f"no {engine.EXTENSION} for PostgreSQL {engine.VERSION}")
    own = [known(program, settings(engine.HEADING, flake_node_id=number)) for number in NODES]
    servers = [own_servers(*each, pg_config=program) for each in own]
    for server in servers:
        server.sql(f"CREATE ROLE app LOGIN; {writers.orders()}")
    connect(engine, servers)
    with writers.Writers(*[[server] for server in servers] * CLIENTS_OF_EACH) as clients:
        for statement in [engine.CUT, engine.BACK, None]:
            time.sleep(SECONDS / 3)
            if statement:
                cut_off(statement, servers)
    count = "SELECT count(*) FROM orders"
    rows = sum(len(batch.ids) for batch in clients.batches.values() if batch.is_committed)
    wait_until(lambda: any(map(engine.conflicts, servers)) or all(server.value(count) == rows for server in servers), 60)
    conflicts = sum(map(engine.conflicts, servers))
    print(f"{engine.HEADING}: {clients.made()} IDs, {clients.twice()} twice; {rows} rows on each, {conflicts} conflicts")
    assert clients.twice() == conflicts == 0
    clients.assert_whole(*servers)
    assert is_in_order_of_time(clients.batches.values())
    of = dict(servers[0].sql("SELECT id, flake_node(id, 'twitter') FROM orders"))
    for number, server in enumerate(servers):
        assert {of[id] for batch in clients.of(server) if batch.is_committed for id in batch.ids} == {number}
