"""Sessions that take IDs from the same lanes: no ID comes twice, a lone session gets all IDs, and single inserts are spread."""

import concurrent.futures
import contextlib
import statistics

import psycopg
import pytest

from conftest import LAYOUTS, LIKE, SECONDS
from standing_clock import at
from waiting import wait_until

SESSIONS, BULK = 8, 20_000
# The lanes of custom layouts have 4,096 lines in shared memory, and such a layout takes 16 of them.
LIKE_TWITTER = """
    SELECT flake_create_layout('l' || n, jsonb_build_object(
               'like', 'twitter', 'epoch', '2015-01-01Z'::timestamptz + n * interval '1 h'))
    FROM generate_series(1, 130) n"""
FULL = "too many custom layouts are in use"


def make_table(server, layout, name="made"):
    server.sql(f"""DROP TABLE IF EXISTS {name};
                   CREATE UNLOGGED TABLE {name} (id bigint DEFAULT flake_next('{layout}'), n bigserial,
                                                 session integer DEFAULT pg_backend_pid())""")


def assert_made_once(server, name="made"):
    """Returns how many IDs there are. Each session's IDs are in the order in which it has made them."""
    count, different, fallen = server.sql(f"""
        SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= before)
        FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS before FROM {name}) s""")[0]
    assert (different, fallen) == (count, 0)
    return count


@pytest.mark.matrix
@pytest.mark.parametrize("layout", ["si", "twitter"])
def test_batches_beside_single_inserts_make_no_id_twice(server, layout):
    """Batches take large blocks from all lanes, and single inserts small ones."""
    make_table(server, layout)
    batches = f"INSERT INTO made (id) SELECT flake_batch('{layout}', {BULK});\n"
    with concurrent.futures.ThreadPoolExecutor(1) as pool, server.connect() as db:
        bulk = pool.submit(server.pgbench, batches, "-c", SESSIONS, "-j", 2, "-t", SECONDS)
        single = 0
        while not bulk.done():
            db.execute("INSERT INTO made DEFAULT VALUES")
            single += 1
        bulk.result()
    assert assert_made_once(server) == single + SESSIONS * BULK * SECONDS


@pytest.mark.matrix
def test_a_lone_session_makes_all_ids_of_a_tick(servers):
    """The IDs themselves show how many of the 1,024 of each millisecond were made, which a turn has. The clock is slow, so that
    the session has a processor long enough even on a busy machine."""
    server = servers(clock="+0")
    server.set_clock("@2030-01-01 00:00:00 x0.04")

    def nearly_all():
        with server.connect() as db:
            ids, = db.execute("SELECT array_agg(id) FROM flake_batch('si', 100000) id").fetchone()
        assert len(set(ids)) == 100_000 and ids == sorted(ids)
        per_tick = ticks(ids)
        assert max(per_tick) <= 1024 and len(per_tick) > 10
        # The first tick and the last one have a part of their IDs.
        return statistics.median(per_tick[1:-1]) >= 985

    wait_until(nearly_all)


def ticks(ids):
    """Returns how many of these IDs of si each millisecond has."""
    counts = {}
    for id in ids:
        counts[id >> 13] = counts.get(id >> 13, 0) + 1
    return [counts[tick] for tick in sorted(counts)]


@pytest.mark.matrix
@pytest.mark.parametrize("layout", ["si", "twitter", "base64id"])
def test_single_inserts_of_new_connections_are_spread(server, layout):
    """Tables that are divided by the remainder of their IDs have no empty part, although each connection begins a lane anew."""
    # The random bits of base64id would hide what its other bits do.
    lowest = {"base64id": 512}.get(layout, 1)
    make_table(server, layout)
    server.pgbench("INSERT INTO made DEFAULT VALUES;\n", "-C", "-c", 4, "-j", 2, "-t", 150)
    assert server.value("SELECT count(DISTINCT session) FROM made") > 4
    assert assert_made_once(server) == 600
    for parts in [2, 8, 32]:
        counts = dict(server.sql(f"SELECT id / {lowest} % {parts}, count(*) FROM made GROUP BY 1"))
        if parts <= {"base64id": 16}.get(layout, 32):
            assert set(counts) == set(range(parts)), f"id % {parts}"
        # No part has more than twice what it would have by chance, and a few rows.
        assert max(counts.values()) < 2 * 600 / len(counts) + 20, f"id % {parts}"


def test_sessions_in_neighboring_procs_begin_with_different_lanes(servers):
    """The clock stands in one new millisecond after another, and the 32 lanes have the same places in each. If all sessions began
    with the same lane, their IDs would differ in the time only."""
    server, others = servers(clock="+0"), set()
    with contextlib.ExitStack() as stack:
        for number in range(8):
            server.set_clock(at(32 * number))
            db = stack.enter_context(server.connect())
            id, = db.execute("SELECT flake_next('twitter')").fetchone()
            others.add(id % 2**22)
    assert len(others) == 8


def insert_after_cancel(db):
    """A statement can be canceled twice, and the second request then arrives in the statement that follows."""
    while True:
        with contextlib.suppress(psycopg.errors.QueryCanceled):
            return db.execute("INSERT INTO made SELECT FROM generate_series(1, 300)")


@pytest.mark.matrix
@pytest.mark.parametrize("end", ["pg_terminate_backend", "pg_cancel_backend"])
@pytest.mark.parametrize("layout", ["si", "twitter"])
def test_sessions_that_are_ended_in_a_bulk_insert_make_no_id_twice(server, layout, end):
    """Nobody makes the IDs that such a session had taken and not used. The moment of each end comes by chance."""
    make_table(server, layout)
    # COMMIT keeps what was made before the end.
    bulk = "DO $$ BEGIN LOOP INSERT INTO made SELECT FROM generate_series(1, 300); COMMIT; END LOOP; END $$"
    times = 4 * SECONDS

    def run():
        for _ in range(times):
            with server.connect() as db:
                with pytest.raises((psycopg.OperationalError, psycopg.errors.QueryCanceled)):
                    db.execute(bulk)
                if end == "pg_cancel_backend":
                    insert_after_cancel(db)

    choose = f"""SELECT {end}(pid) FROM pg_stat_activity
                 WHERE query LIKE 'DO %' AND state = 'active' AND query_start < clock_timestamp() - random() * interval '40 ms'
                 ORDER BY random() LIMIT 1"""
    with concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool, server.connect() as other:
        running = [pool.submit(run) for _ in range(SESSIONS)]
        while not all(one.done() for one in running):
            other.execute(choose)
        [one.result() for one in running]
    assert assert_made_once(server) > 300 * SESSIONS
    if end == "pg_cancel_backend":
        assert server.value("SELECT count(DISTINCT session) FROM made") == times * SESSIONS


def test_a_server_with_more_procs_than_ids_makes_ids(servers):
    """A lane belongs to all procs, so a node needs one ID in a tick, not one for each proc."""
    server = servers("max_connections=1000", "flake.node_count=1024", "flake.node_id=1023")
    procs = 1000
    with server.connect() as db:
        for layout, ids in [("twitter", 512), ("uniqueid", 8)]:
            made = db.execute("SELECT count(DISTINCT flake_next(%s)) FROM generate_series(1, 500)", (layout,))
            assert made.fetchone() == (500,), layout
            assert ids < procs
    server.restart("flake.node_count=32", "flake.node_id=31")
    with server.connect() as db:
        assert db.execute("SELECT count(DISTINCT flake_next('si')) FROM generate_series(1, 2000)").fetchone() == (2000,)
        assert db.execute("SELECT ids_per_second FROM flake_layouts WHERE name = 'si'").fetchone() == (32_000,)


def use_up(db):
    """Uses one layout after the other until a database has as many as it can have. Returns how many."""
    for n in range(1, 131):
        try:
            db.execute("SELECT flake_next(%s)", (f"l{n}",))
        except psycopg.errors.ConfigurationLimitExceeded:
            return n - 1
    raise AssertionError("no database can have so many layouts")


def test_a_database_whose_lanes_are_all_used_names_the_way_out(servers):
    """Layouts that have lanes make IDs as before, also in new sessions, and so do those that are built in. Another custom
    layout has no lanes until the restart."""
    server = servers()
    server.sql(LIKE_TWITTER)
    with server.connect() as db:
        assert use_up(db) == 128
        for _ in range(2):
            for call in ["flake_next('l129')", "flake_batch('l130', 3)"]:
                error = pytest.raises(psycopg.errors.ConfigurationLimitExceeded, db.execute, f"SELECT {call}").value.diag
                assert error.sqlstate == "53400" and error.message_primary == FULL
                assert error.message_detail.endswith(
                    '" needs 16 lanes. The custom layouts of this database have 2048, and can have 2048: half of what other '
                    "databases leave of 4096.")
                assert "restart the server" in error.message_hint
        # A layout with the same bits as one that has lanes uses these.
        db.execute("""SELECT sno_next(), flake_next('twitter'), flake_next('l1'), flake_next('l128'),
                      flake_create_layout('same', jsonb_build_object(
                          'like', 'twitter', 'epoch', '2015-01-01Z'::timestamptz + interval '128 h'))""")
        db.execute("SELECT flake_next('same')")
    with server.connect() as other:
        ids = {id for id, in other.execute("SELECT flake_next('l1') FROM generate_series(1, 5000)")}
        assert len(ids) == 5000
        other.execute("SELECT flake_drop_layout('l2')")
        pytest.raises(psycopg.errors.ConfigurationLimitExceeded, other.execute, "SELECT flake_next('l129')")
        assert other.execute("SELECT ok, detail FROM flake_check() WHERE name = 'rates'").fetchone() == (
            False, "The custom layouts of this database have 2048 lanes, and can have 2048.")
    server.restart()
    assert server.value("SELECT flake_next('l129') > 0 AND flake_next('twitter') > 0")


@pytest.mark.matrix
def test_a_database_leaves_lanes_to_the_others(own_servers):
    """The owners of three databases, who have no other rights, use all layouts that they can, first those that they all define.
    Every built-in layout makes IDs in another database, and so do custom ones."""
    server = own_servers()
    ours = server.connect()
    common = """SELECT flake_create_layout('common' || n, jsonb_build_object(
                    'like', 'twitter', 'epoch', '2016-01-01Z'::timestamptz + n * interval '1 h')) FROM generate_series(1, 5) n"""
    counts = []
    for number, name in enumerate(["first", "second", "third"]):
        ours.execute(f"CREATE ROLE {name} LOGIN")
        ours.execute(f"CREATE DATABASE {name} OWNER {name}")
        with server.connect(dbname=name, user=name) as db:
            db.execute(f"CREATE EXTENSION flake; {common}")
            db.execute(LIKE_TWITTER.replace("2015", str(2017 + number)))
            db.execute("SELECT flake_next('common' || n) FROM generate_series(1, 5) n")
            counts.append(use_up(db))
            # Common layouts count to the first database only.
            assert db.execute("SELECT flake_next('common5') > 0").fetchone() == (True,)
    assert counts == [128 - 5, 128 // 2, 128 // 4]

    made = {}
    built_in = "SELECT name FROM flake_layouts WHERE generates AND ends_at > now() AND source <> 'custom' AND name <> 'sno'"
    for name, in ours.execute(built_in):
        made[name], = ours.execute("SELECT flake_next(%s)", (name,)).fetchone()
    assert set(made) == {*LAYOUTS, *LIKE}
    ours.execute("SELECT sno_next(), sno_next(0, 7)")
    ours.execute(common)
    ours.execute(LIKE_TWITTER.replace("2015", "2020"))
    ours.execute("SELECT flake_next('common' || n) FROM generate_series(1, 5) n")
    assert ours.execute("SELECT ok FROM flake_check() WHERE name = 'rates'").fetchone() == (True,)
    assert use_up(ours) == 128 // 8
    assert ours.execute("SELECT ok FROM flake_check() WHERE name = 'rates'").fetchone() == (False,)


@pytest.mark.matrix
def test_sessions_that_follow_each_other_in_a_proc_make_no_sno_twice(servers):
    """Each begins with the lane of its proc, whose cursor says how far the sessions before it got."""
    server = servers("max_connections=8", "superuser_reserved_connections=0", "max_worker_processes=3", "autovacuum=off")
    made = set()
    for count in range(200):
        with server.session() as db:
            rows = db.execute("SELECT sno_next()::text, sno_next(0, 7)::text FROM generate_series(1, 3)").fetchall()
        made |= {id for row in rows for id in row}
        assert len(made) == 6 * (count + 1)
