"""A server goes on with another's data, and cannot know from its own memory what the other one did."""

import shutil
import time

import pytest

from clients import Made
from standing_clock import (
    at,
    attempt,
    attempts,
    fail_over,
    fast_enough,
    goes_on,
    insert,
    make,
    open_ledger,
    pass_through,
    server_at_0,
    stop_replaying,
)  # fmt: skip


@pytest.mark.parametrize("other_first", [False, True])
def test_a_second_database(own_servers, other_first):
    """The new primary has made IDs in another database before, and its own mark is as high as the old one's."""
    old, made = server_at_0(own_servers), Made()
    old.sql("CREATE DATABASE other")
    with old.connect(dbname="other") as db:
        db.execute("CREATE EXTENSION flake")
    new = own_servers(standby_of=old, clock=at(100))
    old.set_clock(at(102.9))
    insert(old, made)
    fail_over(old, new)
    if other_first:
        with new.connect(dbname="other") as db:
            attempt(db, Made())
            new.set_clock(at(102.9))
            attempt(db, Made())
    new.set_clock(at(102.9))
    attempts(new, made)
    pass_through(new, made, 102.9)


@pytest.mark.parametrize("slots", ["their slots", "other slots"])
def test_time_that_sessions_of_another_database_were_granted(own_servers, slots):
    """The next owners of their slots go on in their tick, others begin in it, and the mark of their own database has to be above
    it."""
    old, made = server_at_0(own_servers), Made()
    old.sql("CREATE DATABASE other TEMPLATE postgres")
    new = own_servers(standby_of=old, clock=at(0))
    old.set_clock(at(60))
    with old.connect() as db:
        make(db, Made())
        if slots == "their slots":
            db.close()
            insert(old, Made())
        insert(old, made, dbname="other")
    old.set_clock(at(0))
    old.sql("CREATE TABLE plain ()")
    fail_over(old, new)
    # The second time, its sessions come to where those of the other database had stopped.
    pass_through(new, made, 0, 60, 60, dbname="other")


@pytest.mark.parametrize("behind", [0, 0.9, 3])
def test_the_old_primary_goes_on_ahead_of_the_new_ones_clock(own_servers, behind):
    """For less than two seconds after the promotion."""

    def is_played():
        old, made = server_at_0(own_servers), Made()
        new = own_servers(standby_of=old, clock=at(101.9 - behind))
        for seconds in [100, 101.9]:
            old.set_clock(at(seconds))
            insert(old, made)
        new.wait_for_replay(old)
        stop_replaying(new)
        if not goes_on(old, new, made, 103.5):
            return False
        old.stop("immediate")
        pass_through(new, made, 103.5)
        return True

    fast_enough(is_played)


def test_a_standby_takes_over_another_number(own_servers):
    """It has run under a number of its own. The old primary was idle."""

    def is_played():
        old, made = server_at_0(own_servers, "flake.node_count=2", "flake.node_id=0"), Made()
        new = own_servers("flake.node_id=1", standby_of=old, clock=at(100))
        old.set_clock(at(100))
        new.wait_for_replay(old)
        new.restart("flake.node_id=0", "primary_conninfo=")
        if not goes_on(old, new, made, 100, 100.5):
            return False
        old.stop("immediate")
        pass_through(new, made, 100, 100.5)
        return True

    fast_enough(is_played)


def part(own_servers):
    """A primary with IDs from when its clock was ahead, a standby with another number that was promoted, and those IDs."""
    first, made = server_at_0(own_servers, "flake.node_count=2", "flake.node_id=0", "wal_log_hints=on"), Made()
    second = own_servers("flake.node_id=1", standby_of=first, clock=at(0))
    first.set_clock(at(40))
    insert(first, made)
    second.wait_for_replay(first)
    first.set_clock(at(0))
    assert "twitter" in attempts(first, made)
    first.sql("CREATE TABLE plain ()")
    second.wait_for_replay(first)
    second.promote()
    first.sql("CREATE TABLE lost ()")
    return first, second, made


@pytest.fixture
def parted(own_servers):
    return part(own_servers)


def rewind_and_switch_back(first, second):
    """The first one becomes a standby of the second one, and the primary again."""
    first.stop("fast")
    second.sql("CHECKPOINT")
    first.rewind(second)
    first.launch()
    first.wait_for_replay(second)
    assert first.value("SELECT pg_is_in_recovery()")
    second.stop("fast")
    first.promote()


def test_rewind_where_every_node_has_its_own_number(parted):
    """A file that pg_rewind has brought is the other node's memory, not this one's."""
    first, second, made = parted
    open_ledger(second, made)
    second.set_clock(at(3))
    insert(second, made)
    rewind_and_switch_back(first, second)
    pass_through(first, made, 3, 40)


def test_an_old_primary_that_is_made_anew_with_the_mark_that_it_had(parted, own_servers):
    """Neither the new primary's file nor its WAL knows of the IDs from after the promotion."""
    first, second, made = parted
    first.set_clock(at(60))
    insert(first, made)
    first.stop()
    anew = own_servers("flake.node_id=0", standby_of=second, clock=at(3))
    anew.stop()
    shutil.copyfile(*(server.dir / "data" / "flake.mark" for server in (first, anew)))
    anew.launch()
    second.stop()
    anew.promote()
    # The new primary would make IDs then.
    for seconds in 50, 51:
        anew.set_clock(at(seconds))
        refused = attempts(anew, made)
    assert "twitter" in refused
    pass_through(anew, made, 60)


def test_another_node_drops_the_extension_and_creates_it_again(parted):
    """The marks of other nodes were in the page that is gone."""
    first, second, made = parted
    attempts(second, made)
    second.sql("DROP EXTENSION flake CASCADE")
    second.sql("CREATE EXTENSION flake")
    attempts(second, made)
    rewind_and_switch_back(first, second)
    pass_through(first, made, 3, 40)


REPLACED = ["DROP EXTENSION flake CASCADE; CREATE EXTENSION flake", "ALTER SEQUENCE flake_mark NO CYCLE"]


@pytest.mark.parametrize("statements", REPLACED)
def test_a_page_that_is_rolled_back(own_servers, statements):
    """Notes in a page that a rollback takes away say nothing of the page that is there."""
    primary, made = server_at_0(own_servers), Made()
    standby = own_servers(standby_of=primary, clock=at(-3600))
    insert(primary, made)
    # A server that has just begun waits where it finds marks that are not its own.
    time.sleep(2)
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
