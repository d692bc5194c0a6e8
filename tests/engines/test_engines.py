"""Patroni and pg_auto_failover: failovers, switchovers and members that come back, under load."""

import pytest

from auto_failover_cluster import AutoFailover
from events import play
from member import LIMIT
from patroni_cluster import Patroni
from waiting import wait_until


@pytest.mark.parametrize("own_numbers", [False, True], ids=["one number", "numbers of their own"])
@pytest.mark.parametrize("kind", [Patroni, AutoFailover])
def test_an_engines_failovers_make_no_id_twice(kind, own_numbers):
    with kind(own_numbers) as engine:
        play(engine, f"{kind.__name__}, {'numbers of their own' if own_numbers else 'one number'}")


def test_a_changed_number_waits_for_a_restart():
    """Patroni does not report that the server must restart, but flake_check does."""
    with Patroni(members=1) as engine:
        member, = engine.members
        member.sql("CREATE EXTENSION flake")
        engine.control("edit-config", "--force", "--pg", "flake.node_id=5")
        wait_until(lambda: not member.value("""SELECT ok FROM flake_check() WHERE name = 'settings'"""), LIMIT)
        assert member.value("SELECT node_id FROM flake_stat") == member.number == 3
        assert "Pending restart" not in engine.control("list")
        engine.control("restart", "orders", "--force")
        wait_until(lambda: member.role() == "primary", LIMIT)
        member.sql("SELECT flake_next('twitter')")
        assert member.value("SELECT node_id FROM flake_stat") == 5
