"""Events in the order of their positions keep the order of their versions, as docs/how-to/tail.md promises."""

import re

import pages
from conftest import ROOT, SECONDS
from session_kinds import every_session

PAGE = ROOT / "docs/how-to/tail.md"
# Pairs of neighbors in a stream whose positions are in the other order.
TURNED = """
    SELECT count(*), count(*) FILTER (WHERE position < before)
    FROM (SELECT position, lag(position) OVER (PARTITION BY stream ORDER BY version) AS before FROM stored) s"""


@every_session
def test_the_stream_is_locked_before_the_id_is_made(own_servers, session):
    """Sessions append to a few streams. Positions must not be in another order than versions."""
    server = own_servers()
    server = server if session.is_plain else session.of(server, extension=True)
    create, append = (block for block in pages.recipe(PAGE, "For authors of event stores") if "CREATE TABLE" in block)
    server.sql(re.search(r"CREATE TABLE stored \(.*?\n\);", create, re.S)[0] + append.split("SELECT append")[0])
    streams = "md5((random() * 3)::int::text)::uuid"
    server.pgbench(f"SELECT append({streams}, '{{}}');", "-c", "8", "-j", "2", "-t", str(500 * SECONDS))
    assert server.sql(TURNED) == [(4000 * SECONDS, 0)]


def test_the_order_is_as_exact_as_the_page_says(server):
    """A step is as long as the page says, by the layout's bits and the server's slots."""
    page = PAGE.read_text()
    slots = server.value("SELECT current_setting('max_connections')::int")
    assert slots == 100
    for layout, micros in [("twitter", 16), ("base64id", 250)]:
        assert re.search(rf"{micros}(?:\s+microseconds)?\s+in\s+`{layout}`", page)
    # A session's share has as many steps in a tick as the session has IDs.
    ids = server.value("SELECT session_ids_per_second::float FROM flake_layouts WHERE name = 'base64id'")
    # Since PostgreSQL 18, a server has more slots.
    least, most = (258, 261) if server.value("SHOW server_version_num") >= "180000" else (232, 234)
    assert least < 1e6 / ids < most
