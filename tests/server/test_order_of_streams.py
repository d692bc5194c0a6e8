"""Events in the order of their positions keep the order of their versions, as docs/how-to/tail.md promises."""

import re

import pytest

import pages
from conftest import ROOT, SECONDS
from session_kinds import every_session

PAGE = ROOT / "docs/how-to/tail.md"
# Pairs of neighbors in a stream whose positions are in the other order.
TURNED = """
    SELECT count(*), count(*) FILTER (WHERE position < before)
    FROM (SELECT position, lag(position) OVER (PARTITION BY stream ORDER BY version) AS before FROM stored) s"""


def create(server):
    """Creates the tables and the function of the page."""
    create, append = (block for block in pages.recipe(PAGE, "For authors of event stores") if "CREATE TABLE" in block)
    server.sql(re.search(r"CREATE TABLE stored \(.*?\n\);", create, re.S)[0] + append.split("SELECT append")[0])


@pytest.mark.matrix
@every_session
def test_positions_of_a_stream_are_in_the_order_of_its_versions(own_servers, session):
    """Sessions append to a few streams. Commits do not wait for the disk, so they are close together."""
    server = own_servers("synchronous_commit=off")
    server = server if session.is_plain else session.of(server, extension=True)
    create(server)
    streams = "md5((random() * 3)::int::text)::uuid"
    server.pgbench(f"SELECT append({streams}, '{{}}');", "-c", "8", "-j", "2", "-t", str(500 * SECONDS))
    assert server.sql(TURNED) == [(4000 * SECONDS, 0)]


def test_a_position_comes_after_one_that_is_ahead_of_the_clock(own_servers):
    server = own_servers()
    create(server)
    stream = "md5('')::uuid"
    server.sql(f"SELECT append({stream}, '{{}}'); UPDATE stored SET position = flake_min(clock_timestamp() + interval '300 ms')")
    server.sql(f"SELECT append({stream}, '{{}}')")
    assert server.sql(TURNED) == [(2, 0)]
