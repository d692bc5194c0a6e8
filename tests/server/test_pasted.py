"""The examples and recipes as newcomers paste them, with every layout that makes IDs, or sno, in the place of twitter."""

import concurrent.futures
import contextlib
import random
import re
import subprocess

import psycopg
import pytest

import pages
from conftest import LAYOUTS, LIKE, ROOT
from tailing import SLEEP
from taking import POSITIONS, TAKE
from test_recipes import PAGE, recipe, run
from waiting import Background, wait_until

ORDERED = [layout for layout in [*LAYOUTS, *LIKE] if layout not in ("uniqueid", "seata")]
UNORDERED = ["uniqueid", "seata"]
# The changes for the type sno that docs/how-to/tail.md describes.
FOR_SNO = [
    (r"flake_next\('twitter'\)", "sno_next()"),
    (r"flake_min\(flake_watermark\(\), 'twitter'\)", "sno_min(flake_watermark())"),
    (r"flake_cover\((.*?), 'twitter'\)", r"sno_cover(\1)"),
    (r"flake_node\(id, 'twitter'\)", "sno_node(id)"),
    (r"\b(id|last|position|upto|low|high) bigint\b", r"\1 sno"),
    (r"flake_timestamp\((.*), 'twitter'\)", r"sno_timestamp(\1)"),
    (r"COALESCE\(last, 0\)", "COALESCE(last, '2222222222222222')"),
    (r"DEFAULT 0\b", "DEFAULT '2222222222222222'"),
    (r"COALESCE\(max\(upto\), 0\)", "COALESCE(max(upto), '2222222222222222')"),
]
WRITES = f"""
INSERT INTO outbox DEFAULT VALUES; INSERT INTO events (account, amount) VALUES (random() * 9, random() * 200 - 100);
BEGIN; INSERT INTO outbox DEFAULT VALUES; INSERT INTO events (account, amount) VALUES (1, 1); SELECT {SLEEP};
INSERT INTO outbox DEFAULT VALUES; COMMIT;
"""


def in_matrix(layouts):
    """Layouts for the matrix. The others are pasted in other tests."""
    kept = ("base64id", "uniqueid", "sno")
    return [layout if layout in kept else pytest.param(layout, marks=pytest.mark.matrix) for layout in layouts]


def pasted(code, layout):
    if layout != "sno":
        return code.replace("'twitter'", f"'{layout}'")
    for found, instead in FOR_SNO:
        code = re.sub(found, instead, code)
    return code


@contextlib.contextmanager
def writers(server):
    """Clients whose transactions end in another order than they have begun."""
    script = server.base / "writes.sql"
    script.write_text(WRITES)
    command = [pages.bindir() / "pgbench", "-n", "-c", "6", "-t", "25", "-f", script]
    process = subprocess.Popen(command, env=server.client_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.wait()
    assert process.returncode == 0


class Reading:
    """Consumers of a server whose tables have keys of a layout, which read until all rows are read."""

    def __init__(self, server, layout, process):
        self.server, self.process, self.watermark = server, process, pasted("flake_min(flake_watermark(), 'twitter')", layout)

    def is_complete(self, table):
        return self.server.value(f"SELECT COALESCE(max(id) < {self.watermark}, true) FROM {table}")

    def until_complete(self, step):
        taken = []
        while self.process.poll() is None:
            taken += step()
        wait_until(lambda: self.is_complete("outbox") and self.is_complete("events"))
        while new := step():
            taken += new
        return taken

    def by_session(self, code):
        with self.server.connect() as db:
            return self.until_complete(lambda: run(db, code))

    def by_psql(self, code):
        def export():
            output = self.server.run("psql", "-X", "-q", input=code).stdout
            return [line.split("\t")[0] for line in output.splitlines()]

        return self.until_complete(export)

    def by_two_sessions(self, code, crashes):
        """A session that has rows has the turn until it commits, so the IDs come in the order of its commits."""
        taken = []

        def step(db):
            db.execute("BEGIN")
            ids = [row[0] for row in db.execute(code).fetchall()]
            if random.random() < crashes:
                db.execute("ROLLBACK")
                return [0]
            taken.extend(ids)
            db.execute("COMMIT")
            return ids

        def alone():
            with self.server.connect() as db:
                self.until_complete(lambda: step(db))

        with Background(alone, alone):
            pass
        return taken

    def by_id(self, read, last):
        """A function that reads above the last ID."""
        ids = [last]

        def step():
            rows = read(ids[-1])
            ids.extend(id for id, _ in rows)
            return rows

        self.until_complete(step)
        return ids[1:]


@pytest.mark.matrix
@pytest.mark.parametrize("layout", [*ORDERED, "sno"])
def test_recipes_lose_no_row(own_servers, layout):
    node, settings = 0, []
    if layout not in ("si_single", "mastodon"):
        # Layouts with workers are tried on a node.
        node, settings = 1, ["flake.node_count=2", "flake.node_id=1"]
    server = own_servers(*settings)
    outbox = re.search(r"^CREATE TABLE outbox .*;$", PAGE.read_text(), re.M)[0]
    of = {heading: [pasted(code, layout) for code in recipe(heading)] for heading in [
        "One consumer", "Several consumers that share the work", "An event store and its projection", "Export what is new",
        "IDs of another transaction", "A consumer in two lines",
    ]}  # fmt: skip
    server.sql(pasted(outbox, layout))
    (take, taking), (jobs, working), (projection, projecting), (exports, exporting), (covered,), (places, transaction, _, lag) = (
        of.values()
    )
    server.sql(take + jobs + projection + exports)
    # The recipes beside have a table of this name too.
    server.sql(places.replace("positions", "places") + "INSERT INTO places VALUES ('auditor', 'outbox')")
    two_lines = re.search(r"^SELECT .*;$", transaction, re.M)[0].replace("positions", "places")
    names = {}
    exec(pasted(recipe("Several nodes", "python")[0], layout), names)
    with (
        concurrent.futures.ThreadPoolExecutor(7) as pool, server.connect() as db, server.connect() as here,
        writers(server) as process,
    ):  # fmt: skip
        reading = Reading(server, layout, process)
        first = "2222222222222222" if layout == "sno" else 0
        jobs = [
            pool.submit(reading.by_session, taking), pool.submit(reading.by_session, working),
            pool.submit(reading.by_psql, exporting),
            pool.submit(reading.by_id, lambda last: names["read_from_node"](here, node, last), first),
            pool.submit(reading.by_two_sessions, two_lines, 0.3),
            pool.submit(reading.by_two_sessions, two_lines.replace("mailer", "auditor"), 0),
            pool.submit(reading.until_complete, lambda: db.execute(projecting) and []),
        ]  # fmt: skip
        taken, worked, exported, read, mailed, audited, _ = [job.result() for job in jobs]
    ids = [id for id, in server.sql("SELECT id FROM outbox ORDER BY id")]
    assert len(ids) == 450
    assert taken == sorted(worked) == read == mailed == audited == ids
    assert exported == [str(id) for id in ids]
    assert server.sql("SELECT sum(balance) FROM balances") == server.sql("SELECT sum(amount) FROM events")
    shown = lag.replace("positions", "places").strip().rstrip(";")
    assert server.sql(f"{shown} ORDER BY name") == [("auditor", None), ("mailer", None)]
    server.sql("UPDATE places SET last = NULL")
    assert all(behind.total_seconds() > 0 for _, behind in server.sql(shown))
    # psql has no ID of another server here, so the ID is not too late.
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", input=covered)
    assert server.value("SELECT count(*) FROM outbox") == 451


@pytest.mark.matrix
@pytest.mark.parametrize("layout", UNORDERED)
def test_recipes_of_others_raise_an_error(own_servers, layout):
    server = own_servers()
    server.sql(pasted("CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text)", layout))
    query = pasted("SELECT * FROM outbox WHERE id < flake_min(flake_watermark(), 'twitter')", layout)
    with server.connect() as db:
        db.execute(POSITIONS + "; INSERT INTO positions VALUES ('mailer', 'outbox'); INSERT INTO outbox DEFAULT VALUES")
        for refused in query, TAKE:
            assert pytest.raises(psycopg.Error, db.execute, refused).value.sqlstate == "22023"


EVENTS, = re.findall(r"^CREATE TABLE events \(.*?^INSERT INTO events .*?;$", (ROOT / "README.md").read_text(), re.M | re.S)


def nameless(code):
    """Returns the code without the layout in each function that reads IDs."""
    return code.replace(", 'twitter')", ")")


@pytest.mark.matrix
@pytest.mark.parametrize("layout", in_matrix([*LAYOUTS, *LIKE]))
def test_times_are_right_or_somebody_says_so(own_servers, layout):
    """The README's table shows the right times if it is read by its layout. If it is read by twitter, something warns."""
    server = own_servers()
    wrong = """SELECT name FROM flake_check() WHERE NOT ok AND name = 'layouts'"""
    with server.connect() as db:
        said = []
        with contextlib.suppress(psycopg.Error):
            said = ["an error"]
            db.execute(pasted(nameless(EVENTS), layout))
            said = db.execute(wrong).fetchall()
        assert bool(said) == (layout not in ("twitter", "leaf"))
        db.execute("DROP TABLE IF EXISTS events")
        if layout in UNORDERED:
            error = pytest.raises(psycopg.Error, db.execute, pasted(EVENTS, layout)).value
            assert error.sqlstate == "22023"
            return
        db.execute(pasted(EVENTS, layout))
        assert db.execute(wrong).fetchall() == []
        near = "now() - created_at BETWEEN '-1 second' AND '1 minute'"
        partition = "CASE WHEN now() < '2027-01-01Z' THEN 'events_2026' ELSE 'events_later' END"
        rows = f"SELECT count(*) FROM events WHERE {near} AND tableoid = ({partition})::regclass"
        assert db.execute(rows).fetchone() == (1000,)
        rows = f"SELECT count(*) FROM events WHERE flake_during(id, tstzrange(now() - interval '1 minute', NULL), '{layout}')"
        assert db.execute(rows).fetchone() == (1000,)
