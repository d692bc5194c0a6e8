"""The cases that the guarantee does not cover, one function each. Every other duplicate is a failure. Each function quotes the
words of docs/explanation/guarantee.md that it rests on, and `tests/repository/test_exemptions.py` compares them with the page.

Two batches have an ID in common, or a tick that ends at `end`: `one` was made by the server `its`, and `other` by the server
`others`.
"""

import itertools

from .turns import promotions

SOONEST = 3  # promotions until a turn can come again


def has_replayed(others, one, its):
    """Whether `others` has replayed all WAL that `its` had written when `one` ended."""
    if others.branch is its.branch:
        return its.node == others.node
    branch = parted(its, others)
    return branch is not None and one.ended <= branch.cut


def lineage(branch):
    """The branch, its parent, and so on up to the first one."""
    while branch is not None:
        yield branch
        branch = branch.parent


def parted(its, others):
    """The branch on which `others`, or a server that it follows, parted from the WAL of `its`."""
    return next((branch for branch in lineage(others.branch) if branch.parent is its.branch), None)


def another_database(one, its, other, others, end):
    """It rests on "IDs of different databases, when `flake.mark` is lost and IDs led the clock, or the clock is set back"."""
    *_, first = lineage(its.branch)
    *_, second = lineage(others.branch)
    return first is second and its.memory is not others.memory and one.database != other.database


def a_turn_that_comes_again(one, its, other, others, end):
    """It rests on "A primary and its successor four promotions later (three, if PostgreSQL has skipped a number of a timeline,
    or one of them was a `pg_upgrade`), which has the same turn: while the old one still runs"."""
    branch = parted(its, others)
    return branch is not None and one.ended > branch.cut and promotions(its.branch, others.branch) >= SOONEST


def an_earlier_state(one, its, other, others, end):
    """It rests on "If it takes the original's place, its IDs are covered once its clock has passed the original's last ID, and
    the tick of that ID is over". The original has made IDs since the copy was made, which may have led its clock, and the copy's
    clock has not passed them."""
    branch = parted(its, others)
    if branch is None or branch.copied != "instead":
        return False
    return one.ended > branch.cut and other.clock < end


def a_copy_beside_its_original(one, its, other, others, end):
    """It rests on "A copy that is started without `standby.signal` or `recovery.signal`, such as a plain `pg_basebackup` or a
    snapshot: it stays on the original's timeline"."""
    doubles = {branch for branch in lineage(others.branch) if branch.copied == "beside"} - set(lineage(its.branch))
    return any(one.ended > branch.cut for branch in doubles)


def different_node_counts(one, its, other, others, end):
    """It rests on "All servers must have the same `flake.node_count`"."""
    replayed = has_replayed(others, one, its) or has_replayed(its, other, others)
    return its.node != others.node and its.count != others.count and not replayed


EXEMPTIONS = [different_node_counts, an_earlier_state, a_copy_beside_its_original, a_turn_that_comes_again, another_database]


def of(one, other, end):
    """Returns the name of the exemption that covers two batches with the same ID, or None."""
    for covers in EXEMPTIONS:
        for first, second in [(one, other), (other, one)]:
            for its, others in itertools.product(first.makers, second.makers):
                # IDs of different parts are never equal, so nothing covers them.
                may_be_equal = covers is different_node_counts or its.part == others.part
                if may_be_equal and covers(first, its, second, others, end):
                    return covers.__name__
    return None


def overlapping(made):
    """Counts the IDs that layouts without a distinguishing bit have in common."""
    keys = [key for key in made if key != ("sno",)]
    pairs = [(one, other) for n, one in enumerate(keys) for other in keys[n + 1 :] if one[:2] == other[:2]]
    return sum(len(made[one].keys() & made[other].keys()) for one, other in pairs)
