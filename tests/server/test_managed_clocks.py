"""managed/flake.sql when clocks are set: IDs count on, by up to an hour ahead of the clock."""

import psycopg
import pytest

from standing_clock import at, running
from test_managed_making import clocked
from waiting import LONG, Waiting

__all__ = ["clocked"]
STATE = psycopg.errors.ObjectNotInPrerequisiteState
HOUR = 3600
MADE = "SELECT flake_next(%s) FROM generate_series(1, 100)"


def made(server, layout="twitter"):
    return [id for id, in server.sql(MADE, layout)]


def test_ids_count_on_when_the_clock_steps_back_by_up_to_an_hour(clocked):
    clocked.set_clock(at(2 * HOUR))
    ids = made(clocked)
    for seconds in (2 * HOUR - 1, HOUR + 60, HOUR):
        clocked.set_clock(at(seconds))
        ids += made(clocked)
    assert ids == sorted(set(ids))
    clocked.set_clock(at(HOUR - 1))
    for _ in range(3):
        error = pytest.raises(STATE, made, clocked).value
        assert error.diag.message_primary == 'clock is too far behind the last ID of layout "twitter"'
        assert error.diag.message_detail == "The next ID would lead the clock by 3601.000 s, and IDs lead it by up to 3600 s."
        assert "once it has reached 2030-01-01 01:00:00" in error.diag.message_hint
    # The sequences of other layouts are not ahead.
    assert made(clocked, "si")
    clocked.set_clock(at(HOUR))
    ids += made(clocked)
    clocked.set_clock(at(3 * HOUR))
    ids += made(clocked)
    assert ids == sorted(set(ids))
    assert clocked.value(f"SELECT flake_timestamp({ids[-1]}) = clock_timestamp()")


def test_a_tick_that_is_used_up_ahead_of_the_clock_is_followed_by_the_next_one(clocked):
    """The last of 1,024 nodes has 16 IDs of uniqueid in a millisecond. While it waits, it gets no further ahead."""
    clocked.sql("SELECT flake_set_node(1023, 1024)")
    clocked.set_clock(running(HOUR))
    ids = made(clocked, "uniqueid")
    clocked.set_clock(running(60))
    with clocked.connect() as db:
        db.execute(f"SET statement_timeout = '{LONG}s'")
        ids += [id for id, in db.execute("SELECT flake_batch('uniqueid', 2000)").fetchall()]
    assert len(set(ids)) == 2100
    lead = "SELECT max(flake_timestamp(id, 'uniqueid')) - clock_timestamp() <= interval '59 min 1 s' FROM unnest(%s::bigint[]) id"
    assert clocked.value(lead, ids)


def test_a_clock_that_steps_back_while_a_session_raises_the_sequence_lets_nobody_run_in_circles(clocked):
    """The session has read the clock, and waits for the lock."""
    clocked.set_clock(at(HOUR))
    with clocked.connect() as other, clocked.connect() as db:
        db.execute(f"SET statement_timeout = '{LONG}s'")
        other.execute("BEGIN; LOCK TABLE flake.gate")
        making = Waiting(clocked, db, lambda db: db.execute("SELECT flake_timestamp(flake_next('twitter'))::text"))
        clocked.set_clock(at(HOUR - 600))
        other.execute("COMMIT")
        assert making.end().fetchone() == (clocked.value("SELECT (clock_timestamp() + interval '600 s')::text"),)


@pytest.mark.matrix
def test_it_starts_above_an_id(clocked):
    clocked.set_clock(at(HOUR))
    far = clocked.value("SELECT flake_max(now() + interval '59 min')")
    assert clocked.value("SELECT flake_start_above(%s, 'twitter') > flake_timestamp(%s)", far, far)
    assert clocked.value("SELECT flake_start_above(1, 'twitter') > flake_timestamp(%s)", far)
    assert min(made(clocked)) > far
    with pytest.raises(STATE, match="too far ahead"):
        clocked.sql("SELECT flake_start_above(flake_max(now() + interval '2 h'), 'twitter')")
    clocked.sql("SELECT flake_start_above(flake_max(now() + interval '2 h'), 'twitter', true)")
    pytest.raises(STATE, made, clocked)
    clocked.set_clock(at(2 * HOUR + 1))
    assert made(clocked)
    # No value of the sequence is above the last tick; the one of mastodon holds fewer ticks than IDs do.
    for id, layout in [(2**63 - 1, "twitter"), (-1, "discord"), (1 << 62, "mastodon"), (-1, "uniqueid")]:
        with pytest.raises(psycopg.errors.DataError, match=r"above|possible"):
            clocked.sql("SELECT flake_start_above(%s, %s, true)", id, layout)
        assert 0 not in made(clocked, layout)
