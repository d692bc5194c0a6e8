"""A server takes over another server's data, without knowing from its own memory what the other one did."""

import pytest

from clients import Made
from standing_clock import at, attempts, fail_over, insert, open_ledger, pass_through, server_at_0


def part(own_servers):
    """A primary with IDs from when its clock was ahead, a promoted standby with another number, and those IDs."""
    first, made = server_at_0(own_servers, "flake.node_count=2", "flake.node_id=0", "wal_log_hints=on"), Made()
    second = own_servers("flake.node_id=1", standby_of=first, clock=at(0))
    first.set_clock(at(40))
    insert(first, made)
    second.wait_for_replay(first)
    first.set_clock(at(0))
    attempts(first, made)
    first.sql("CREATE TABLE plain ()")
    second.wait_for_replay(first)
    second.promote()
    first.sql("CREATE TABLE lost ()")
    return first, second, made


@pytest.fixture
def parted(own_servers):
    return part(own_servers)


def rewind_and_switch_back(first, second):
    """Makes the first server a standby of the second one, and then the primary again."""
    first.stop("fast")
    second.sql("CHECKPOINT")
    first.rewind(second)
    first.launch()
    first.wait_for_replay(second)
    assert first.value("SELECT pg_is_in_recovery()")
    second.stop("fast")
    first.promote()


def test_a_file_that_pg_rewind_brings_is_not_this_servers_memory(parted):
    """A file that pg_rewind has copied is the other node's."""
    first, second, made = parted
    open_ledger(second, made)
    second.set_clock(at(3))
    insert(second, made)
    rewind_and_switch_back(first, second)
    pass_through(first, made, 3, 40)


REPLACED = ["DROP EXTENSION flake CASCADE; CREATE EXTENSION flake", "ALTER SEQUENCE flake_internal.flake_mark NO CYCLE"]


@pytest.mark.parametrize("statements", REPLACED)
def test_notes_in_a_page_that_is_rolled_back_do_not_count(own_servers, statements):
    """A rollback removes a page. Records about it must not apply to the page that is there then."""
    primary, made = server_at_0(own_servers), Made()
    standby = own_servers(standby_of=primary, clock=at(-3600))
    insert(primary, made)
    primary.set_clock(at(60))
    with primary.connect() as db:
        db.execute(f"BEGIN; {statements}")
        made.add(db.execute("SELECT flake_next('twitter')::text").fetchall(), ["twitter"])
        db.execute("ROLLBACK")
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    fail_over(primary, standby)
    pass_through(standby, made, -3600, 0, 60)
