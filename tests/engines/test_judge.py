"""The faults that the judge of the engines' tests finds, and the cases that it forgives."""

import types

import pytest

from judge import TICK, Event, Judge
from service import Batch

BEGAN, PROMOTED = 100, 120
OLD, NEW, OWN = (types.SimpleNamespace(name=name, number=number) for name, number in [("a", 3), ("b", 3), ("c", 4)])


def found(*batches, rows=()):
    """Counts duplicate IDs, duplicate ticks, and both of these that are forgiven."""
    event = Event("killed", types.SimpleNamespace(primary=OLD))
    event.began, event.promoted = BEGAN, PROMOTED
    judge = Judge(types.SimpleNamespace(batches=dict(enumerate(batches))), [event])
    judge.look("ids", rows)
    judge.look_at_ticks()
    assert event.ids == sum(len(batch.ids) for batch in batches)
    return event.duplicates, event.ticks, event.exempt_duplicates, event.exempt_ticks


def by(member, ended, *ids):
    return Batch(member, 0 if member is OLD else PROMOTED, ended - 1, ended, ids)


def test_an_id_made_twice_is_found():
    assert found(by(OLD, 99, 1, 2), by(OLD, 101, 3)) == (0, 0, 0, 0)
    assert found(by(OLD, 99, 1, 1)) == (1, 0, 0, 0)
    assert found(by(OLD, 99, 1), by(OLD, 101, 1)) == (1, 0, 0, 0)
    assert found(by(OLD, 99, 1), by(NEW, 125, 1)) == (1, 1, 0, 0)


def test_a_row_with_a_returned_id_is_not_a_duplicate():
    assert found(by(OLD, 99, 1, 2), rows=[(0, 1), (0, 2)]) == (0, 0, 0, 0)
    assert found(by(OLD, 99, 1), rows=[(0, 1), (0, 1)]) == (1, 0, 0, 0)
    # The response was lost.
    assert found(by(OLD, 99, 1), by(NEW, 125), rows=[(1, 1)]) == (1, 0, 0, 0)


def test_a_tick_of_two_primaries_is_found():
    assert found(by(OLD, 99, 1 << TICK), by(NEW, 125, (1 << TICK) + 1)) == (0, 1, 0, 0)
    assert found(by(OLD, 99, 1 << TICK), by(OWN, 125, (1 << TICK) + 1)) == (0, 0, 0, 0)


@pytest.mark.parametrize("kept", [PROMOTED - 1, PROMOTED - 8], ids=["no lag", "replication had ended"])
def test_an_old_primary_is_forgiven_ids_two_seconds_after_the_last_that_were_replicated(kept):
    last = by(OLD, kept, 9 << TICK)
    for new, seconds, counts in [(NEW, 1.5, (1, 1, 0, 0)), (NEW, 2.5, (0, 0, 1, 1)), (OWN, 2.5, (1, 0, 0, 0))]:
        assert found(last, by(new, 125, 1), by(OLD, kept + seconds, 1), rows=[(0, 9 << TICK)]) == counts


def test_a_primary_that_comes_back_is_forgiven_what_pg_rewind_took_from_it():
    again = Batch(OLD, 130, 139, 140, (1,))
    assert found(by(OLD, PROMOTED - 1, 1), again) == (1, 1, 0, 0)
    assert found(by(OLD, PROMOTED + 1, 1), again) == (0, 0, 1, 1)
