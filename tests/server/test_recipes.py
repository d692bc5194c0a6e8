"""The recipes of tail.md and tail-recipes.md, while rows are written: each row is read once, in order."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

import psycopg
import pytest

import pages
from conftest import ROOT, SECONDS, Server, bindir, pg_config
from session_kinds import OTHERS, PLAIN
from tailing import SLEEP
from waiting import wait_until

PAGE = ROOT / "docs/how-to/tail.md"
RECIPES = ROOT / "docs/how-to/tail-recipes.md"
# scripts/setup puts clients here that Debian does not package.
CLIENTS = pathlib.Path(os.environ["FLAKE_CLIENTS"])
# Some transactions are slow, so that higher IDs are committed before lower ones.
WRITES = [
    "INSERT INTO {0} DEFAULT VALUES;\n",
    f"BEGIN;\nINSERT INTO {{0}} DEFAULT VALUES;\nSELECT {SLEEP};\nINSERT INTO {{0}} DEFAULT VALUES;\nCOMMIT;\n",
    f"BEGIN;\nINSERT INTO {{0}} DEFAULT VALUES;\nSELECT {SLEEP};\nROLLBACK;\n",
]


def recipe(heading, language="sql", server=Server):
    """Returns the code of the page with the names of the server's tables."""
    page, = (page for page in (PAGE, RECIPES) if f"# {heading}\n" in page.read_text())
    return [server.named(code, language) for code in pages.recipe(page, heading, language)]


def python(heading, name, server=Server):
    """Returns a Python function from the page."""
    names = {}
    exec(recipe(heading, "python", server)[0], names)
    return names[name]


@pytest.fixture(params=[PLAIN, *OTHERS], ids=str)
def server(own_servers, request):
    """A server as a client in each kind of session sees it."""
    return with_outbox(request.param.of(own_servers("wal_level=logical"), extension=True))


def with_outbox(server):
    server.sql(server.named(re.search(r"^CREATE TABLE outbox .*;$", PAGE.read_text(), re.M)[0]))
    return server


@contextlib.contextmanager
def writers(server, table="outbox"):
    """Clients that write for a while. They have ended after the block."""
    scripts = []
    for number, script in enumerate(WRITES):
        path = server.base / f"write {number}.sql"
        path.write_text(server.named(script.format(table)))
        scripts += ["-f", path]
    process = subprocess.Popen(
        [bindir() / "pgbench", "-n", "-c", "6", "-t", str(100 * SECONDS), *scripts], env=server.client_environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.wait()
    assert process.returncode == 0


def wait_until_complete(server, table="outbox"):
    wait_until(lambda: server.value(server.named(f"SELECT COALESCE(max(id) < flake_min(flake_watermark()), true) FROM {table}")))


def consume(server, process, step):
    """Returns the IDs that the steps read while rows are written and afterwards."""
    taken = []
    while process.poll() is None:
        taken += step()
    wait_until_complete(server)
    while new := step():
        taken += new
    return taken


def written(server, table="outbox"):
    ids = [id for id, in server.sql(server.named(f"SELECT id FROM {table} ORDER BY id"))]
    assert len(ids) > 10
    return ids


def run(db, code, crashes=0.0):
    """Returns the IDs that a block's statements return in a transaction. Some transactions end before the commit."""
    rows = []
    for statement in code.split(";\n"):
        if "COMMIT" in statement and random.random() < crashes:
            db.execute("ROLLBACK")
            return []
        cursor = db.execute(statement) if statement.strip() else None
        if cursor and cursor.description and cursor.description[0].name == "id":
            rows += [row[0] for row in cursor.fetchall()]
    return rows


@pytest.mark.matrix
def test_one_consumer_reads_each_row_once(server):
    """Two processes of one consumer take turns, and sometimes crash. Another consumer reads independently."""
    prepare, repeated = recipe("One consumer", server=server)
    server.sql(prepare)
    taken = []

    def consumer(process):
        with server.connect() as db:

            def step():
                with lock:
                    # The test then knows the order of what both have read.
                    found = run(db, repeated, crashes=0.3)
                    taken.extend(found)
                return found

            consume(server, process, step)

    lock = threading.Lock()
    other = repeated.replace("mailer", "jobs")
    with writers(server) as process, concurrent.futures.ThreadPoolExecutor() as pool, server.connect() as db:
        both = [pool.submit(consumer, process) for _ in range(2)]
        alone = consume(server, process, lambda: run(db, other))
        [one.result() for one in both]
    with server.connect() as db:
        while new := run(db, repeated):
            taken += new
    assert taken == alone == written(server)


@pytest.mark.matrix
@pytest.mark.parametrize("heading, crashes", [("One consumer", 0), ("Several consumers that share the work", 0.1)])
def test_processes_at_once_read_each_row_once(server, heading, crashes):
    """Processes of one consumer wait for each other, and those that share the work do not."""
    *_, repeated = recipe(heading, server=server)
    server.sql("".join(recipe(name, server=server)[0] for name in dict.fromkeys(["One consumer", heading])))

    def worker(process):
        with server.connect() as db:
            return consume(server, process, lambda: run(db, repeated, crashes))

    with writers(server) as process, concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(worker, process) for _ in range(3)]
        taken = [id for job in jobs for id in job.result()]
    with server.connect() as db:
        while new := run(db, repeated):
            taken += new
    assert sorted(taken) == written(server)


@pytest.mark.matrix
def test_a_projection_is_right_at_every_moment(server):
    """At every moment, the balances sum up all events below the position."""
    prepare, repeated = recipe("An event store and its projection", server=server)
    server.sql(f"""{prepare}
        ALTER TABLE {server.named("events")}
            ALTER account SET DEFAULT random() * 9, ALTER amount SET DEFAULT random() * 200 - 100""")
    same = server.named("""
        SELECT ARRAY(SELECT (account, balance)::text FROM balances ORDER BY account)
             = ARRAY(SELECT (account, sum(amount)::bigint)::text FROM events, projections WHERE id < upto GROUP BY account
                     ORDER BY account)""")
    with writers(server, "events") as process, server.connect() as db, server.connect() as other:
        while process.poll() is None:
            db.execute(repeated)
            assert other.execute(same).fetchone() == (True,)
        wait_until_complete(server, "events")
        db.execute(repeated)
        assert other.execute(same).fetchone() == (True,)
        both = server.named("SELECT (SELECT sum(balance) FROM balances) = (SELECT sum(amount) FROM events)")
        assert other.execute(both).fetchone() == (True,)
    assert written(server, "events")


@pytest.mark.matrix
def test_exports_have_each_row_once(server):
    prepare, repeated = recipe("Export what is new", server=server)
    server.sql(prepare)

    def export():
        output = server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", input=repeated).stdout
        return [int(line.split("\t")[0]) for line in output.splitlines()]

    with writers(server) as process:
        assert consume(server, process, export) == written(server)


def test_an_export_that_cannot_be_written_is_repeated(server):
    """The next run exports the rows."""
    prepare, repeated = recipe("Export what is new", server=server)
    server.sql(prepare + server.named("; INSERT INTO outbox SELECT FROM generate_series(1, 1000)"))
    wait_until_complete(server)
    with open("/dev/full", "w") as full, pytest.raises(subprocess.CalledProcessError):
        server.run("psql", "-X", "-q", input=repeated, stdout=full)
    assert len(server.run("psql", "-X", "-q", input=repeated).stdout.splitlines()) == 1000


@pytest.mark.matrix
def test_a_woken_consumer_comes_to_the_last_row(server):
    """The consumer sleeps while nothing is written. It reaches the last row because a session that looks for rows wakes it."""
    wake = python("Being woken", "wake_consumers", server)
    names, taken = {}, []
    # By itself, the consumer would look again after ten seconds.
    exec(recipe("Being woken", "python", server)[1].replace("[], 10)", "[], 1000)"), names)

    def end(process):
        process.wait()
        time.sleep(1)
        server.sql(server.named("INSERT INTO outbox (event) VALUES ('end')"))

    with server.connect() as db, server.connect() as looking, writers(server) as process:
        waking = threading.Thread(target=until_it_is_closed, args=(wake, looking))
        waking.start()
        threading.Thread(target=end, args=(process,)).start()
        for id, event in names["follow"](db, 0):
            taken.append(id)
            if event == "end":
                break
        looking.close()
        waking.join()
    assert taken == written(server)


def until_it_is_closed(act, db):
    with contextlib.suppress(psycopg.OperationalError):
        act(db)


@pytest.mark.matrix
def test_a_consumer_on_a_standby_reads_each_row_once(own_servers):
    read = python("A consumer on a standby", "read_on_standby")
    primary = with_outbox(own_servers())
    primary.sql("SELECT flake_publish_watermark()")
    standby = own_servers(standby_of=primary)
    standby.wait_for_replay(primary)
    with writers(primary) as process, primary.connect() as there, standby.connect() as here:
        taken = read_on(primary, process, lambda last: read(there, here, last))

        def go_on():
            taken.extend(id for id, _ in read(there, here, max(taken, default=0)))
            return taken

        # The rows that the standby has replayed in the meantime.
        last = written(primary)[-1]
        wait_until(lambda: go_on()[-1:] == [last])
    assert taken == written(primary)


def read_on(server, process, read):
    """Returns the IDs that a function returns when it is given the last ID."""
    last = 0

    def step():
        nonlocal last
        ids = [int(row[0]) for row in read(last)]
        last = ids[-1] if ids else last
        return ids

    return consume(server, process, step)


@pytest.mark.matrix
def test_a_consumer_reads_the_rows_of_several_nodes_once(own_servers):
    """The second node also has the first node's rows, which arrive with the replication."""
    read = python("Several nodes", "read_from_node")
    first, second = (
        with_outbox(own_servers("flake.node_count=2", f"flake.node_id={node}", "wal_level=logical")) for node in range(2)
    )
    first.sql("CREATE PUBLICATION events FOR TABLE outbox")
    second.sql(f"CREATE SUBSCRIPTION events CONNECTION 'host={first.dir} user=postgres dbname=postgres' PUBLICATION events")
    taken = []
    with contextlib.ExitStack() as opened, concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = []
        for node, server in enumerate([first, second]):
            process, db = opened.enter_context(writers(server)), opened.enter_context(server.connect())
            reads = lambda last, db=db, node=node: read(db, node, last)  # noqa: E731
            jobs.append(pool.submit(read_on, server, process, reads))
        taken = [job.result() for job in jobs]
    wait_until(lambda: set(written(second)) >= set(written(first)))
    assert taken[0] == written(first)
    assert taken[1] == [id for id in written(second) if id not in set(taken[0])]
    second.sql("DROP SUBSCRIPTION events")


@pytest.mark.matrix
def test_consumers_by_a_mark_in_the_stream_read_each_row_once(server):
    """A consumer that reads rows in the order of the stream gets some of them in another order than by their IDs."""
    if not (pg_config("--pkglibdir") / "test_decoding.so").exists():
        pytest.skip("this PostgreSQL has no test_decoding")
    read = python("A mark in the stream of changes", "read_changes")
    mark, = recipe("A mark in the stream of changes")
    table = server.value(server.named("""SELECT quote_ident(schemaname) || '.' || quote_ident(relname) FROM pg_stat_user_tables
        WHERE relid = 'outbox'::regclass"""))
    server.sql("CREATE TABLE another_table (id bigint DEFAULT flake_next('twitter'))")
    server.sql("SELECT pg_create_logical_replication_slot('changes', 'test_decoding')")
    waiting, came = [], []
    with server.connect() as db, server.connect() as marker, writers(server) as process:

        def step():
            marker.execute("INSERT INTO another_table DEFAULT VALUES")
            marker.execute(mark)
            before = len(waiting)
            complete = read(db, "changes", table, waiting)
            came.extend(waiting[before:])
            return complete

        taken = consume(server, process, step)
        taken += step()
    assert taken == written(server) and not waiting


@contextlib.contextmanager
def asked_by_lines(server, command, **environment):
    """A function that asks a program for the rows after an ID; each line is a JSON document."""
    with subprocess.Popen(
        command, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=server.client_environment | environment,
    ) as program:  # fmt: skip

        def read(last):
            program.stdin.write(f"{last}\n")
            return json.loads(program.stdout.readline())

        yield read
        program.stdin.close()
    assert program.returncode == 0


BY_SQLALCHEMY = """
import json, sys
from sqlalchemy import create_engine
engine = create_engine("postgresql+psycopg://")
for last in sys.stdin:
    with engine.begin() as connection:
        print(json.dumps([list(row) for row in read_by_sqlalchemy(connection, int(last))]), flush=True)
"""


@pytest.mark.matrix
def test_the_recipe_for_sqlalchemy_reads_each_row_once(server):
    environment = {"PYTHONPATH": str(CLIENTS / "python")}
    if subprocess.run([sys.executable, "-c", "import sqlalchemy"], check=False, env=environment, capture_output=True).returncode:
        pytest.skip("SQLAlchemy is not there and could not be installed")
    code = recipe("SQLAlchemy", "python")[0].replace('"outbox"', '"Outbox"' if server.named("outbox") != "outbox" else '"outbox"')
    command = [sys.executable, "-c", code + BY_SQLALCHEMY]
    with writers(server) as process, asked_by_lines(server, command, **environment) as read:
        assert read_on(server, process, read) == written(server)


@pytest.mark.matrix
def test_an_id_of_another_transaction_is_covered_or_refused(server):
    """The ID is covered, or refused if it is too late. It never reaches a consumer in the wrong order."""
    code, = recipe("IDs of another transaction", server=server)
    query = server.named("SELECT id FROM outbox WHERE id > %s AND id < flake_min(flake_watermark()) ORDER BY id")
    command = [bindir() / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=sqlstate"]

    def insert():
        done = subprocess.run(command, check=False, input=code, capture_output=True, text=True, env=server.client_environment)
        assert done.returncode == 0 or done.stderr.strip() == "ERROR:  55000", done.stderr
        return done.returncode == 0

    with server.connect() as db, concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = [pool.submit(insert) for _ in range(20)]
        taken, last = [], 0
        while not all(job.done() for job in jobs):
            for id, in db.execute(query, (last,)).fetchall():
                taken.append(id)
                last = id
        wait_until_complete(server)
        taken += [id for id, in db.execute(query, (last,)).fetchall()]
    assert len(taken) == sum(job.result() for job in jobs)
    assert taken == [id for id, in server.sql(server.named("SELECT id FROM outbox ORDER BY id"))]
