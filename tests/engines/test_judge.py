"""The faults that the judge of the engines' tests finds. It forgives nothing: two primaries never make the same ID."""

import types

import pytest

from judge import PART, Event, Judge
from service import Batch

BEGAN, PROMOTED = 100, 120
OLD, NEW, OWN = (types.SimpleNamespace(name=name, number=number) for name, number in [("a", 3), ("b", 3), ("c", 4)])


def judged(*batches, rows=()):
    event = Event("killed", types.SimpleNamespace(primary=OLD))
    event.began, event.promoted = BEGAN, PROMOTED
    judge = Judge(types.SimpleNamespace(batches=dict(enumerate(batches))), [event])
    judge.look("ids", rows)
    judge.look_at_ticks()
    assert event.ids == sum(len(batch.ids) for batch in batches)
    return event


def found(*batches, rows=()):
    """Counts duplicate IDs, and the parts of ticks that two primaries have used."""
    event = judged(*batches, rows=rows)
    return event.duplicates, event.ticks


def by(member, ended, *ids):
    return Batch(member, 0 if member is OLD else PROMOTED, ended - 1, ended, ids)


def test_an_id_made_twice_is_found():
    assert found(by(OLD, 99, 1, 2), by(OLD, 101, 3)) == (0, 0)
    assert found(by(OLD, 99, 1, 1)) == (1, 0)
    assert found(by(OLD, 99, 1), by(OLD, 101, 1)) == (1, 0)
    assert found(by(OLD, 99, 1), by(NEW, 125, 1)) == (1, 1)


def test_a_row_with_a_returned_id_is_not_a_duplicate():
    assert found(by(OLD, 99, 1, 2), rows=[(0, 1), (0, 2)]) == (0, 0)
    assert found(by(OLD, 99, 1), rows=[(0, 1), (0, 1)]) == (1, 0)
    # The response was lost.
    assert found(by(OLD, 99, 1), by(NEW, 125), rows=[(1, 1)]) == (1, 0)


def test_a_part_of_a_tick_that_two_primaries_use_is_found():
    """Two parts of a tick may belong to two primaries."""
    assert found(by(OLD, 99, 1 << PART), by(NEW, 125, (1 << PART) + 1)) == (0, 1)
    assert found(by(OLD, 99, 1 << PART), by(NEW, 125, 2 << PART)) == (0, 0)


@pytest.mark.parametrize("new", [NEW, OWN], ids=["one number", "numbers of their own"])
@pytest.mark.parametrize("ended", [PROMOTED - 1, PROMOTED + 1, PROMOTED + 60])
def test_nothing_is_forgiven_however_long_the_old_primary_runs(new, ended):
    event = judged(by(new, 125, 1), by(OLD, ended, 1))
    assert (event.duplicates, event.ticks) == (1, 1)
    assert event.meanwhile == (ended > PROMOTED)


@pytest.mark.parametrize("ended", [PROMOTED - 1, PROMOTED + 1])
def test_nor_is_a_primary_that_comes_back(ended):
    assert found(by(OLD, ended, 1), Batch(OLD, 130, 139, 140, (1,))) == (1, 1)
