"""Sequences that count by more than one: programs use the numbers between, which no other ID may be."""

import itertools
import re

import psycopg
import pytest

import adopting
from adopting import adopt, db, one, server, state
from waiting import Background

__all__ = ["db", "server"]

KEYS = 200_000


def layouts(db, increment):
    """The statements of the hint that create layouts with room for an increment."""
    db.execute(f"CREATE SEQUENCE counted INCREMENT {increment}")
    error = pytest.raises(psycopg.Error, adopt, db, "counted", "si").value
    db.execute("DROP SEQUENCE counted")
    assert error.sqlstate == "55000" and f"It counts by {increment}:" in error.diag.message_detail
    return re.findall(r"(SELECT flake_create_layout\('(\w+)'.*?\]}'\))", error.diag.message_hint)


def pooled(id, size):
    return range(id - size + 1, id + 1)


def from_there(id, size):
    """Hibernate's pooled-lo, EF's HiLo and Doctrine's allocationSize."""
    return range(id, id + size)


@pytest.mark.matrix
@pytest.mark.parametrize(("number", "name"), [(0, "twitter_blocks"), (1, "si_blocks")])
def test_keys_of_all_callers_are_distinct(server, db, number, name):
    statement, found = layouts(db, 50)[number]
    assert found == name
    db.execute(statement)
    db.execute("CREATE SEQUENCE s INCREMENT 50; SELECT nextval('s')")
    db.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT nextval('s'), v int)")
    undo = adopt(db, layout=name)
    assert one(db, "SELECT seqincrement FROM pg_sequence WHERE seqrelid = 's'::regclass") == (50,)
    keys = [[], []]

    def take(mine, callers):
        with server.session(dbname="test") as session:
            for turn in range(KEYS // 100):
                id, = one(session, "SELECT flake_sequences.nextval('s')")
                mine.extend(callers[turn % len(callers)](id, 50))

    callers = [[pooled, from_there], [from_there, from_there, pooled]]
    with Background(lambda: take(keys[0], callers[0]), lambda: take(keys[1], callers[1])):
        own = [one(db, "INSERT INTO orders (v) VALUES (1) RETURNING id")[0] for _ in range(1000)]
    assert len(keys[0]) == len(keys[1]) == KEYS // 2
    assert len({*keys[0], *keys[1], *own}) == KEYS + 1000
    assert min(*keys[0], *keys[1]) > 0 and max(*keys[0], *keys[1]) < 1 << (53 if name == "si_blocks" else 63)
    assert state(db, "SELECT nextval('s')") == "2200H"
    db.execute(undo)
    assert one(db, "SELECT nextval('s')") == (51,)


@pytest.mark.matrix
@pytest.mark.parametrize(("increment", "names"), [
    (2, ["twitter_blocks", "si_blocks"]), (64, ["twitter_blocks", "si_blocks"]), (128, ["twitter_blocks", "si_blocks"]),
    (129, ["twitter_blocks"]), (1024, ["twitter_blocks"]), (1025, []), (1 << 62, []), (-1, []), (-(1 << 63), []),
])  # fmt: skip
def test_a_layout_has_room_for_its_increment_and_no_more(db, increment, names):
    made = layouts(db, increment)
    assert [name for _, name in made] == names
    for statement, name in made:
        db.execute(statement)
        db.execute(f"CREATE SEQUENCE s INCREMENT {increment}")
        adopt(db, "s", name)
        ids = [id for id, in db.execute("SELECT flake_sequences.nextval('s') FROM generate_series(1, 2000)")]
        assert min(later - id for id, later in itertools.pairwise(ids)) >= 2 * increment - 1
        # The room of the next power of two is all there is.
        power = 1 << (increment - 1).bit_length()
        db.execute(f"DROP SEQUENCE s; CREATE SEQUENCE s INCREMENT {power}")
        adopt(db, "s", name)
        db.execute(f"DROP SEQUENCE s; CREATE SEQUENCE s INCREMENT {power + 1}")
        assert state(db, f"CALL flake_adopt('s', '{name}')") == "55000"
        db.execute("DROP SEQUENCE s")


def test_a_column_that_counts_by_one_may_share_the_layout(db):
    statement, name = layouts(db, 10)[0]
    db.execute(statement)
    db.execute(adopting.ORDERS)
    adopt(db, layout=name)
    assert one(db, "INSERT INTO orders (v) VALUES (1) RETURNING lastval() = id AND id & 31 = 16") == (True,)
