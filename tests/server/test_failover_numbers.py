"""Failovers where servers have numbers of their own."""

import psycopg
import pytest

from clients import Made
from standing_clock import at, cancelled, fail_over, insert, make_in_all, open_ledger, pass_through, server_at_0


def test_a_standby_with_its_own_number_does_not_wait(own_servers):
    """IDs that the primary made with its clock ahead are no concern of another node."""
    primary, made = server_at_0(own_servers, "flake.node_count=2", "flake.node_id=0"), Made()
    primary.set_clock(at(40))
    insert(primary, made)
    standby = own_servers("flake.node_id=1", standby_of=primary, clock=at(0))
    primary.set_clock(at(41))
    insert(primary, made)
    fail_over(primary, standby)
    open_ledger(standby, made)
    standby.set_clock(at(1.5))
    make_in_all(standby, made)
    assert standby.value("SELECT (flake_decode(twitter::bigint)).worker < 512 FROM kept LIMIT 1")
    assert standby.value("SELECT (flake_decode(flake_next('twitter'))).worker >= 512")


@pytest.mark.parametrize("way", ["restart", "without its file", "failover"])
def test_another_node_count_counts_for_every_node(own_servers, way):
    """The workers of a node may have been another's, so its marks hold for all."""
    server, made = server_at_0(own_servers), Made()
    numbers = ["flake.node_count=32", "flake.node_id=5"]
    standby = own_servers(*numbers, standby_of=server, clock=at(0))
    server.set_clock(at(3600))
    insert(server, made)
    server.set_clock(at(0))
    server.sql("CREATE TABLE plain ()")
    if way == "failover":
        fail_over(server, standby)
        server = standby
    else:
        server.stop()
        if way == "without its file":
            (server.dir / "data" / "flake.mark").unlink()
        server.launch(*numbers)
    with server.connect() as db:
        for kind in ["twitter", "base64id"]:
            with cancelled(db):
                error = pytest.raises(psycopg.Error, db.execute, f"SELECT flake_next('{kind}')").value
            assert isinstance(error, psycopg.errors.ObjectNotInPrerequisiteState)
    pass_through(server, made, 0, 3600)
