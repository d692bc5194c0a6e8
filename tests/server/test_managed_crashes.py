"""managed/flake.sql makes no ID again after a crash, whatever the clock shows then."""

import pytest

from standing_clock import at, running
from test_managed_making import clocked

__all__ = ["clocked"]

# The sessions of a client that has IDs in its buffer, and no row has them, do not wait for the disk otherwise.
LAZY = "ALTER SYSTEM SET wal_writer_delay = '10s'", "ALTER SYSTEM SET synchronous_commit = off"


@pytest.mark.matrix
@pytest.mark.parametrize("statement, settings", [
    ("INSERT INTO made SELECT FROM generate_series(1, 2000) RETURNING id", ()), ("SELECT flake_batch('twitter', 500)", LAZY),
], ids=["of commits", "of a batch"])  # fmt: skip
def test_ids_are_not_made_again_after_a_crash(clocked, statement, settings):
    """The clock stands, and is the same after the crash, or a little behind."""
    for setting in settings:
        clocked.sql(setting)
    clocked.reload()
    made = clocked.sql("SELECT id FROM made")
    for number in range(4):
        clocked.set_clock(at(100 + number))
        made += clocked.sql(statement)
        after = at(100 + number - 0.4 * (number % 2))
        clocked.restart(mode="immediate", while_stopped=lambda after=after: clocked.set_clock(after))
        if number % 2:
            clocked.set_clock(running(100 + number - 0.4))
        made += clocked.sql(statement)
    assert len(made) == len(set(made)) > 4000
