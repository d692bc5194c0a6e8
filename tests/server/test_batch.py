"""flake_batch: many IDs by one call."""

import psycopg
import pytest

from memory import peak_memory
from waiting import cancelled_once, is_busy, wait_until, waits_in_ticks

MILLION = 1_000_000


@pytest.mark.parametrize("query", [
    "SELECT count(*), count(*) FILTER (WHERE id <= before) FROM (SELECT id, lag(id) OVER () AS before FROM {} id) s",
    "SELECT count(*), count(*) FILTER (WHERE id <= before) "
    "FROM (SELECT id, lag(id) OVER () AS before FROM (SELECT {} AS id) i) s",
], ids=["from", "select"])  # fmt: skip
@pytest.mark.matrix
def test_a_large_batch_takes_no_more_memory(server, query):
    with server.connect() as db:
        db.execute("SET max_parallel_workers_per_gather = 0; SET jit = off; SET work_mem = '1MB'")
        assert db.execute(query.format("flake_batch('twitter', 1000)")).fetchone() == (1000, 0)
        before = peak_memory(db)
        assert db.execute(query.format(f"flake_batch('twitter', {10 * MILLION})")).fetchone() == (10 * MILLION, 0)
        assert peak_memory(db) - before < 8, "ten million IDs take 80 MB"


def test_a_batch_keeps_its_layout(server):
    """A cursor reads a batch slowly. In the meantime, the layout's name gets other bits."""
    with server.connect(autocommit=False) as db:
        db.execute("""SELECT flake_create_layout('slow', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}')""")
        db.execute("DECLARE ids CURSOR FOR SELECT flake_batch('slow', 1000)")
        ids = db.execute("FETCH 1 FROM ids").fetchall()
        times = "SELECT min(flake_timestamp(id, 'slow')), max(flake_timestamp(id, 'slow')) FROM unnest(%s::bigint[]) id"
        db.execute("SAVEPOINT before; SELECT flake_drop_layout('slow')")
        db.execute("""SELECT flake_create_layout('slow', '{"like": "instagram", "epoch": "2025-01-01T00:00:00Z"}')""")
        ids += db.execute("FETCH 600 FROM ids").fetchall()
        db.execute("SELECT flake_next('slow')")
        ids += db.execute("FETCH ALL FROM ids").fetchall()
        other = db.execute("SELECT flake_batch('slow', 10)").fetchall()
        first, last = db.execute(times, ([id for id, in other],)).fetchone()
        assert (last - first).days == 0, "the name stands for the other bits in new batches"
        db.execute("SELECT flake_drop_layout('slow')")
        db.execute("""SELECT flake_create_layout('slow', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}')""")
        assert len(ids) == len(set(ids)) == 1000
        first, last = db.execute(times, ([id for id, in ids],)).fetchone()
        assert (last - first).days == 0, "all IDs were made by the bits that the batch began with"


def test_a_batch_waits_for_tick_after_tick(servers):
    """As one of 1,024 nodes, the server has 512 IDs per millisecond, and a session that is alone uses nearly all of them."""
    server = servers("flake.node_count=1024", "flake.node_id=3")
    with server.connect() as db:

        def nearly_all_are_used():
            ids, different, ticks, in_a_tick = db.execute("""
                SELECT count(*), count(DISTINCT id), count(DISTINCT flake_timestamp(id)),
                       (SELECT ids_per_second / 1000 FROM flake_layouts WHERE name = 'twitter')
                FROM flake_batch('twitter', 300000) id""").fetchone()
            assert (ids, different) == (300_000, 300_000)
            assert 500 < in_a_tick <= 512 and ids / in_a_tick <= ticks
            return ticks <= ids / in_a_tick * 3

        # A busy machine may be late for many ticks, but not in all batches.
        wait_until(nearly_all_are_used)


@pytest.mark.matrix
def test_a_batch_can_be_canceled_while_it_waits_and_while_it_runs(servers):
    """A batch is canceled while it waits for a clock that stands still, and while it makes IDs by a running clock."""
    stands, goes = "2031-06-01 12:00:00", "@2031-06-01 12:00:10"
    server = servers(clock="+0")
    with server.connect() as db:
        for clock, makes in (stands, waits_in_ticks), (goes, is_busy):
            server.set_clock(clock)
            with pytest.raises(psycopg.errors.QueryCanceled), cancelled_once(makes, server, db):
                db.execute("SELECT count(*) FROM (SELECT flake_batch('twitter', 2147483647)) s")
        assert server.value("SELECT count(DISTINCT id) FROM flake_batch('twitter', 1000) id") == 1000
