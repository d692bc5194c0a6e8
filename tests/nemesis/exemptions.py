"""The cases that the guarantee does not cover, one function each. Every other duplicate is a failure. Each function quotes the
words of docs/explanation/guarantee.md that it rests on, and `tests/repository/test_exemptions.py` compares them with the page.

Two batches have an ID in common: `one` was made by the server `its`, and `other` by the server `others`.
"""

LEAD = 2  # seconds that IDs stay below the mark
LEASE = "a lease"  # what a statement makes that leases
LONGEST = 60  # seconds that a lease lasts after the clock at most


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


def last(batch, tick):
    """The end of what it has used, by the clock of its server."""
    return batch.ended_clock + (LONGEST if batch.what == LEASE else tick)


def another_database(one, its, other, others, tick):
    """It rests on "in each database, IDs continue 2 seconds after the used time in the page of the mark"."""
    *_, first = lineage(its.branch)
    *_, second = lineage(others.branch)
    goes_on = first is second and its.memory is not others.memory
    return goes_on and its.number == others.number and one.database != other.database


def an_old_primary_for_too_long(one, its, other, others, tick):
    """It rests on "the replication lag and the time that both servers run must not exceed 2 seconds together. If the old primary
    made no IDs in the last 2 seconds that were replicated, this limit is for the time that both run and the delay of the new
    one's clock"."""
    branch = parted(its, others)
    if branch is None or branch.copied or its.number != others.number or one.what == LEASE:
        return False
    since = branch.promoted_clock if one.database in branch.idle else branch.cut_clock
    # The new primary waits by the steady clock, so where clocks crawl, the time that passes counts and not theirs.
    return one.ended_clock - since > LEAD or one.ended - branch.promoted > LEAD


def a_lease_that_had_not_come_across(one, its, other, others, tick):
    """It rests on "A lease that an old primary grants is covered if it was granted at most 2 seconds after the last WAL that
    the new primary has replayed"."""
    branch = parted(its, others)
    return one.what == LEASE and branch is not None and not branch.copied and one.ended - branch.cut > LEAD


def a_rewound_server(one, its, other, others, tick):
    """It rests on "IDs that a server made after its WAL diverged from the new primary's, once `pg_rewind` or a new copy has
    replaced its `flake.mark`, if its clock was ahead or the tick of the IDs is not over"."""
    branch = parted(its, others)
    if branch is None or its.node != others.node or its.number != others.number or its.memory is others.memory:
        return False
    return one.ended > branch.cut and other.clock < last(one, tick)


def an_earlier_state(one, its, other, others, tick):
    """It rests on "a data directory that is restored without recovery, such as a snapshot". The original has made IDs since
    then, and the copy's clock is not above them."""
    branch = parted(its, others)
    if branch is None or branch.copied != "instead" or its.number != others.number:
        return False
    return one.ended > branch.cut and other.clock < last(one, tick)


def two_servers_with_one_number(one, its, other, others, tick):
    """It rests on "covered if every server, also every standby, has a number of its own". A copy of the files was started
    beside the original."""
    doubles = {branch for branch in lineage(others.branch) if branch.copied == "beside"} - set(lineage(its.branch))
    return its.number == others.number and any(one.ended > branch.cut for branch in doubles)


def different_node_counts(one, its, other, others, tick):
    """It rests on "and all have the same `flake.node_count`"."""
    replayed = has_replayed(others, one, its) or has_replayed(its, other, others)
    return its.node != others.node and its.count != others.count and not replayed


EXEMPTIONS = [
    different_node_counts, an_earlier_state, two_servers_with_one_number, an_old_primary_for_too_long,
    a_lease_that_had_not_come_across, a_rewound_server, another_database,
]  # fmt: skip


def of(one, other, tick):
    """Returns the name of the exemption that covers two batches with the same ID, or None."""
    for covers in EXEMPTIONS:
        for first, second in [(one, other), (other, one)]:
            if any(covers(first, its, second, others, tick) for its in first.makers for others in second.makers):
                return covers.__name__
    return None


def overlapping(made):
    """Counts the IDs that layouts without a distinguishing bit have in common."""
    keys = [key for key in made if key != ("sno",)]
    pairs = [(one, other) for n, one in enumerate(keys) for other in keys[n + 1 :] if one[:2] == other[:2]]
    return sum(len(made[one].keys() & made[other].keys()) for one, other in pairs)
