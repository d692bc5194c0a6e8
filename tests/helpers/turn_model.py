"""A model of the turns of managed/flake.sql: servers of one database that are promoted, lag, and skip numbers of timelines.

A server knows the number of its timeline, and what it has replayed of the record: the timeline and the turn of the server
that made the last ID, and of the one that made IDs before it. It does not see the history of its timeline.
"""

import collections
import itertools
import random
import typing

TURNS = 4


class Record(typing.NamedTuple):
    """The last timeline that made IDs and its turn, and the one before it; 0 if there is none."""

    last: int = 0
    turn: int = 0
    before: int = 0
    turn_before: int = 0

    def number(self):
        """The value of the sequence."""
        return (self.before * TURNS + self.turn_before) << 31 | (self.last * TURNS + self.turn)


def first_free(timeline, record):
    """The rule of the first draft: the first of n, n + 1, n + 2, n + 3 modulo 4 that is neither of the two recorded ones."""
    free = [turn for turn in numbered(timeline) if turn not in taken(record)]
    return free[0]


def counted(timeline, record):
    """The rule of the edition: the turns that are free after the record, counted by the number of the timeline. So timelines that
    follow each other in number differ, even if neither has replayed the record of the other."""
    free = [turn for turn in numbered(record.last + 1) if turn not in taken(record)]
    return free[(timeline - record.last - 1) % len(free)]


def numbered(first):
    return [(first + more) % TURNS for more in range(TURNS)]


def taken(record):
    return ([record.turn] if record.last else []) + ([record.turn_before] if record.before else [])


def followed(rule, timeline, record):
    """The record of a timeline that makes its first ID."""
    if record.last == timeline:
        return record
    return Record(timeline, rule(timeline, record), record.last, record.turn)


def story(rule, draw, promotions, skip=0.0, lags=0):
    """Returns the records of the primaries of a database. With the chance `skip`, up to four numbers of timelines were taken by
    restores elsewhere. `lags` new primaries have not replayed the record of the one before them."""
    records, timeline = [followed(rule, 1, Record())], 1
    lagging = set(draw.sample(range(2, promotions + 1), lags))
    for number in range(1, promotions + 1):
        timeline += 1 + (draw.randint(1, 4) if draw.random() < skip else 0)
        records.append(followed(rule, timeline, records[-2 if number in lagging else -1]))
    return records


def nearest(records):
    """After how many promotions the same turn returns first."""
    turns = [record.turn for record in records]
    pairs = itertools.combinations(range(len(turns)), 2)
    return min((later - one for one, later in pairs if turns[one] == turns[later]), default=9)


def nearest_of_all(rule, **chances):
    """How often each distance is the nearest one, in 5,000 stories."""
    draw = random.Random(1)
    return dict(sorted(collections.Counter(nearest(story(rule, draw, 8, **chances)) for _ in range(5000)).items()))


if __name__ == "__main__":
    for skip, lags in itertools.product((0, 0.3), (0, 1, 2)):
        for rule in (first_free, counted):
            print(f"skip {skip}, lags {lags}, {rule.__name__:10} {nearest_of_all(rule, skip=skip, lags=lags)}")
