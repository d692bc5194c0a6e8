"""managed/flake.sql makes IDs, and makes none twice: under load, with clocks that are set, over promotions."""

import array
import collections
import concurrent.futures
import contextlib
import itertools
import os
import random
import threading
import time

import psycopg
import pytest

import bouncer
import managed
from standing_clock import running
from waiting import wait_until

# How many IDs the sessions of the load make.
IDS = int(os.environ.get("FLAKE_MANAGED_IDS", "200000"))
SESSIONS, STEPS = 50, max(8, IDS // 100000)
SETTINGS = ["max_connections=120", "max_prepared_transactions=1000"]
MANY = "SELECT flake_next('twitter') FROM generate_series(1, %s)"
# IDs of subtransactions that are rolled back count as well.
NESTED = """
    CREATE FUNCTION nested(n integer) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1 .. n LOOP
            BEGIN
                RETURN NEXT flake_next('twitter');
                IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
            EXCEPTION WHEN division_by_zero THEN
                RETURN NEXT flake_next('twitter');
            END;
        END LOOP;
    END $$"""


def managed_server(servers, *settings, node=(0, 1), **options):
    """A server with the edition, and without the extension."""
    server = servers(*SETTINGS, *settings, extension=False, **options)
    managed.install(server, node=node)
    return server


class Client:
    """A session that does what applications do, and keeps every ID that it was told, whatever became of the transaction. The IDs
    are kept by the life of the server, which a crash ends, and the IDs of durable commits are kept a second time."""

    def __init__(self, server, number, enough):
        self.server, self.number, self.enough, self.life = server, number, enough, None
        self.told, self.durable = (collections.defaultdict(lambda: array.array("q")) for _ in range(2))
        self.kept, self.began = 0, {}
        self.random, self.names, self.errors = random.Random(number), itertools.count(), collections.Counter()
        self.acts = [
            self.single, self.rolled_back, self.nested, self.prepared, self.timeout, self.cancel, self.terminate, self.discard,
        ]  # fmt: skip

    def run(self):
        db = None
        while not self.enough.is_set():
            try:
                if db is None or db.closed:
                    db, self.life = self.server.connect(application_name="load", prepare_threshold=None), None
                if self.life is None:
                    (self.life,) = db.execute(LIFE).fetchone()
                    self.began.setdefault(self.life, time.monotonic())
                self.keep(db.execute(MANY, [self.random.randint(1, 600)]))
                self.random.choice(self.acts)(db)
            except psycopg.Error as error:
                self.errors[error.sqlstate] += 1
                self.undo(db)
        db.close()
        return self.errors

    def undo(self, db):
        """Others may cancel the ROLLBACK too, which leaves the session in a transaction that has failed."""
        while db and not db.closed and db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with contextlib.suppress(psycopg.Error):
                db.execute("ROLLBACK")

    def keep(self, cursor):
        ids = [id for row in cursor.fetchall() for id in row]
        self.told[self.life].extend(ids)
        self.kept += len(ids)
        return ids

    def single(self, db):
        inserted = "INSERT INTO made SELECT FROM generate_series(1, %s) RETURNING id"
        self.durable[self.life].extend(self.keep(db.execute(inserted, [self.random.randint(1, 5)])))

    def rolled_back(self, db):
        db.execute("BEGIN")
        self.keep(db.execute("SELECT flake_next('twitter'), flake_next('twitter')"))
        db.execute("SAVEPOINT a")
        self.keep(db.execute(MANY, [20]))
        db.execute("ROLLBACK TO a")
        self.keep(db.execute(MANY, [20]))
        db.execute(self.random.choice(["COMMIT", "ROLLBACK"]))

    def nested(self, db):
        self.keep(db.execute("SELECT nested(%s)", [self.random.randint(1, 20)]))

    def prepared(self, db):
        name = f"'{self.number}-{next(self.names)}'"
        db.execute("BEGIN")
        ids = self.keep(db.execute("INSERT INTO made SELECT FROM generate_series(1, 5) RETURNING id"))
        db.execute(f"PREPARE TRANSACTION {name}")
        self.durable[self.life].extend(ids)
        # The others stay, and keep nobody from making IDs.
        if self.random.random() < 0.9:
            db.execute(f"COMMIT PREPARED {name}")

    def timeout(self, db):
        db.execute(f"SET statement_timeout = {self.random.choice([0, 1, 3, 10])}")

    def cancel(self, db):
        db.execute(OTHERS.format("pg_cancel_backend", 3))

    def terminate(self, db):
        if self.random.random() < 0.2:
            db.execute(OTHERS.format("pg_terminate_backend", 1))

    def discard(self, db):
        db.execute("DISCARD ALL")


# A server that has crashed has another one.
LIFE = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
OTHERS = """
    SELECT count({}(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE application_name = 'load' AND pid <> pg_backend_pid()
                                ORDER BY random() LIMIT {}) others"""


def none_is_made_twice(clients):
    """After a crash, an ID can be made again if its transaction was not durably committed."""
    began = {}
    for life, at in (each for client in clients for each in client.began.items()):
        began[life] = min(at, began.get(life, at))
    durable = set()
    for life in sorted(began, key=began.get):
        told = [id for client in clients for id in client.told[life]]
        assert len(set(told)) == len(told) and durable.isdisjoint(told)
        durable.update(id for client in clients for id in client.durable[life])


@pytest.mark.matrix
def test_no_id_is_made_twice_under_load(own_servers):
    """The clock steps by 50 minutes forth and back, each time that a part of the IDs is made. That part may take the ten
    minutes that are left of the lead. In a server of so many sessions, libfaketime aborts one now and then, so it crashes."""
    server = managed_server(own_servers, clock=running(0))
    server.sql("CREATE TABLE made (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    server.sql(NESTED)
    enough = threading.Event()
    clients = [Client(server, number, enough) for number in range(SESSIONS)]

    def kept():
        return sum(client.kept for client in clients)

    with concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool:
        ended = [pool.submit(client.run) for client in clients]
        try:
            for step in range(STEPS):
                server.set_clock(running(50 * 60 * (step % 2)))
                enough_for_now = IDS * (step + 1) / STEPS
                wait_until(lambda: kept() >= enough_for_now or any(one.done() for one in ended), max(900, IDS / 1000))  # noqa: B023
        finally:
            enough.set()
        errors = sum((one.result() for one in ended), collections.Counter())
    assert kept() >= IDS and errors.total() > 10
    # A connection that ends while it begins has no SQLSTATE.
    assert errors.keys() <= {"57014", "57P01", None}, errors
    none_is_made_twice(clients)
    assert server.value("SELECT count(*) FROM pg_locks WHERE relation = 'flake.gate'::regclass") == 0


@pytest.mark.matrix
def test_no_id_is_made_twice_behind_a_pool(own_servers):
    server = managed_server(own_servers)
    server.sql("CREATE TABLE made (id bigint DEFAULT flake_next('twitter'))")
    with bouncer.bouncer(server, "transaction", 50, 10) as directory:
        bouncer.load(server, directory, "BEGIN; INSERT INTO made SELECT FROM generate_series(1, 20); COMMIT;", 50, 40)
    assert server.sql("SELECT count(*), count(DISTINCT id) FROM made") == [(40000, 40000)]


@pytest.fixture(scope="module")
def server(servers):
    """Node 1 of 3 beside the extension, which has the same number in another database."""
    server = servers(*SETTINGS, "flake.node_id=1", "flake.node_count=3")
    server.sql("CREATE DATABASE plain")
    managed.install(server, "plain", (1, 3))
    server.sql("CREATE DATABASE small")
    managed.install(server, "small", (1023, 1024))
    return server


@pytest.fixture
def plain(server):
    with server.connect(dbname="plain") as db:
        yield db


def generating(db):
    return [name for name, in db.execute("SELECT name FROM flake_layouts WHERE generates AND ends_at > now()").fetchall()]


def test_ids_are_of_the_part_of_the_extension_and_in_time(server, plain):
    with server.connect() as extension:
        assert generating(plain) == generating(extension)
        for layout in generating(plain):
            if layout in ("si_single", "mastodon"):
                # They have no worker for each of three nodes.
                with pytest.raises(psycopg.errors.InvalidParameterValue):
                    plain.execute("SELECT flake_next(%s)", [layout])
                continue
            ids, now = plain.execute("SELECT array_agg(id), clock_timestamp() FROM flake_batch(%s, 200) id", [layout]).fetchone()
            assert len(set(ids)) == 200
            read = "SELECT id, flake_node(id, %(layout)s), flake_timestamp(id, %(layout)s) FROM unnest(%(ids)s::bigint[]) id"
            for id, node, time in extension.execute(read, {"layout": layout, "ids": ids}).fetchall():
                assert node == 1 and 0 <= (now - time).total_seconds() < 3, (layout, id)
            if extension.execute("SELECT increasing FROM flake_layouts WHERE name = %s", [layout]).fetchone()[0]:
                assert ids == sorted(ids), layout
            own, = extension.execute("SELECT array_agg(id) FROM flake_batch(%s, 200) id", [layout]).fetchone()
            decoded = extension.execute("SELECT (flake_decode(id, %s)).worker FROM unnest(%s::bigint[]) id", [layout, ids + own])
            first, count = workers(extension, layout)
            assert {(worker - first) // count for worker, in decoded.fetchall()} == {1}, layout


def workers(extension, layout):
    """The first worker of node 1 of 3, and how many workers a part of it has. The first timeline has the second part."""
    bits, = extension.execute("""
        SELECT COALESCE(sum((f->>'bits')::integer), 0)::integer FROM flake_layouts, jsonb_array_elements(fields) f
        WHERE name = %s AND f->>'role' = 'worker'""", [layout]).fetchone()
    return (1 << bits) // 3, (1 << bits) // 3 // 8


@pytest.mark.parametrize("layout", ["uniqueid", "sonyflake", "twitter"])
def test_small_parts_are_used_up_tick_by_tick(server, layout):
    """The last of 1,024 nodes has 16 IDs of uniqueid in a millisecond."""
    with contextlib.ExitStack() as opened, concurrent.futures.ThreadPoolExecutor(4) as pool:
        dbs = [opened.enter_context(server.connect(dbname="small")) for _ in range(4)]
        batches = pool.map(lambda db: db.execute("SELECT flake_batch(%s, 4000)", [layout]).fetchall(), dbs)
        ids = [id for rows in batches for id, in rows]
    assert len(set(ids)) == len(ids) == 16000


def test_the_lowest_bits_differ_from_insert_to_insert(plain):
    ids = []
    for _ in range(64):
        ids += plain.execute("SELECT flake_next('twitter')").fetchone()
        plain.execute("SELECT pg_sleep(0.002)")
    assert len({id % 16 for id in ids}) == 16


def test_a_transaction_holds_nothing_that_others_need(server, plain):
    with server.connect(dbname="plain") as open, server.connect(dbname="plain") as idle:
        for db in (open, idle):
            db.execute("SET statement_timeout = '20s'; BEGIN; SAVEPOINT a")
            db.execute("SELECT flake_next('leaf')")
        idle.execute("PREPARE TRANSACTION 'idle'")
        plain.execute("SET statement_timeout = '20s'")
        assert plain.execute("SELECT count(DISTINCT id) FROM flake_batch('leaf', 1000) id").fetchone() == (1000,)
        assert plain.execute("SELECT count(*) FROM pg_locks WHERE relation = 'flake.gate'::regclass").fetchone() == (0,)
        idle.execute("ROLLBACK PREPARED 'idle'")


def test_roles_make_ids_without_a_right_on_anything(server, plain):
    """Neither their search_path nor their operators are used by the owner, and nothing of theirs stops others."""
    for role in ("app", "mallory"):
        server.sql(f"CREATE ROLE {role} LOGIN")
    plain.execute("CREATE SCHEMA mal AUTHORIZATION mallory")
    plain.execute("CREATE TABLE orders (id bigint DEFAULT flake_next('twitter')); GRANT INSERT ON orders TO app, mallory")
    with server.connect(dbname="plain", user="app") as app:
        app.execute("INSERT INTO orders VALUES (DEFAULT)")
        for statement in [
            "SELECT nextval('flake.twitter')", "SELECT setval('flake.twitter', 1)", "SELECT last_value FROM flake.twitter",
            "BEGIN; LOCK TABLE flake.gate IN ACCESS SHARE MODE", "SELECT flake_start_above(1, 'twitter')",
            "SELECT flake_set_node(0, 1)", "SELECT secret FROM flake.key", "SELECT flake_unseal('x', 'x')",
            "SELECT flake.raised('flake.twitter', 1000, 22, 1)",
        ]:  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.execute(statement)
            app.execute("ROLLBACK")
        assert app.execute("SELECT bool_and(ok IS NOT false) FROM flake_check()").fetchone() == (True,)
    with server.connect(dbname="plain", user="mallory") as mallory:
        mallory.execute("""
            CREATE FUNCTION mal.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 5::bigint';
            CREATE FUNCTION mal.shift(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT 5::bigint';
            CREATE OPERATOR mal.>> (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = mal.shift);
            CREATE FUNCTION mal.is_text(text) RETURNS boolean LANGUAGE sql AS $$ SELECT current_user = 'mallory' $$;
            CREATE DOMAIN mal.text AS pg_catalog.text CHECK (mal.is_text(value));
            CREATE TEMP TABLE pg_class (a integer);
            SET statement_timeout = '30s';
            SET search_path = mal, pg_temp, pg_catalog, public;""")
        mallory.execute("INSERT INTO public.orders SELECT FROM generate_series(1, 100)")
        for layout in generating(plain):
            if layout not in ("si_single", "mastodon"):
                mallory.execute("SELECT flake_next(%s)", [layout])
    assert plain.execute("SELECT count(*), count(DISTINCT id) FROM orders").fetchone() == (101, 101)


@pytest.mark.matrix
@pytest.mark.parametrize("withheld", [
    ["pg_walfile_name(pg_lsn)"],
    ["pg_walfile_name(pg_lsn)", "pg_control_checkpoint()", "pg_control_system()"],
])  # fmt: skip
def test_a_service_that_withholds_functions_is_reported(own_servers, withheld):
    """The owner of the database is not a superuser."""
    server = own_servers(extension=False)
    server.sql("CREATE ROLE service LOGIN")
    server.sql("CREATE DATABASE service OWNER service")
    with server.connect(dbname="service") as db:
        for function in withheld:
            db.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
    managed.install(server, "service", user="service")
    with server.connect(dbname="service", user="service") as db:
        assert db.execute("SELECT count(DISTINCT id) FROM flake_batch('twitter', 100) id").fetchone() == (100,)
        found = findings(db)
        assert found["turn"][0] is False
        assert found["installation"][0] is (True if len(withheld) == 1 else None)


@pytest.mark.matrix
def test_standbys_and_transactions_that_only_read_are_refused(own_servers):
    server = managed_server(own_servers)
    standby = own_servers(standby_of=server)
    for db in (standby.connect(), server.connect(options="-c default_transaction_read_only=on")):
        with db, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            db.execute("SELECT flake_next('twitter')")


@pytest.fixture
def clocked(own_servers):
    """A server with IDs in a table, whose clock can be set."""
    server = managed_server(own_servers, clock=running(0))
    server.sql("CREATE TABLE made (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    server.sql("INSERT INTO made SELECT FROM generate_series(1, 1000)")
    return server


def findings(db):
    return {name: (ok, hint) for name, ok, hint in db.execute("SELECT name, ok, hint FROM flake_check()").fetchall()}


def test_sequences_that_are_set_back_while_ids_are_made_let_nobody_hang(clocked):
    """IDs can be made twice then, and the sequence catches up at once."""
    with clocked.connect() as reset, clocked.connect() as db, concurrent.futures.ThreadPoolExecutor(1) as pool:
        db.execute("SET statement_timeout = '60s'")
        making = pool.submit(db.execute, "SELECT count(*) FROM flake_batch('uniqueid', 5000)")
        while not making.done():
            reset.execute("SELECT setval('flake.uniqueid', 1)")
        assert making.result().fetchone() == (5000,)


def test_the_check_sees_sequences_that_were_set_back_and_rights_that_were_given(clocked):
    with clocked.connect() as db:
        assert findings(db)["greatest ID of public.made.id"] == (True, None)
        db.execute("SELECT setval('flake.twitter', 1)")
        ok, hint = findings(db)["greatest ID of public.made.id"]
        assert ok is False
        db.execute(hint)
        assert findings(db)["greatest ID of public.made.id"] == (True, None)
        assert findings(db)["rights"][0] is True
        db.execute("GRANT USAGE ON SEQUENCE flake.si TO pg_monitor")
        assert findings(db)["rights"][0] is False


def test_a_restored_dump_reads_and_makes_ids_and_the_check_says_where_it_is(clocked):
    clocked.sql("CREATE TABLE read (id bigint, at timestamptz GENERATED ALWAYS AS (flake_timestamp(id, 'twitter')) STORED)")
    clocked.sql("CREATE INDEX ON read (flake_timestamp(id, 'leaf')); INSERT INTO read SELECT id FROM made")
    clocked.sql("CREATE DATABASE copy")
    dump = clocked.run("pg_dump", "postgres").stdout
    clocked.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "copy", input=dump)
    with clocked.connect(dbname="copy") as copy:
        assert copy.execute("SELECT count(*) FROM read WHERE at = flake_timestamp(id)").fetchone() == (1000,)
        assert findings(copy)["installation"][0] is False
        copy.execute("SELECT flake_set_node(1, 2)")
        assert findings(copy)["installation"][0] is True
        worker, = copy.execute("SELECT (flake_decode(id)).worker FROM flake_next('twitter') id").fetchone()
        assert worker >= 512
        copy.execute("INSERT INTO made SELECT FROM generate_series(1, 100)")


def test_nothing_but_the_secrets_is_published(clocked):
    clocked.sql("CREATE PUBLICATION everything FOR ALL TABLES")
    published = clocked.sql("SELECT tablename FROM pg_publication_tables WHERE schemaname = 'flake'")
    assert published == [("key",)]
