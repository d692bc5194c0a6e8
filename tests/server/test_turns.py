"""Servers that come from one another make different IDs, while all of them run: a promotion takes another turn of the node's IDs.

The turn follows from the history of the WAL's timeline. So nothing here depends on clocks, on how far a standby lags, or on how
long an old primary runs.
"""

import contextlib
import time

import psycopg
import pytest

from clients import Made
from test_check import findings
from test_restored import recover_beside
from waiting import Background, wait_until

KINDS = {"twitter": "flake_next('twitter')::text", "si": "flake_next('si')::text", "sno": "sno_next(1, 7)::text"}
MAKE = f"INSERT INTO made SELECT {', '.join(KINDS.values())} FROM generate_series(1, 20) RETURNING *"
TABLE = f"CREATE TABLE made ({', '.join(f'{kind} text' for kind in KINDS)})"
SESSIONS = 3
STATE = psycopg.errors.ObjectNotInPrerequisiteState
# Workers of twitter in a part of the only node.
WORKERS = 128


class Both:
    """Sessions of several servers, which make IDs until the end of a `with`."""

    def __init__(self):
        self.made, self.counts = Made(KINDS), {}

    def load(self, *servers):
        return Background(*[lambda server=server: self.run(server) for server in servers for _ in range(SESSIONS)])

    def run(self, server):
        with server.connect() as db:
            while not self.load_now.ends.is_set():
                self.made.add(db.execute(MAKE).fetchall())
                self.counts[server] = self.counts.get(server, 0) + 1

    @contextlib.contextmanager
    def running(self, *servers):
        self.load_now = self.load(*servers)
        with self.load_now:
            yield

    def wait_for_more(self, *servers):
        """Waits until each server has made more IDs."""
        before = dict(self.counts)
        wait_until(lambda: all(self.counts.get(server, 0) >= before.get(server, 0) + 30 for server in servers))


def turn(server):
    """Makes an ID. Returns the turn that it shows."""
    return server.value("SELECT worker FROM flake_decode(flake_next('twitter'))") // WORKERS


def turn_of(history):
    """The rule of flake_core::turn."""
    before, last = None, None
    for timeline in history:
        before, last = last, next(free % 4 for free in range(timeline, timeline + 4) if free % 4 not in (before, last))
    return last


def checked(server):
    with server.connect() as db:
        return findings(db)["turn"]


def promote_to(server, timeline):
    """Promotes a standby to a timeline. PostgreSQL leaves out those whose history exists, as an archive makes it do."""
    now = server.value("SELECT timeline_id FROM pg_control_checkpoint()")
    for left_out in range(now + 1, timeline):
        server.write(f"pg_wal/{left_out:08X}.history")
    server.promote()


def alone_on(own_servers, timeline, **options):
    """Returns a server that was promoted to a timeline, and has made no ID since."""
    primary = own_servers()
    promoted = own_servers("recovery_target_timeline=current", standby_of=primary, **options)
    primary.stop()
    promote_to(promoted, timeline)
    return promoted


def history_file(server, timeline):
    return server.dir / "data" / f"pg_wal/{timeline:08X}.history"


@pytest.mark.matrix
@pytest.mark.parametrize("behind", [0, 60])
@pytest.mark.parametrize("lag", ["none", "paused", "cut off"])
def test_an_old_primary_and_the_new_one_make_no_id_twice(own_servers, lag, behind):
    """The old one does not know of the promotion. The new one waits for nothing, and its IDs are above what it has replicated."""
    old, both = own_servers(clock="+0"), Both()
    old.sql(TABLE)
    new = own_servers(standby_of=old, clock=f"-{behind}")
    with both.running(old):
        both.wait_for_more(old)
        if lag == "paused":
            new.sql("SELECT pg_wal_replay_pause()")
        elif lag == "cut off":
            new.stop_receiving()
        both.wait_for_more(old)
        new.promote()
        both.made.add(new.sql("SELECT flake_next('twitter')::text"), ["twitter"])
        both.wait_for_more(old)
    with both.running(old, new):
        both.wait_for_more(old, new)
        time.sleep(1)
        both.wait_for_more(old, new)


@pytest.mark.matrix
def test_a_copy_at_a_point_in_time_and_the_running_original_make_no_id_twice(own_servers):
    original, both = own_servers(), Both()
    original.sql(TABLE)
    restored = own_servers(copy_of=original)
    with both.running(original):
        both.wait_for_more(original)
        original.sql("SELECT pg_create_restore_point('here')")
        both.wait_for_more(original)
        original.sql("SELECT pg_switch_wal()")
        recover_beside(restored, original, "recovery_target_name=here")
        both.wait_for_more(original)
    with both.running(original, restored):
        both.wait_for_more(original, restored)
    assert checked(restored)[1] == "This server has turn 2 of 0 to 3, on timeline 2."


@pytest.mark.matrix
def test_primaries_that_follow_each_other_have_all_turns(own_servers):
    """All of them run on. The fifth one has the turn of the first."""
    servers, both = [own_servers()], Both()
    servers[0].sql(TABLE)
    with both.running(servers[0]):
        both.wait_for_more(servers[0])
    for _ in range(2, 6):
        servers.append(own_servers(standby_of=servers[-1]))
        assert checked(servers[-1])[1] == "A standby makes no IDs, and has a turn from its promotion on."
        servers[-1].promote()
        assert checked(servers[-1])[1].startswith("From the first ID on, this server has turn ")
    with both.running(*servers[:4]):
        both.wait_for_more(*servers[:4])
    turns = [turn(server) for server in servers]
    assert turns == [1, 2, 3, 0, 1] == [turn_of(range(1, last + 1)) for last in range(1, 6)]
    for timeline, (server, own) in enumerate(zip(servers, turns, strict=True), 1):
        assert checked(server) == (True, f"This server has turn {own} of 0 to 3, on timeline {timeline}.", None)


@pytest.mark.matrix
@pytest.mark.parametrize("timeline", [2, 4, 5, 6, 13])
def test_numbers_that_were_left_out_repeat_no_turn(own_servers, timeline):
    """Timeline 5 or 13 after 1 would have the turn of 1, if the number alone decided it. The name of 13's file has a letter."""
    promoted = alone_on(own_servers, timeline)
    assert turn(promoted) == turn_of([1, timeline]) != turn_of([1])
    ok, detail, _ = checked(promoted)
    assert ok and detail.endswith(f"on timeline {timeline}.")


@pytest.mark.matrix
def test_without_a_history_a_new_primary_makes_no_ids_until_its_turn_is_accepted(own_servers):
    """The core's tests damage the history in other ways."""
    promoted = alone_on(own_servers, 5)
    file = history_file(promoted, 5)
    kept = file.read_bytes()
    file.unlink()
    said = "turn of this server on timeline 5 is not known"
    for call in ["flake_next('twitter')", "flake_batch('si', 2)", "sno_next()", "flake_watermark()", "flake_publish_watermark()"]:
        error = pytest.raises(STATE, promoted.sql, f"SELECT {call}").value.diag
        assert error.message_primary == said
        assert "pg_wal/00000005.history" in error.message_detail and "flake_accept_turn()" in error.message_hint
    ok, detail, hint = checked(promoted)
    assert (ok, detail, hint) == (False, error.message_detail, error.message_hint)
    # The extension can be created, or else nobody could accept the turn.
    promoted.sql("CREATE DATABASE other")
    promoted.sql("CREATE ROLE stranger LOGIN")
    with promoted.connect(dbname="other") as db:
        db.execute("CREATE EXTENSION flake")
    with promoted.connect(user="stranger") as db:
        pytest.raises(psycopg.errors.InsufficientPrivilege, db.execute, "SELECT flake_accept_turn()")
    # Timeline 1 has turn 1, and nothing else is known.
    assert promoted.value("SELECT flake_accept_turn()") == 2 == turn(promoted)
    assert "turn 2 was accepted" in (promoted.dir / "server.log").read_text()
    # The turn is recorded: neither a restart, nor the history, nor a lost file changes it.
    promoted.restart()
    assert turn(promoted) == 2
    promoted.restart(while_stopped=lambda: file.write_bytes(kept))
    assert turn(promoted) == 2
    promoted.restart(while_stopped=lambda: ((promoted.dir / "data/flake.mark").unlink(), file.unlink()))
    assert turn(promoted) == 2 == promoted.value("SELECT flake_accept_turn()")
    assert checked(promoted)[:2] == (True, "This server has turn 2 of 0 to 3, on timeline 5.")


@pytest.mark.matrix
def test_an_upgraded_cluster_takes_another_turn_than_the_old_primary(own_servers):
    """pg_upgrade begins with timeline 1 again, which was the old primary's. The first ID is made in a database that an operator
    used before the upgrade, because flake_check has named it."""
    old, both = own_servers(), Both()
    old.sql(TABLE)
    old.sql("CREATE DATABASE idle")
    with old.connect(dbname="idle") as db:
        db.execute("CREATE EXTENSION flake")
    successor = own_servers(standby_of=old)
    successor.promote()
    assert (turn(old), turn(successor)) == (1, 2)
    with successor.connect(dbname="idle") as db:
        ok, detail, hint = findings(db)["pg_upgrade"]
        assert not ok and detail.startswith("This database was not used since") and hint.startswith("Make an ID in this database")
        db.execute("SELECT flake_next('twitter')")
        assert findings(db)["pg_upgrade"][0]
    successor.stop()
    upgraded = own_servers(upgrade_of=successor)
    upgraded.launch()
    with upgraded.connect(dbname="idle") as db:
        assert not findings(db)["pg_upgrade"][0]
        db.execute("SELECT flake_next('twitter')")
    assert checked(upgraded)[:2] == (True, "This server has turn 3 of 0 to 3, on timeline 1.")
    with both.running(old, upgraded):
        both.wait_for_more(old, upgraded)
    assert turn(upgraded) == 3


SMALL = """SELECT flake_create_layout('small', '{"epoch": "2020-01-01T00:00:00Z", "tick": "1ms", "fields": [
    {"name": "time", "role": "timestamp", "bits": 41}, {"name": "worker", "role": "worker", "bits": 5},
    {"name": "sequence", "role": "sequence", "bits": 2}]}')"""


def test_a_node_with_fewer_ids_in_a_tick_than_parts_makes_none(own_servers):
    server = own_servers("flake.node_count=16", "flake.node_id=15")
    server.sql(SMALL)
    assert server.value("SELECT flake_next('small') & 127") == 15 * 8 + 1
    server.restart("flake.node_count=32")
    detail = "In each tick, this node has 1 worker with 4 sequence numbers each, which cannot be divided into 8 parts."
    hint = "Lower flake.node_count and restart the server, or use a layout with more worker or sequence bits."
    for call in "flake_next('small')", "flake_batch('small', 2)":
        with pytest.raises(STATE) as error:
            server.sql(f"SELECT {call}")
        said = error.value.diag
        assert (said.message_primary, said.message_detail, said.message_hint) == (
            'this node has too few IDs of layout "small"', detail, hint,
        )  # fmt: skip
    with server.connect() as db:
        ok, found, remedy = findings(db)["rates"]
    assert (ok, remedy) == (False, hint)
    assert detail in found
    assert server.value("SELECT flake_next('si') > 0")
