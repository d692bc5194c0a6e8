"""managed/flake.sql over promotions: an old primary that still runs and the new one make different IDs."""

import itertools
import random

import psycopg
import pytest

import managed
from standing_clock import at
from test_managed_making import managed_server
from turn_model import TURNS, Record, counted, first_free, followed, nearest_of_all
from waiting import Waiting

# How many numbers of timelines restores elsewhere have taken before a promotion.
SKIPPED = [3, 0, 1, 4, 2, 0, 0, 3, 7, 2]
LAYOUTS = ["twitter", "si_single", "uniqueid", "sonyflake"]


@pytest.mark.matrix
def test_the_rule_leaves_as_many_promotions_between_two_of_the_same_turn_as_it_can():
    assert min(nearest_of_all(counted)) == min(nearest_of_all(counted, lags=1)) == 4
    assert min(nearest_of_all(counted, skip=0.3)) == 3
    # A rule that looks at a number alone lets two timelines that know nothing of each other have the same turn more often.
    lagging = {"skip": 0.3, "lags": 1}
    assert nearest_of_all(counted, **lagging)[1] < nearest_of_all(first_free, **lagging)[1] / 2


def test_its_turns_are_the_models(own_servers):
    server = managed_server(own_servers)
    draw = random.Random(1)
    tried = [(Record(), 1), (Record(5, 1), 5), (Record(9, 2, 8, 1), 1), (Record(2**29 - 1, 3, 2**29 - 2, 2), 1)]
    for _ in range(3000):
        last, before = draw.randint(1, 40), draw.randint(0, 40)
        turns = draw.sample(range(TURNS), 2)
        record = Record(last, turns[0], before, turns[1] if before else 0)
        tried.append((record, draw.choice([last, last + 1, last + 2, draw.randint(1, 60)])))
    numbers = [list(column) for column in zip(*((record.number(), timeline) for record, timeline in tried), strict=True)]
    rows = "unnest(%s::bigint[], %s::bigint[]) WITH ORDINALITY x (r, t, n)"
    found = server.sql(f"SELECT flake.followed(r, t) FROM {rows} ORDER BY n", *numbers)
    assert [number for number, in found] == [followed(counted, timeline, record).number() for record, timeline in tried]


def skip_numbers(standby, timeline, count):
    """Restores elsewhere have left their histories in the archive. They branched off before what this server has replayed."""
    for number in range(timeline + 1, timeline + 1 + count):
        standby.write(f"pg_wal/{number:08X}.history", f"{timeline}\t0/1000000\tno recovery target specified\n")


@pytest.mark.matrix
def test_no_row_of_an_old_primary_has_an_id_of_its_successors(own_servers):
    """Their sequences and their clocks are alike, and numbers of timelines are skipped. Two old primaries still run."""
    primaries, timeline = [managed_server(own_servers, clock=at(0))], 1
    primaries[0].sql("CREATE TABLE made (id bigint, layout text)")
    for skipped in SKIPPED:
        standby = own_servers(standby_of=primaries[-1], clock=at(0))
        standby.wait_for_replay(primaries[-1])
        skip_numbers(standby, timeline, skipped)
        standby.promote()
        timeline += skipped + 1
        assert standby.value("SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)") == f"{timeline:08X}"
        primaries.append(standby)
        made = []
        for server in primaries[-3:]:
            # The clock stands: in a tick that is used up, a session would wait for ever.
            server.set_clock(at(len(primaries)))
            server.sql("TRUNCATE made")
            for layout in LAYOUTS:
                server.sql("INSERT INTO made SELECT flake_batch(%s, 300), %s", layout, layout)
            made.append(set(server.sql("SELECT id, layout FROM made")))
            assert len(made[-1]) == 300 * len(LAYOUTS)
        assert all(one.isdisjoint(other) for one, other in itertools.combinations(made, 2)), timeline
        if len(primaries) > 2:
            primaries[-3].stop()
    assert primaries[-1].sql("SELECT bool_and(ok) FROM flake_check() WHERE name <> 'rights'") == [(True,)]


def turn_of(db):
    """Of a node that is alone, with 128 workers of twitter in a turn."""
    return db.execute("SELECT (flake_decode(flake_next('twitter'))).worker / 128").fetchone()[0]


@pytest.mark.matrix
def test_a_session_that_was_connected_to_a_standby_has_the_turn_of_the_new_primary(own_servers):
    primary = managed_server(own_servers)
    standby = own_servers(standby_of=primary)
    with standby.connect() as db, primary.connect() as old:
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction, turn_of, db)
        standby.wait_for_replay(primary)
        standby.promote()
        assert (turn_of(old), turn_of(db)) == (1, 2)


@pytest.mark.matrix
def test_a_session_follows_the_timeline_of_the_last_checkpoint_if_the_server_shows_no_other(own_servers):
    primary = managed_server(own_servers)
    primary.sql("CREATE ROLE service LOGIN")
    primary.sql("CREATE DATABASE service OWNER service")
    with primary.connect(dbname="service") as db:
        db.execute("REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC")
    managed.install(primary, "service", user="service")
    standby = own_servers(standby_of=primary)
    standby.wait_for_replay(primary)
    standby.promote()
    standby.sql("CHECKPOINT")
    with standby.connect(dbname="service", user="service") as db:
        assert turn_of(db) == 2
        # A session must not plan what changes while the server runs as a constant.
        assert db.execute("SELECT provolatile FROM pg_proc WHERE oid = 'flake.turn()'::regprocedure").fetchone() == ("v",)


def test_two_sessions_can_set_the_node_at_the_same_time(own_servers):
    """The second one waits for the first one's transaction."""
    server = managed_server(own_servers)
    with server.connect() as db, server.connect() as other:
        db.execute("BEGIN; SELECT flake_set_node(1, 4)")
        waiting = Waiting(server, other, lambda other: other.execute("SELECT flake_set_node(2, 4)"))
        # Sessions make IDs meanwhile.
        assert server.value("SELECT count(*) FROM flake_batch('twitter', 10)") == 10
        db.execute("COMMIT")
        waiting.end()
        assert server.value("SELECT node_id FROM flake.installation()") == 2
