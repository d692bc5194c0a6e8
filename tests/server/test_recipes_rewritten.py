"""The recipes of tail-recipes.md while a table is rewritten: snapshots from before that find the table empty."""

import contextlib
import re
import subprocess
import threading

import pytest

from conftest import bindir
from test_recipes import PAGE, recipe, wait_until_complete
from waiting import Background, wait_until

OUTBOX = re.search(r"^CREATE TABLE outbox .*;$", PAGE.read_text(), re.M)[0] + "\n"
TAKE, JOBS = recipe("One consumer"), recipe("Several consumers that share the work")
# The table of each recipe, the preparation, and what a consumer repeats.
RECIPES = {
    "One consumer": ("outbox", OUTBOX + TAKE[0], TAKE[1]),
    "Several consumers": ("outbox", OUTBOX + TAKE[0] + JOBS[0], JOBS[1]),
    "A projection": ("events", *recipe("An event store and its projection")),
    "An export": ("outbox", OUTBOX + recipe("Export what is new")[0], recipe("Export what is new")[1]),
}
PARTS = """ PARTITION BY HASH (id);
    CREATE TABLE half PARTITION OF {0} FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE other_half PARTITION OF {0} FOR VALUES WITH (MODULUS 2, REMAINDER 1);"""
REWRITES = [
    "ALTER TABLE {0} SET UNLOGGED", "ALTER TABLE {0} SET LOGGED",
    "CREATE TEMP TABLE was AS TABLE {0}; TRUNCATE {0}; INSERT INTO {0} TABLE was; DROP TABLE was",
]  # fmt: skip
BLOCKED = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"


class Script:
    """A psql session that executes one line at a time. Its application_name shows its progress, for which it needs no
    snapshot."""

    def __init__(self, server, level):
        command = [bindir() / "psql", "-X", "-q", "-A", "-t"]
        options = {"PGOPTIONS": f"-c default_transaction_isolation={level}", "PGAPPNAME": "line 0"}
        self.server, self.lines = server, 0
        self.psql = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=server.client_environment | options
        )
        wait_until(self.processes)
        (self.pid,), = self.processes()

    def processes(self):
        """Returns its process, once it has executed all lines."""
        return self.server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = %s", f"line {self.lines}")

    def tell(self, line):
        """Sends a line. Returns when it was executed or waits for a lock."""
        self.lines += 1
        print(f"{line}\nSET application_name = 'line {self.lines}';", file=self.psql.stdin, flush=True)
        wait_until(lambda: self.processes() or self.server.sql(BLOCKED, self.pid))

    def end(self):
        """Ends psql, and returns the IDs that it has printed."""
        output, _ = self.psql.communicate()
        assert self.psql.returncode == 0
        return [int(id) for id in re.findall(r"^\d{10,}", output, re.M)]


@contextlib.contextmanager
def rewriting(server, rewrite):
    """Rewrites the table as soon as no session reads it. Others see that at the end of the block."""
    locked, ends = threading.Event(), threading.Event()
    with server.connect() as db:

        def run():
            db.execute(f"BEGIN; {rewrite}")
            locked.set()
            assert ends.wait(60)
            db.execute("COMMIT")

        with Background(run) as running:
            wait_until(lambda: running.failures or locked.is_set() or server.sql(BLOCKED, db.info.backend_pid))
            yield ends.set
            ends.set()


def repeat(server, level, code, at=None, rewrite=None):
    """Lets a consumer read while the table is rewritten, which begins before one of its lines. Returns the IDs."""
    script = Script(server, level)
    with contextlib.ExitStack() as rewritten:
        for number, line in enumerate(code):
            end = rewritten.enter_context(rewriting(server, rewrite)) if number == at else lambda: None
            script.tell(line)
            end()
        return script.end()


@pytest.mark.matrix
@pytest.mark.parametrize("of", ["the table", "a partition"])
@pytest.mark.parametrize("level", ["read\\ committed", "repeatable\\ read"])
@pytest.mark.parametrize("name", RECIPES)
def test_recipes_lose_no_row_while_their_table_is_rewritten(own_servers, name, level, of):
    server = own_servers()
    table, prepare, code = RECIPES[name]
    code = [line for line in code.splitlines() if line and not line.startswith("--")]
    if of == "a partition":
        prepare, count = re.subn(rf"(CREATE TABLE {table} .*);", lambda found: found[1] + PARTS.format(table), prepare)
        assert count == 1
    server.sql(prepare)
    if table == "events":
        server.sql("ALTER TABLE events ALTER account SET DEFAULT 1, ALTER amount SET DEFAULT 1")
    taken = []
    for at in range(len(code)):
        for rewrite in REWRITES:
            server.sql(f"INSERT INTO {table} SELECT FROM generate_series(1, 5)")
            wait_until_complete(server, table)
            taken += repeat(server, level, code, at, rewrite.format("half" if of == "a partition" else table))
    server.sql(f"INSERT INTO {table} DEFAULT VALUES")
    wait_until_complete(server, table)
    for _ in range(2):
        taken += repeat(server, level, code)
    if table == "events":
        assert server.sql("SELECT balance FROM balances") == server.sql("SELECT sum(amount) FROM events")
    else:
        assert taken == [id for id, in server.sql("SELECT id FROM outbox ORDER BY id")]


OLDER = {
    "COPY": ("read\\ committed", "COPY (SELECT max(id) FROM outbox) TO STDOUT;"),
    "EXECUTE": ("read\\ committed", "EXECUTE greatest_id;"),
    "STABLE": ("read\\ committed", "SELECT greatest_id();"),
    "REPEATABLE READ": ("repeatable\\ read", "SELECT max(id) FROM outbox;"),
    "SERIALIZABLE": ("serializable", "SELECT max(id) FROM outbox;"),
}


@pytest.fixture(scope="module")
def readable(server):
    """A server with a table, and ways to read it."""
    server.sql(OUTBOX)
    server.sql("""INSERT INTO outbox DEFAULT VALUES;
        CREATE FUNCTION greatest_id() RETURNS bigint STABLE LANGUAGE plpgsql
            AS $$ BEGIN RETURN (SELECT max(id) FROM outbox); END $$""")
    return server


def greatest(server, level, query, rewrite=REWRITES[2], locks=()):
    """Runs a query in a transaction that began before the table is rewritten. Returns the IDs."""
    code = ["PREPARE greatest_id AS SELECT max(id) FROM outbox;", "BEGIN;", *locks, query, "COMMIT;"]
    return repeat(server, level, code, 2, rewrite.format("outbox"))


@pytest.mark.matrix
@pytest.mark.parametrize("how", OLDER)
def test_queries_with_a_snapshot_before_their_lock_find_it_empty(readable, how):
    level, query = OLDER[how]
    all_there = [readable.value("SELECT max(id) FROM outbox")]
    assert f"`{how}`" in PAGE.read_text().split("### Tables that are rewritten")[1].split("###")[0]
    assert greatest(readable, level, query) == []
    assert greatest(readable, level, query, locks=["LOCK TABLE outbox IN ACCESS SHARE MODE;"]) == all_there


@pytest.mark.matrix
def test_queries_that_lock_first_find_all_rows(readable):
    """The query locks the table before it takes its snapshot. CLUSTER keeps what snapshots see."""
    all_there = [readable.value("SELECT max(id) FROM outbox")]
    assert greatest(readable, "read\\ committed", "SELECT max(id) FROM outbox;") == all_there
    for level, query in OLDER.values():
        assert greatest(readable, level, query, "CLUSTER {0} USING outbox_pkey") == all_there
