"""The turn of a server, computed from the timelines of its WAL as docs/explanation/how-it-works.md says: none of the two
timelines before has it. It is written without a look at the extension's own."""

TURNS = 4


def timelines(branch):
    """The timelines of a WAL's history, the first one first. A copy of the files stays on its original's."""
    before = timelines(branch.parent) if branch.parent else []
    return before if before and before[-1] == branch.timeline else [*before, branch.timeline]


def turn(branch):
    """The turn of a primary that writes this WAL."""
    turns = []
    for timeline in timelines(branch):
        turns.append(next(n % TURNS for n in range(timeline, timeline + TURNS) if n % TURNS not in turns[-2:]))
    return turns[-1]


def promotions(old, new):
    """How many promotions after the old one the new WAL was begun."""
    return len(timelines(new)) - len(timelines(old))
