"""A server that takes over another's data makes IDs at once, and none of the other's or below its watermarks, even if clocks are
wrong.

The timeline of its WAL gives it another part of the node's IDs. test_turns.py has servers that run beside each other, and
test_restored.py has copies and upgrades.
"""

import pytest

from clients import Made
from standing_clock import (
    TABLE,
    at,
    attempts,
    fail_over,
    insert,
    make_in_all,
    open_ledger,
    pass_through,
    restart_with_nothing_to_replay,
    server_at_0,
)  # fmt: skip
from watermark import announce, below, goes_on

DATABASES = ["postgres", "other"]


@pytest.mark.parametrize("how", ["failover", "switchover"])
@pytest.mark.parametrize("first", DATABASES)
def test_no_id_is_made_twice_after_a_failover(own_servers, first, how):
    """The new primary's clock is behind, and later comes to the instants at which the old one made IDs and announced watermarks.
    No ID waits for that. The one database or the other opens the ledger, and the other one is used later."""
    primary, made = server_at_0(own_servers), Made()
    primary.sql("CREATE DATABASE other")
    for statement in ["CREATE EXTENSION flake", TABLE]:
        with primary.connect(dbname="other") as db:
            db.execute(statement)
    standby = own_servers(standby_of=primary, clock=at(-3600))
    primary.set_clock(at(60))
    for dbname in DATABASES:
        make_in_all(primary, made, dbname=dbname)
    announced = {dbname: announce(primary, dbname) for dbname in DATABASES}
    # The last commit is from before the IDs.
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    if how == "switchover":
        restart_with_nothing_to_replay(primary, standby)
        primary.stop("fast")
        standby.promote()
    else:
        fail_over(primary, standby)
    new = Made()
    for dbname in sorted(DATABASES, key=first.__ne__):
        make_in_all(standby, new, dbname=dbname)
    for dbname in DATABASES:
        pass_through(standby, new, -3600, 0, 60, dbname=dbname)
    assert new.common(made) == set() and len(new) > 0
    assert [below(standby, new, announced[dbname]) for dbname in DATABASES] == [set(), set()]


@pytest.mark.matrix
@pytest.mark.parametrize("number", ["same number", "another number"])
@pytest.mark.parametrize("behind", [3, 3600])
def test_no_id_is_below_a_watermark_after_a_failover(own_servers, number, behind):
    """The watermark was published on the primary, which has made no ID since, and returned by the standby."""
    own = ["flake.node_id=1"] if number == "another number" else []
    primary = server_at_0(own_servers, "flake.node_count=2")
    standby = own_servers(*own, standby_of=primary, clock=at(-behind))
    primary.set_clock(at(60))
    announced = primary.value("SELECT flake_publish_watermark()::text")
    standby.wait_for_replay(primary)
    assert announce(standby) == announced
    fail_over(primary, standby)
    goes_on(standby, announced, -behind, 0, 59, 60)


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


@pytest.mark.matrix
def test_a_file_that_pg_rewind_brings_is_not_this_servers_memory(own_servers):
    """A file that pg_rewind has copied is the other node's."""
    first, second, made = part(own_servers)
    open_ledger(second, made)
    second.set_clock(at(3))
    insert(second, made)
    rewind_and_switch_back(first, second)
    pass_through(first, made, 3, 40)


REPLACED = ["DROP EXTENSION flake CASCADE; CREATE EXTENSION flake", "ALTER SEQUENCE flake_internal.flake_mark NO CYCLE"]


@pytest.mark.matrix
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
