"""Under load, a reader below the watermark sees every row once and in order. The nemesis has such readers while servers crash,
clocks are set, and standbys take over.

FLAKE_TEST_SECONDS is how long the load lasts. It lasts at least until FLAKE_TAILING_ROWS rows were written and
FLAKE_TAILING_WATERMARKS statements have asked. FLAKE_TAILING_BURST is the most rows of a statement. `scripts/test tailing` shows
what each tailer has seen.
"""

import os

import pytest

import tailing
from conftest import SECONDS
from watermark import OUTBOX, insert, one, passes

ROWS = int(os.environ.get("FLAKE_TAILING_ROWS", "0"))
WATERMARKS = int(os.environ.get("FLAKE_TAILING_WATERMARKS", "0"))
SETTINGS = ["max_prepared_transactions=64", "synchronous_commit=off", "max_wal_size=4GB"]


def load(server):
    """Runs the load. Tailers by the watermark must miss no row, and single statements must miss none below their watermarks.
    Other tailers may. Returns the number of rows and of statements."""
    found = tailing.run(server, SECONDS)
    print(f"\n{found.rows} rows, {found.terminated} sessions terminated")
    for tailer, seen in found.seen.items():
        print(f"  {tailer.name:28} {seen}")
    print(f"  {len(found.records)} watermarks of single statements, {len(found.bad)} bad")
    assert found.rows > tailing.LEAST
    for tailer, seen in found.seen.items():
        assert tailer.naive or seen == tailing.Seen(0, 0, 0, 0, seen.rows), tailer
    assert not found.bad, found.bad[:5]
    assert any(one.rows for one in found.records)
    return found.rows, len(found.records)


def test_without_it_readers_lose_rows(server):
    """A slow transaction has lower IDs than a faster one, and becomes visible later."""
    server.sql(OUTBOX)
    with server.connect() as slow, server.connect() as tailer:
        slow.execute("BEGIN")
        low = insert(slow)
        high = insert(tailer)
        naive = "SELECT array_agg(id ORDER BY id) FROM outbox WHERE id > %s"
        below = f"{naive} AND id < flake_min(flake_watermark())"
        assert (one(tailer, naive, 0), one(tailer, below, 0)) == ([high], None)
        slow.execute("COMMIT")
        assert passes(tailer, high)
        assert (one(tailer, naive, high), one(tailer, below, 0)) == (None, [low, high])


@pytest.mark.matrix
def test_readers_below_it_lose_no_row_under_load(servers):
    server = servers(*SETTINGS)
    tailing.prepare(server)
    rows, watermarks = load(server)
    while rows < ROWS or watermarks < WATERMARKS:
        more = load(server)
        rows, watermarks = rows + more[0], watermarks + more[1]
    print(f"{rows} rows, {watermarks} watermarks of single statements")
