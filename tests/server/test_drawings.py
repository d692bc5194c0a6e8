"""The drawings of docs/explanation/how-it-works.md show what a server does."""

import re
from xml.etree import ElementTree

import pytest

import drawings
from conftest import ROOT
from standing_clock import START, at, server_at_0


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_its_drawing_is_the_one_that_is_drawn(name):
    drawings.check(name)
    shown = (ROOT / "docs/explanation/how-it-works.md").read_text()
    assert f"](drawings/{name}.svg)" in shown
    assert {file.stem for file in drawings.FOLDER.iterdir()} == set(drawings.DRAWINGS)
    # It is described for those who do not see it, and has colors for a dark page.
    drawn = ElementTree.parse(drawings.FOLDER / f"{name}.svg").getroot()
    title, description, style = (drawn.findtext(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("title", "desc", "style"))
    assert title and description and "prefers-color-scheme: dark" in style


def test_steps_and_shares(server):
    ids, steps, own = server.sql("""
        SELECT ids_per_tick, steps, ids_per_step FROM (SELECT flake_next('twitter')) made, flake_generators""")[0]
    assert ids == steps * own
    # How many server processes there are depends on the version.
    of_slots = {slots: drawings.share(drawings.IDS, slots, drawings.TICK) for slots in range(100, 200)}
    assert (steps, own) in of_slots.values()
    if server.value("SELECT current_setting('server_version_num')::int") < 160000:
        assert (steps, own) == of_slots[drawings.SLOTS]


def test_used_time():
    """The numbers of the drawing are those of the code."""
    for name, file, seconds in ("AHEAD", "state.rs", drawings.AHEAD), ("RESERVE", "protocol.rs", drawings.RESERVE):
        found, = re.findall(rf"const {name}: i64 = ([\d_]+);", (ROOT / "src/core/ledger" / file).read_text())
        assert int(found) == seconds * 1_000_000


def test_horizons(own_servers):
    """Its transactions, on a server whose clock stands at each of its instants."""
    server = server_at_0(own_servers)
    events = [(first, "begin", name) for name, (first, _) in drawings.TRANSACTIONS.items()]
    events += [(end, "end", name) for name, (_, end) in drawings.TRANSACTIONS.items()]
    events += [(asked, "ask", None) for asked in drawings.QUESTIONS]
    server.sql("SELECT flake_horizon()")
    opened, found = {}, {}
    for instant, what, name in sorted(events, key=lambda event: event[0]):
        server.set_clock(at(instant / 1000))
        if what == "begin":
            opened[name] = server.connect()
            opened[name].execute("BEGIN; SELECT flake_next('twitter')")
        elif what == "end":
            opened.pop(name).execute("COMMIT")
        else:
            found[instant] = (server.value("SELECT flake_horizon()") - START).total_seconds() * 1000
    assert found == pytest.approx({asked: drawings.horizon(asked) for asked in drawings.QUESTIONS})
