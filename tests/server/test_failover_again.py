"""One failover after another: the last server makes none of the IDs of those before it."""

import pytest

from clients import Made
from standing_clock import at, fail_over, insert, open_ledger, pass_through, restart_with_nothing_to_replay, server_at_0


@pytest.fixture
def failed_over(own_servers):
    """A new primary whose clock is behind the IDs of the old one, its standby, and those IDs."""
    first, made = server_at_0(own_servers), Made()
    second = own_servers(standby_of=first, clock=at(0))
    third = own_servers(standby_of=second, clock=at(0))
    first.set_clock(at(60))
    insert(first, made)
    third.wait_for_replay(first)
    fail_over(first, second)
    return second, third, made


def test_two_failovers(failed_over):
    """The second new primary has replayed no commit but one of the first, whose clock was behind."""
    second, third, made = failed_over
    second.sql("CREATE TABLE plain ()")
    fail_over(second, third)
    pass_through(third, made, 0, 60)


def test_two_failovers_with_ids_of_both(failed_over):
    second, third, made = failed_over
    second.set_clock(at(80))
    open_ledger(second, made)
    second.set_clock(at(120))
    insert(second, made)
    second.set_clock(at(0))
    second.sql("CREATE TABLE plain ()")
    fail_over(second, third)
    pass_through(third, made, 0, 60, 80, 120)


def become_standby(server, primary):
    server.write("standby.signal")
    server.launch(f"primary_conninfo=host={primary.dir} user=postgres", "recovery_target_timeline=latest")


def test_there_and_back(own_servers):
    """A switchover to the standby and one back. The first server's own file knows only what it did itself."""
    first, made = server_at_0(own_servers), Made()
    second = own_servers(standby_of=first, clock=at(10))
    insert(first, made)
    second.wait_for_replay(first)
    first.stop("fast")
    second.promote()
    second.set_clock(at(50))
    open_ledger(second, made)
    second.set_clock(at(60))
    insert(second, made)
    (first.dir / "data" / "postgresql.auto.conf").write_text("")
    become_standby(first, second)
    restart_with_nothing_to_replay(second, first)
    second.stop("fast")
    first.promote()
    pass_through(first, made, 0, 50, 60)
