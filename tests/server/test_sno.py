"""sno in several sessions, with a clock that is set, and through clients."""

import re

import psycopg
import psycopg.adapt
import pytest

from conftest import ROOT, SECONDS, pg_config

INSERT = """INSERT INTO made (id, n)
    SELECT CASE n % 3 WHEN 0 THEN sno_next(n % 256) WHEN 1 THEN sno_next(n % 256, 7) ELSE sno_next(0, n % 50) END, n
    FROM generate_series(1, 100) n;\n"""


@pytest.fixture(scope="module")
def server(servers):
    """A server with spare connections, because earlier sessions may not have ended when new ones begin."""
    return servers("max_connections=200")


@pytest.mark.matrix
@pytest.mark.parametrize("arguments", [[], ["-C"]], ids=["lasting", "reconnecting"])
def test_no_sno_of_many_sessions_is_made_twice(server, arguments):
    server.sql("DROP TABLE IF EXISTS made; CREATE UNLOGGED TABLE made (id sno PRIMARY KEY, n int)")
    each = (8 if arguments else 40) * SECONDS
    server.pgbench(INSERT, *arguments, "-c", 32, "-j", 2, "-t", each)
    count, different, without_metabyte = server.sql("""
        SELECT count(*), count(DISTINCT id), count(DISTINCT sno_with_metabyte(id, 0)) FROM made""")[0]
    assert count == 3200 * each
    # The metabyte does not make snos unique.
    assert (different, without_metabyte) == (count, count)
    kinds = server.sql("SELECT sno_partition(id) >= 32768, n % 3 = 0 FROM made GROUP BY 1, 2 ORDER BY 1")
    assert kinds == [(False, False), (True, True)]


# The operators, index operators and aggregates of a type, as PostgreSQL's catalogs describe them.
DECLARED = """
    SELECT 'operator', o.oprname, c.oprname, n.oprname, o.oprrest::regproc::text, o.oprjoin::regproc::text,
           o.oprcanhash, o.oprcanmerge
    FROM pg_operator o LEFT JOIN pg_operator c ON c.oid = o.oprcom LEFT JOIN pg_operator n ON n.oid = o.oprnegate
    WHERE (o.oprleft, o.oprright, o.oprresult) = (%(type)s::regtype, %(type)s::regtype, 'bool'::regtype)
    UNION ALL
    SELECT 'index', amname, oprname, amopstrategy::text, amoppurpose::text, NULL, NULL, NULL
    FROM pg_amop a JOIN pg_am m ON m.oid = amopmethod JOIN pg_operator o ON o.oid = amopopr
    JOIN pg_opclass c ON c.opcfamily = amopfamily
    WHERE (amoplefttype, opcintype) = (%(type)s::regtype, %(type)s::regtype) AND opcdefault
    UNION ALL
    SELECT 'aggregate', proname, oprname, proparallel::text, NULL, NULL, aggcombinefn = aggtransfn, agginitval IS NULL
    FROM pg_aggregate a JOIN pg_proc p ON p.oid = aggfnoid JOIN pg_operator o ON o.oid = aggsortop
    WHERE proargtypes[0] = %(type)s::regtype"""


def test_it_is_declared_as_a_type_of_postgresql(server):
    """A wrong negator or combining function would give wrong answers in some plans only."""
    with server.connect() as db:
        of_sno, of_lsn = (set(db.execute(DECLARED, {"type": type})) for type in ("sno", "pg_lsn"))
    assert of_sno == of_lsn
    assert len(of_sno) == 6 + 5 + 1 + 5 + 2


def test_sorting_uses_abbreviated_keys(server):
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


def test_malformed_snos_are_soft_errors(server):
    if server.value("SELECT current_setting('server_version_num')::int") < 160000:
        pytest.skip("PostgreSQL has soft errors from 16 on")
    assert server.value("SELECT pg_input_is_valid('brpk4q72xwf2m63l', 'sno')") is True
    assert server.value("SELECT pg_input_is_valid('BRPK4Q72XWF2M63L', 'sno')") is False
    assert server.sql("SELECT message, detail, sql_error_code FROM pg_input_error_info('x', 'sno')") == [
        ('invalid input syntax for type sno: "x"', "Expected 16 characters, got 1.", "22P02")]  # fmt: skip


@pytest.mark.matrix
def test_estimates_of_rows_are_close(server):
    """The table has a sno for each minute of 20 days, and all are in the sample. Ranges of hours and single bounds are
    estimated. The histogram is finer than another type's from the same sample."""
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
        # The column's own statistics target applies.
        db.execute("ALTER TABLE minutes ALTER id SET STATISTICS 20; ANALYZE minutes")
        ends, = db.execute("SELECT cardinality(histogram_bounds::text::text[]) FROM pg_stats "
                           "WHERE tablename = 'minutes' AND attname = 'id'").fetchone()  # fmt: skip
        assert ends == 101
        db.execute("DROP TABLE minutes")


def test_gist_takes_the_bytes_of_a_sno(server):
    """As docs/reference/sno.md says."""
    if not (pg_config("--sharedir") / "extension/btree_gist.control").exists():
        pytest.skip("this PostgreSQL has no btree_gist")
    constraint = re.search(r"`(EXCLUDE USING gist .*?)`", (ROOT / "docs/reference/sno.md").read_text())[1]
    with server.connect() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS btree_gist")
        db.execute(f"CREATE TABLE booked (id sno, span tstzrange, {constraint})")
        for id in ("6vv9gn2222222222", "6vv9gn2222222223"):
            db.execute("INSERT INTO booked VALUES (%s, '[2026-01-01,2026-01-03)')", (id,))
        again = "INSERT INTO booked VALUES ('6vv9gn2222222222', '[2026-01-02,2026-01-04)')"
        pytest.raises(psycopg.errors.ExclusionViolation, db.execute, again)
        db.execute("INSERT INTO booked VALUES ('6vv9gn2222222222', '[2026-01-03,2026-01-04)')")
