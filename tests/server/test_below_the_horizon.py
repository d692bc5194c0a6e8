"""Which rows are below a horizon: what the definitions say, and the conditions that docs/how-to/tail.md warns of."""

import re

import pytest

from conftest import ROOT
from standing_clock import at, server_at_0

PAGE = (ROOT / "docs/how-to/tail.md").read_text()
RIGHT = re.search(r"WHERE id > :last AND (.*) ORDER BY id LIMIT", PAGE)[1]
WARNING, = (text for text in PAGE.split("\n\n") if "conditions lose rows" in text)
WRONG = re.findall(r"`([^`]*flake_horizon\(\)[^`]*)`", WARNING.replace("\n", " "))
# The same for a layout with long ticks and for a sno, by what is written otherwise.
KINDS = {
    "twitter": ("bigint", "flake_next('twitter')", {}),
    "base64id": ("bigint", "flake_next('base64id')", {
        r"flake_timestamp\(id\)": "flake_timestamp(id, 'base64id')",
        r"(flake_m..)\(flake_horizon\(\)(, 'twitter')?\)": r"\1(flake_horizon(), 'base64id')",
        r"flake_during\((.*)\)": r"flake_during(\1, 'base64id')",
    }),
    "sno": ("sno", "sno_next()", {r"flake_(timestamp|during|min|max)": r"sno_\1", r", 'twitter'": ""}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_conditions(own_servers, kind):
    """A transaction makes an ID, another one makes a higher ID of the same tick and commits first."""
    server, lost = server_at_0(own_servers), {}
    of_type, make, otherwise = KINDS[kind]
    assert len(WRONG) == 3
    for second, condition in enumerate([RIGHT, *WRONG], 1):
        for pattern, replacement in otherwise.items():
            condition = re.sub(pattern, replacement, condition)
        server.sql(f"DROP TABLE IF EXISTS outbox; CREATE TABLE outbox (id {of_type} PRIMARY KEY DEFAULT {make})")
        query, seen = f"SELECT id::text FROM outbox WHERE {condition} ORDER BY id", []
        with server.connect() as earlier, server.connect() as later, server.connect() as consumer:

            def read(consumer=consumer, query=query, seen=seen):
                after = f"WHERE id > '{seen[-1]}' AND" if seen else "WHERE"
                seen.extend(id for id, in consumer.execute(query.replace("WHERE", after)).fetchall())

            server.set_clock(at(10 * second + 0.0003))
            earlier.execute("BEGIN; INSERT INTO outbox DEFAULT VALUES")
            server.set_clock(at(10 * second + 0.0006))
            later.execute("INSERT INTO outbox DEFAULT VALUES")
            read()
            earlier.execute("COMMIT")
            read()
            server.set_clock(at(10 * second + 5))
            read()
        lost[condition] = 2 - len(seen)
    assert list(lost.values()) == [0, 1, 1, 1], lost


def test_definitions(server):
    """None of them says that IDs from before the instant are all there: the tick in which it lies has such IDs too."""
    guarantee = (ROOT / "docs/explanation/guarantee.md").read_text()
    definitions = [
        server.value("SELECT obj_description('flake_horizon()'::regprocedure)"),
        guarantee.split("## What a horizon promises")[1].split("\n\n")[1],
        PAGE.split("`flake_horizon()` returns an instant.")[1].split("\n\n")[0],
    ]
    for definition in definitions:
        assert "flake_min" in definition and "before" not in definition, definition
