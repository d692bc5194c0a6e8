"""Both editions return the same for the same calls, and each reads what the other one has made."""

import itertools
import os

import psycopg
import pytest

import edition_calls
from test_managed import both

__all__ = ["both"]
# How many calls are compared.
CALLS = int(os.environ.get("FLAKE_MANAGED_CALLS", "12000"))
MADE = """
    SELECT l.name, array_agg(id) FROM flake_layouts l, LATERAL flake_batch(l.name, 50) id
    WHERE l.generates AND l.ends_at > now() AND l.ids_per_second > 0 GROUP BY l.name ORDER BY l.name"""
READ = """
    SELECT id, flake_timestamp(id, %(layout)s), flake_decode(id, %(layout)s)::text, flake_to_text(id, %(layout)s),
           flake_from_text(flake_to_text(id, %(layout)s), %(layout)s) = id
    FROM unnest(%(ids)s::bigint[]) id"""


def is_known(call, one, other):
    """The list of differences. The extension counts microseconds since 1970, and these end in the year 294247: for an instant
    after that, the detail of its error names another one."""
    return edition_calls.LAST in call and one.split(" | ")[:2] == other.split(" | ")[:2]


@pytest.mark.matrix
def test_both_editions_return_the_same(both):
    layouts = both[0].execute("SELECT name, bits, text_form, fields FROM flake_layouts ORDER BY name").fetchall()
    for db in both:
        db.execute(edition_calls.ANSWERS)
    kinds, errors = set(), 0
    calls = edition_calls.calls(layouts, CALLS)
    while some := list(itertools.islice(calls, 1000)):
        one, other = ([row for row, in db.execute("SELECT pg_temp.answers(%s)", [some]).fetchall()] for db in both)
        different = [rows for rows in zip(some, one, other, strict=True) if rows[1] != rows[2] and not is_known(*rows)]
        assert not different, "\n".join(map(str, different[:5]))
        kinds |= {call.split("(")[0] for call in some}
        errors += sum(" | " in answer for answer in one)
    assert len(kinds) == 11 and CALLS / 10 < errors < CALLS * 0.7


@pytest.mark.parametrize(("text", "layout"), [
    ("0AWE5HZP3\u017fKTK", "tsid"), ("0AWE5HZP3\u0131KTK", "tsid"), ("cb54ecf2840000\u212a0", "uniqueid"),
])  # fmt: skip
def test_no_letter_outside_of_ascii_is_a_digit(both, text, layout):
    """Unicode has other letters whose capitals are S and I, and one whose small letter is k."""
    for db in both:
        error = pytest.raises(psycopg.Error, db.execute, "SELECT flake_from_text(%s, %s)", (text, layout)).value
        assert error.sqlstate == "22P02" and "is not a digit" in error.diag.message_detail


def test_each_edition_reads_what_the_other_one_has_made(both):
    for maker, reader in (both, reversed(both)):
        layouts = maker.execute(MADE).fetchall()
        assert len(layouts) >= 14
        for layout, ids in layouts:
            one, other = (db.execute(READ, {"layout": layout, "ids": ids}).fetchall() for db in (maker, reader))
            assert one == other and all(row[-1] for row in one), layout
