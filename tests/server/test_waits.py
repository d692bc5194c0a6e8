"""How long sessions wait for their first ID after an event, by the servers' clocks. docs/how-to/plan-a-deployment.md has the
limits, and src/core/tests/scale.rs predicts them. `-s` shows the measured times."""

import pytest

from standing_clock import fail_over

# In seconds: a tick, and the time that a busy machine may need between two readings of the clock.
TICK, BUSY = 0.001, 0.2
STEP = 0.6
NUMBERS = ["flake.node_count=2", "flake.node_id=0"]
# The time from the question to the tick of the ID, in which a session may wait, and that tick.
ASK = """
SELECT extract(epoch FROM flake_timestamp(id) - asked)::float, extract(epoch FROM flake_timestamp(id))::float
FROM (SELECT clock_timestamp() AS asked, flake_next('twitter') AS id OFFSET 0) AS one
"""


def ask(db):
    """Asks for an ID. The tick may have begun before the question."""
    wait, tick = db.execute(ASK).fetchone()
    return max(wait, 0), tick


def reconnect(servers):
    server = servers()
    with server.session() as db:
        ask(db)
    with server.session() as db:
        return ask(db)[0]


def failed_over(servers, *numbers):
    primary = servers(*NUMBERS)
    standby = servers(*numbers, standby_of=primary)
    with primary.session() as db:
        db.execute("CREATE TABLE kept (id bigint DEFAULT flake_next('twitter')); INSERT INTO kept DEFAULT VALUES")
    fail_over(primary, standby)
    with standby.connect() as db:
        return ask(db)[0]


def failover(servers):
    return failed_over(servers)


def failover_to_a_new_number(servers):
    return failed_over(servers, "flake.node_count=2", "flake.node_id=1")


def step_back(servers):
    """Returns by how much the wait exceeds the step."""
    server = servers(clock="+0")
    with server.connect() as db:
        _, before = ask(db)
        server.set_clock(f"-{STEP}")
        wait, after = ask(db)
        assert wait > STEP / 2 and after >= before
        return wait - STEP


@pytest.mark.parametrize(
    ("event", "least", "most"),
    [(reconnect, 0, TICK), (failover, 0, TICK), (failover_to_a_new_number, 0, TICK), (step_back, -STEP / 2, TICK)],
)
def test_sessions_wait_as_long_as_the_page_says(own_servers, event, least, most):
    waits = [event(own_servers)]
    while waits[-1] > most + BUSY and len(waits) < 3:
        waits.append(event(own_servers))
    print(f"\n{event.__name__}: {', '.join(f'{1000 * wait:.1f}' for wait in waits)} ms")
    assert least <= waits[-1] <= most + BUSY
