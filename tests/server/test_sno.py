"""sno among sessions, under a clock that is set, and through clients."""

import json
import shutil
import subprocess

import psycopg
import psycopg.adapt
import pytest

from conftest import SECONDS

INSERT = """INSERT INTO made (id, n)
    SELECT CASE n % 3 WHEN 0 THEN sno_next(n % 256) WHEN 1 THEN sno_next(n % 256, 7) ELSE sno_next(0, n % 50) END, n
    FROM generate_series(1, 100) n;\n"""


@pytest.fixture(scope="module")
def server(servers):
    """With room for sessions that have not ended when the next ones come."""
    return servers("max_connections=200")


@pytest.mark.parametrize("arguments", [[], ["-C"]], ids=["lasting", "reconnecting"])
def test_many_sessions(server, arguments):
    server.sql("DROP TABLE IF EXISTS made; CREATE UNLOGGED TABLE made (id sno PRIMARY KEY, n int)")
    each = (8 if arguments else 40) * SECONDS
    server.pgbench(INSERT, *arguments, "-c", 32, "-j", 2, "-t", each)
    count, different, without_metabyte = server.sql("""
        SELECT count(*), count(DISTINCT id), count(DISTINCT sno_with_metabyte(id, 0)) FROM made""")[0]
    assert count == 3200 * each
    # The metabyte takes no part in uniqueness.
    assert (different, without_metabyte) == (count, count)
    kinds = server.sql("SELECT sno_partition(id) >= 32768, n % 3 = 0 FROM made GROUP BY 1, 2 ORDER BY 1")
    assert kinds == [(False, False), (True, True)]


def test_nodes_divide_the_partitions(servers):
    for node in range(2):
        server = servers("flake.node_count=2", f"flake.node_id={node}", "max_connections=20")
        with server.connect() as db:
            db.execute("SELECT sno_next(), sno_next(0, 9)")
            shares = db.execute("SELECT lower(workers), lower(sequences) FROM flake_generators ORDER BY 1 DESC").fetchall()
            (automatic, _), (caller, first) = shares
            assert (automatic - 32768) // 16384 == node
            assert (caller, first >= 32768) == (9, node == 1)


def ids(db, count, *arguments):
    call = f"sno_next({', '.join(map(str, arguments))})"
    return [id for id, in db.execute(f"SELECT {call}::text FROM generate_series(1, {count})")]


def test_tick_tock(servers):
    server = servers(clock="-10000")
    # To before this ID no generator goes back: it does not know what was made there.
    server.sql("SELECT sno_next()")
    server.set_clock("+0")
    with server.connect() as db:
        before = ids(db, 1000)
        assert db.execute("SELECT sno_tick_tock(%s::text::sno)", (before[-1],)).fetchone() == (False,)
        server.set_clock("-3600")
        after = ids(db, 1000)
        assert db.execute("SELECT sno_tick_tock(%s::text::sno)", (after[0],)).fetchone() == (True,)
        waited, steps = db.execute("SELECT waited, clock_steps FROM flake_generators").fetchone()
        assert waited.total_seconds() < 0.1, "the first step back does not wait"
        assert steps == 1
        # Again into the same past: those units may be used.
        server.set_clock("-7200")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as error:
            ids(db, 1)
        assert error.value.diag.message_primary == 'clock is behind the last ID of layout "sno"'
        # Back where it went on, and past where it stopped.
        server.set_clock("-3600")
        again = ids(db, 1000)
        server.set_clock("+0")
        later = ids(db, 1000)
        # Above what was left behind a step back toggles once more.
        server.set_clock("+100")
        ahead = ids(db, 1000)
        server.set_clock("+50")
        last = ids(db, 1000)
        assert db.execute("SELECT sno_tick_tock(%s::text::sno)", (last[0],)).fetchone() == (False,)
        everything = [*before, *after, *again, *later, *ahead, *last]
        assert len(set(everything)) == 6000


def test_abbreviated_keys(server):
    with server.connect() as db:
        logged = []
        db.execute("""CREATE UNLOGGED TABLE many AS
            SELECT sno_make('2026-01-01Z'::timestamptz + random() * interval '1 day', n % 256, n % 65536, n % 65536) AS id
            FROM generate_series(1, 300000) n""")
        db.add_notice_handler(lambda notice: logged.append(notice.message_primary))
        db.execute("SET trace_sort = on; SET client_min_messages = log; SET max_parallel_maintenance_workers = 0")
        db.execute("CREATE INDEX ON many (id)")
        assert any(message.startswith("sno_abbrev: abbreviated keys after") for message in logged)
        db.execute("RESET client_min_messages; RESET trace_sort; SET enable_seqscan = off; SET enable_bitmapscan = off")
        disorder = db.execute("""SELECT count(*) FROM (SELECT id::bytea AS b, lag(id::bytea) OVER (ORDER BY id) AS a FROM many) s
                                 WHERE b < a""").fetchone()
        assert disorder == (0,)


class SnoBinary(psycopg.adapt.Loader):
    format = psycopg.pq.Format.BINARY

    def load(self, data):
        return bytes(data)


class Bytes(bytes):
    """Ten bytes that are sent as a sno."""


def sno_dumper(type_oid):
    class SnoDumper(psycopg.adapt.Dumper):
        format = psycopg.pq.Format.BINARY
        oid = type_oid

        def dump(self, value):
            return bytes(value)

    return SnoDumper


def test_psycopg(server):
    with server.connect() as db:
        db.execute("CREATE TABLE p (id sno PRIMARY KEY)")
        made, = db.execute("SELECT sno_next(9)").fetchone()
        assert isinstance(made, str) and len(made) == 16
        db.execute("INSERT INTO p VALUES (%s)", (made,))
        assert db.execute("SELECT id FROM p WHERE id = %s", (made,)).fetchone() == (made,)
        # Binary both ways: what is sent as bytes of the type, and what comes back as them.
        oid, = db.execute("SELECT 'sno'::regtype::oid").fetchone()
        db.adapters.register_loader(oid, SnoBinary)
        received, = db.execute("SELECT id FROM p", binary=True).fetchone()
        assert len(received) == 10
        assert db.execute("SELECT %s::bytea = id::bytea FROM p", (received,)).fetchone() == (True,)
        db.adapters.register_dumper(Bytes, sno_dumper(oid))
        assert db.execute("SELECT id::text FROM p WHERE id = %b", (Bytes(received),)).fetchone() == (made,)
        with pytest.raises(psycopg.errors.InvalidBinaryRepresentation):
            db.execute("SELECT id FROM p WHERE id = %b", (Bytes(received[:9]),))
        with db.cursor().copy("COPY p TO STDOUT (FORMAT binary)") as copy:
            dump = b"".join(bytes(block) for block in copy)
        assert received in dump
        db.execute("TRUNCATE p")
        with db.cursor().copy("COPY p FROM STDIN (FORMAT binary)") as copy:
            copy.write(dump)
        assert db.execute("SELECT id FROM p").fetchone() == (made,)
        # Nine bytes are no sno.
        short = dump.replace(b"\x00\x00\x00\x0a" + received, b"\x00\x00\x00\x09" + received[:9])
        invalid = pytest.raises(psycopg.errors.InvalidBinaryRepresentation)
        with invalid, db.cursor().copy("COPY p FROM STDIN (FORMAT binary)") as copy:
            copy.write(short)


NODE = """
const { Client } = require('pg');
(async () => {
  const db = new Client();
  await db.connect();
  await db.query('CREATE TABLE node (id sno PRIMARY KEY)');
  const made = (await db.query('SELECT sno_next(3) AS id')).rows[0].id;
  await db.query('INSERT INTO node VALUES ($1)', [made]);
  const found = (await db.query('SELECT id FROM node WHERE id = $1', [made])).rows[0].id;
  // A buffer is sent in binary. Results this client reads as text whatever their format, so bytes come as bytea.
  const binary = (await db.query('SELECT id::bytea AS id FROM node')).rows[0].id;
  const same = (await db.query('SELECT count(*)::int AS n FROM node WHERE id = $1', [binary])).rows[0].n;
  binary[5] = 4;
  await db.query('INSERT INTO node VALUES ($1)', [binary]);
  const count = (await db.query('SELECT count(*)::int AS n FROM node')).rows[0].n;
  console.log(JSON.stringify({ made, found, same, bytes: binary.length, count }));
  await db.end();
})();
"""


def test_node(server):
    if not shutil.which("npm"):
        pytest.skip("no npm here")
    folder = server.base / "node"
    folder.mkdir()
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "pg@8"], cwd=folder, check=True, capture_output=True)
    (folder / "client.js").write_text(NODE)
    command, environment = ["node", "client.js"], server.client_environment
    ran = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout)
    assert result["made"] == result["found"] and len(result["made"]) == 16
    assert (result["bytes"], result["same"], result["count"]) == (10, 1, 2)
    assert server.sql("SELECT sno_metabyte(id) FROM node ORDER BY id") == [(3,), (4,)]


def test_soft_errors(server):
    if server.value("SELECT current_setting('server_version_num')::int") < 160000:
        pytest.skip("PostgreSQL has soft errors from 16 on")
    assert server.value("SELECT pg_input_is_valid('brpk4q72xwf2m63l', 'sno')") is True
    assert server.value("SELECT pg_input_is_valid('BRPK4Q72XWF2M63L', 'sno')") is False
    assert server.sql("SELECT message, detail, sql_error_code FROM pg_input_error_info('x', 'sno')") == [
        ('invalid input syntax for type sno: "x"', "Expected 16 characters, got 1.", "22P02")]  # fmt: skip


def test_dump_and_restore(server):
    server.sql("CREATE DATABASE sno_original")
    server.sql("CREATE DATABASE sno_restored")
    with server.connect(dbname="sno_original") as db:
        db.execute("""CREATE EXTENSION flake;
            CREATE TABLE t (id sno PRIMARY KEY DEFAULT sno_next(1),
                            at timestamptz GENERATED ALWAYS AS (sno_timestamp(id)) STORED);
            CREATE INDEX ON t USING hash (id);
            INSERT INTO t SELECT FROM generate_series(1, 1000)""")
    dump = server.run("pg_dump", "sno_original").stdout
    assert server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "sno_restored", input=dump).stderr == ""
    with server.connect(dbname="sno_original") as one, server.connect(dbname="sno_restored") as two:
        content = "SELECT array_agg(t ORDER BY id) FROM t"
        assert one.execute(content).fetchone() == two.execute(content).fetchone()


def test_row_estimates(server):
    """A sno of each minute of 20 days, all of which are in the sample: hours, and single bounds. The histogram is finer than
    that of another type, from the same sample."""
    with server.connect() as db:
        db.execute("""
            SET timezone = 'UTC';
            CREATE TABLE minutes AS
            SELECT sno_make(timestamptz '2026-01-01Z' + n * interval '1 minute') AS id,
                   sno_make(timestamptz '2026-01-01Z' + (n ^ 0.75)::int * interval '1 minute') AS parent,
                   CASE WHEN n % 3 = 0 THEN sno_make('2026-01-01Z', n % 20) END AS kind
            FROM generate_series(0, 20 * 1440 - 1) n;
            ANALYZE minutes""")

        def estimate(condition):
            (plan,), = db.execute(f"EXPLAIN (FORMAT json) SELECT FROM minutes WHERE {condition}").fetchone()
            return plan["Plan"]["Plan Rows"]

        for hour in range(20 * 24):
            start = f"timestamptz '2026-01-01Z' + interval '{hour} hours'"
            assert 30 < estimate(f"sno_during(id, tstzrange({start}, {start} + interval '1 hour'))") < 130, hour
            assert abs(estimate(f"id < sno_min({start})") - hour * 60) < 40, hour
            assert abs(estimate(f"id >= sno_min({start})") - (20 * 24 - hour) * 60) < 40, hour
        statistics = {name: (ends, common) for name, ends, common in db.execute("""
            SELECT attname, cardinality(histogram_bounds::text::text[]), cardinality(most_common_vals::text::text[])
            FROM pg_stats WHERE tablename = 'minutes'""")}  # fmt: skip
        assert statistics["id"] == (501, None)
        ends, common = statistics["parent"]
        assert 150 < ends <= 501 and 50 < common <= 500
        assert statistics["kind"] == (None, 20)
        in_order = "SELECT histogram_bounds::text::sno[] = ARRAY(SELECT unnest(histogram_bounds::text::sno[]) ORDER BY 1) " \
            "AND NOT histogram_bounds::text::sno[] && most_common_vals::text::sno[] FROM pg_stats " \
            "WHERE tablename = 'minutes' AND attname = 'parent'"  # fmt: skip
        assert db.execute(in_order).fetchone() == (True,)
        # The column's own target counts.
        db.execute("ALTER TABLE minutes ALTER id SET STATISTICS 20; ANALYZE minutes")
        ends, = db.execute("SELECT cardinality(histogram_bounds::text::text[]) FROM pg_stats "
                           "WHERE tablename = 'minutes' AND attname = 'id'").fetchone()  # fmt: skip
        assert ends == 101
        db.execute("DROP TABLE minutes")
