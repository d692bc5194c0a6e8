"""managed/flake.sql makes no ID again after a crash, whatever the clock shows then."""

from standing_clock import at, running
from test_managed_making import clocked

__all__ = ["clocked"]


def test_ids_of_commits_are_not_made_again_after_a_crash(clocked):
    """The clock stands, and is the same after the crash, or a little behind."""
    for number in range(4):
        clocked.set_clock(at(100 + number))
        clocked.sql("INSERT INTO made SELECT FROM generate_series(1, 2000)")
        after = at(100 + number - 0.4 * (number % 2))
        clocked.restart(mode="immediate", while_stopped=lambda after=after: clocked.set_clock(after))
        if number % 2:
            clocked.set_clock(running(100 + number - 0.4))
        clocked.sql("INSERT INTO made SELECT FROM generate_series(1, 2000)")
    assert clocked.sql("SELECT count(*), count(DISTINCT id) FROM made") == [(17000, 17000)]


def test_ids_of_a_batch_are_not_made_again_after_a_crash(clocked):
    """A client has them in its buffer, and no row has them. The sessions do not wait for the disk otherwise."""
    clocked.sql("ALTER SYSTEM SET wal_writer_delay = '10s'")
    clocked.sql("ALTER SYSTEM SET synchronous_commit = off")
    clocked.reload()
    made = []
    for number in range(4):
        clocked.set_clock(at(200 + number))
        made += clocked.sql("SELECT flake_batch('twitter', 500)")
        after = at(200 + number - 0.4 * (number % 2))
        clocked.restart(mode="immediate", while_stopped=lambda after=after: clocked.set_clock(after))
        if number % 2:
            clocked.set_clock(running(200 + number - 0.4))
        made += clocked.sql("SELECT flake_batch('twitter', 500)")
    assert len(made) == len(set(made)) == 4000
