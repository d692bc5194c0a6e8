"""Many sessions at once: every ID is unique, in time, and of this node."""

import datetime

import pytest

from conftest import LAYOUTS, SECONDS

INSERT = "INSERT INTO made (n) SELECT nextval('n') FROM generate_series(1, 100);\n"
# In each change, one layout; the core's tests say the rest.
FEW = [name if name == "twitter" else pytest.param(name, marks=pytest.mark.matrix) for name in LAYOUTS]
RESET = ["twitter", "snowflake"]  # restart their sequence at every tick, and are in the order of time


def make_table(server, layout):
    server.sql(f"""
        DROP TABLE IF EXISTS made, run;
        CREATE SEQUENCE IF NOT EXISTS n;
        CREATE UNLOGGED TABLE made (id bigint PRIMARY KEY DEFAULT flake_next('{layout}'),
                                    session integer DEFAULT pg_backend_pid(), n bigint);
        CREATE TABLE run AS SELECT clock_timestamp() AS began""")


@pytest.fixture(scope="module")
def server(servers):
    """A server with spare connections, because earlier sessions may not have ended when new ones begin."""
    return servers("max_connections=200")


def check(server, layout, expected):
    tick, = server.sql("SELECT tick FROM flake_layouts WHERE name = %s", layout)[0]
    count, different, timely = server.sql(f"""
        SELECT count(*), count(DISTINCT id), count(*) FILTER (
            WHERE flake_timestamp(id, '{layout}') BETWEEN began - interval '{tick}' AND clock_timestamp())
        FROM made, run""")[0]
    assert count == expected
    assert (different, timely) == (count, count)
    if layout in RESET:
        disorder = server.value("""
            SELECT count(*) FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS before FROM made) s
            WHERE id <= before""")
        assert disorder == 0


# The arguments of pgbench, and how many transactions each of 32 sessions has.
SESSIONS = {"lasting": ([], 40 * SECONDS), "for one transaction": (["-C"], 8 * SECONDS)}


@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("layout", FEW)
def test_no_id_of_many_sessions_is_made_twice(server, layout, sessions):
    make_table(server, layout)
    arguments, transactions = SESSIONS[sessions]
    server.pgbench(INSERT, *arguments, "-c", 32, "-j", 2, "-t", transactions)
    count = server.value("SELECT count(DISTINCT session) FROM made")
    assert count == 32 if sessions == "lasting" else count > 32
    check(server, layout, 3200 * transactions)


@pytest.mark.matrix
def test_one_node_of_1024_makes_no_id_twice(servers):
    server = servers("flake.node_count=1024", "flake.node_id=67")
    make_table(server, "twitter")
    server.pgbench(INSERT, "-c", 32, "-j", 2, "-t", 40 * SECONDS)
    check(server, "twitter", 128_000 * SECONDS)
    # By the bits: worker 67 is worker 3 of datacenter 2 in every session's IDs.
    places = server.sql("""
        SELECT id >> 17 & 31, id >> 12 & 31, count(DISTINCT session) FROM made GROUP BY 1, 2""")
    assert places == [(2, 3, 32)]
    one = server.sql("SELECT (d).worker, (d).fields->'datacenter', (d).fields->'worker' FROM "
                     "(SELECT flake_decode(max(id)) AS d FROM made) s")  # fmt: skip
    assert one == [(67, 2, 3)]
    # All sessions use the two lanes, which have 3 of the turn's 512 sequence numbers in each of 85 steps.
    assert server.value("SELECT ids_per_second FROM flake_layouts WHERE name = 'twitter'") == 510_000
    numbers = server.sql("""
        SELECT min(n) >= 0, max(n) < 510, count(DISTINCT n / 6), count(DISTINCT n / 3 % 2)
        FROM (SELECT (id & 4095) - 512 AS n FROM made) s""")
    assert numbers == [(True, True, 85, 2)]


@pytest.mark.matrix
@pytest.mark.parametrize("call", ["flake_next('twitter')", "flake_next('sonyflake')", "flake_next('tsid')", "sno_next()"])
def test_ids_of_different_sessions_are_in_the_order_of_time(server, call):
    """IDs are ordered to a step of some microseconds, although a tick of sonyflake lasts 10 ms."""
    server.sql(f"""
        CREATE UNLOGGED TABLE ordered AS SELECT {call} AS id, now() AS before, now() AS after LIMIT 0""")
    margin = datetime.timedelta(microseconds=16 + 200)
    script = f"""INSERT INTO ordered SELECT * FROM (
                     SELECT {call}, before FROM (SELECT clock_timestamp() AS before OFFSET 0) s OFFSET 0
                 ) s, LATERAL clock_timestamp() after;\n"""
    server.pgbench(script, "-c", 4, "-j", 2, "-t", 1000)
    # If one ID was complete a step and 200 microseconds before another one was begun, the first one must be lower.
    rows = server.sql("SELECT rank() OVER (ORDER BY id), before, after FROM ordered ORDER BY before")
    done = sorted((after, place) for place, _, after in rows)
    highest, next_done, wrong = 0, 0, 0
    for place, before, _ in rows:
        while next_done < len(done) and done[next_done][0] < before - margin:
            highest = max(highest, done[next_done][1])
            next_done += 1
        wrong += place < highest
    server.sql("DROP TABLE ordered")
    assert len(rows) == 4000
    assert wrong == 0, f"{wrong} of {len(rows)}"
