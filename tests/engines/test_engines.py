"""Patroni and pg_auto_failover: failovers, switchovers and members that come back, under load."""

import pytest

from auto_failover_cluster import AutoFailover
from events import play
from patroni_cluster import Patroni


@pytest.mark.parametrize("own_numbers", [False, True], ids=["one number", "numbers of their own"])
@pytest.mark.parametrize("kind", [Patroni, AutoFailover])
def test_engine(kind, own_numbers):
    with kind(own_numbers) as engine:
        play(engine, f"{kind.__name__}, {'numbers of their own' if own_numbers else 'one number'}")
