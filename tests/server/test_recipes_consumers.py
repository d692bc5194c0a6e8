"""The recipes of tail-recipes.md for keys, failing events, tools, and clean-up, in each kind of session."""

import concurrent.futures

import pytest

from test_recipes import RECIPES, recipe, run, server, wait_until_complete, with_outbox, writers, written
from waiting import wait_until

__all__ = ["server"]


@pytest.mark.matrix
def test_consumers_by_a_hash_of_the_key_read_each_event_once(server):
    """Each event is read by one worker, and events with one key are read in order, although transactions end in another order."""
    prepare, repeated = recipe("Consumers by a hash of the key", server=server)
    server.sql(prepare)
    server.sql("ALTER TABLE keyed ALTER key SET DEFAULT (random() * 9)::int")
    taken = [[] for _ in range(4)]

    def work(number, process):
        with server.connect() as db:
            code = repeated.replace("\\set worker 0\n", "").replace(":worker", str(number))
            while process.poll() is None:
                taken[number] += run(db, code, crashes=0.1)
            wait_until_complete(server, "keyed")
            while new := run(db, code):
                taken[number] += new

    with writers(server, "keyed") as process, concurrent.futures.ThreadPoolExecutor() as pool:
        [job.result() for job in [pool.submit(work, number, process) for number in range(4)]]
    keys = dict(server.sql("SELECT id, key FROM keyed"))
    assert sorted(id for ids in taken for id in ids) == sorted(keys)
    of = {keys[id]: number for number, ids in enumerate(taken) for id in ids}
    assert all(ids == sorted(ids) and {of[keys[id]] for id in ids} <= {number} for number, ids in enumerate(taken))


def test_an_event_that_always_fails_is_set_aside(server):
    block, = recipe("An event that always fails", server=server)
    prepare = block.replace("CALL consume();", "")
    server.sql(prepare + server.named("; INSERT INTO outbox (event) VALUES ('tea'), (''), ('rice')"))
    wait_until_complete(server)
    server.sql("CALL consume()")
    ids = written_ids(server)
    assert server.sql("SELECT * FROM parked") == [(ids[1], "division by zero")]
    assert server.value("SELECT last FROM positions") == ids[2]


def written_ids(server):
    return [id for id, in server.sql(server.named("SELECT id FROM outbox ORDER BY id"))]


def test_only_rows_that_all_consumers_have_read_are_removed(server):
    """No row is removed if a consumer has no position. Otherwise rows up to the lowest position are removed, of this table
    only."""
    block, = recipe("An event that always fails", server=server)
    remove, = recipe("Remove what all consumers have read", server=server)
    server.sql(block + server.named("; INSERT INTO outbox (event) SELECT n FROM generate_series(1, 9) n"))
    ids = written_ids(server)
    for change, left in [
        ("DELETE FROM positions", 9),
        ("INSERT INTO positions VALUES ('one', 'outbox', NULL), ('other', 'parked', 9223372036854775807)", 9),
        (f"INSERT INTO positions VALUES ('two', 'outbox', {ids[4]})", 9),
        (f"UPDATE positions SET last = {ids[2]} WHERE name = 'one'", 6),
    ]:
        server.sql(server.named(change))
        server.sql(remove)
        assert written_ids(server) == ids[-left:]


@pytest.mark.matrix
def test_tools_that_poll_a_view_lose_no_row(server):
    """They lose rows of the table, but no row of the view."""
    server.sql(recipe("Tools that know a table and a column", server=server)[0])
    lasts, taken = {"outbox": 0, "outbox_complete": 0}, {"outbox": [], "outbox_complete": []}

    def poll(db, source):
        new = [id for id, in db.execute(server.named(f"SELECT id FROM {source} WHERE id > %s ORDER BY id"), (lasts[source],))]
        taken[source] += new
        lasts[source] = (new or [lasts[source]])[-1]
        return new

    with writers(server) as process, server.connect() as db:
        while process.poll() is None:
            for source in taken:
                poll(db, source)
    wait_until_complete(server)
    with server.connect() as db:
        for source in taken:
            poll(db, source)
    assert taken["outbox_complete"] == written(server)
    lost = len(written(server)) - len(taken["outbox"])
    print(f"{lost} of {len(written(server))} rows are lost by the table")
    assert lost > 0


def test_generated_columns_reach_a_subscriber(own_servers):
    """A subscriber has the values if it computes them itself, or if PostgreSQL 18 publishes them."""
    first, second = own_servers("wal_level=logical"), own_servers()
    column = "created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(id, 'twitter')) STORED"
    assert "give its table the same generated column" in RECIPES.read_text()
    for table in "plain", "made":
        first.sql(f"CREATE TABLE {table} (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), {column})")
        second.sql(f"CREATE TABLE {table} (id bigint PRIMARY KEY, {column if table == 'made' else 'created_at timestamptz'})")
    first.sql("CREATE PUBLICATION p FOR TABLE plain, made")
    second.sql(f"CREATE SUBSCRIPTION s CONNECTION 'host={first.dir} user=postgres dbname=postgres' PUBLICATION p")
    for table in "plain", "made":
        first.sql(f"INSERT INTO {table} DEFAULT VALUES")
        wait_until(lambda table=table: second.value(f"SELECT count(*) FROM {table}"))
    assert second.sql("SELECT created_at FROM plain") == [(None,)]
    assert second.sql("SELECT created_at FROM made") == first.sql("SELECT created_at FROM made")
    second.sql("DROP SUBSCRIPTION s")


def test_a_client_that_fetches_changes_misses_none(own_servers):
    """Transactions change notes, and commit late or roll back."""
    server = with_outbox(own_servers())
    tables, function = recipe("Clients that fetch what has changed")
    server.sql(tables + function)
    notes = [id for id, in server.sql("SELECT id FROM notes ORDER BY id")]
    known, since = {}, 0

    def fetch():
        nonlocal since
        rows = server.sql("SELECT * FROM changed(%s)", since)
        since = rows[0][0]
        known.update((note, text) for _, note, text in rows if note is not None)
        return [note for _, note, _ in rows if note is not None]

    wait_until(lambda: fetch() == notes or sorted(known) == notes)
    assert known == dict(zip(notes, ["buy tea", "buy rice"], strict=True))
    with server.connect() as late, server.connect() as early:
        late.execute("BEGIN; UPDATE notes SET text = 'buy green tea' WHERE text = 'buy tea'")
        early.execute("DELETE FROM notes WHERE text = 'buy rice'")
        assert fetch() == [], "an earlier change is still open"
        late.execute("COMMIT")
        wait_until(lambda: fetch() and known == {notes[0]: "buy green tea", notes[1]: None})
        late.execute("BEGIN; UPDATE notes SET text = 'none'; ROLLBACK")
        assert fetch() == []
