"""Calls nested in arguments: planning them takes about as much time and memory as planning PostgreSQL's own comparisons, and
can be canceled. The limits apply to the server process, so other load does not matter."""

import dataclasses
import pathlib
import re
import subprocess

import psycopg
import pytest

from conftest import as_server
from waiting import processor_seconds

# The limits of a query with the calls, unless the same query with comparisons exceeds them too.
SECONDS, MEGABYTES = 1.5, 100
# At these limits the session is killed, to protect the machine.
FAR_TOO_LONG, FAR_TOO_MUCH = 20, 1 << 30


@pytest.fixture(scope="module")
def server(servers):
    server = servers()
    server.sql("""
        CREATE TABLE ids (n integer, id bigint PRIMARY KEY, sid sno, span tstzrange);
        INSERT INTO ids SELECT n, flake_min(at), sno_make(at), tstzrange(at, at + interval '5 days')
        FROM (SELECT n, '2026-01-01Z'::timestamptz + n * interval '1 day' AS at FROM generate_series(1, 9) n) s;
        ANALYZE ids""")
    return server


@dataclasses.dataclass
class Spent:
    """The cost of a query, and its rows or the SQLSTATE that it has instead."""

    seconds: float
    megabytes: float
    rows: list | None
    why: str | None

    @property
    def is_much(self):
        return self.seconds > SECONDS or self.megabytes > MEGABYTES


def memory(db, which):
    """Returns the memory of a session's process in bytes, as the system counts it."""
    status = pathlib.Path(f"/proc/{db.info.backend_pid}/status").read_text()
    return int(re.search(rf"^{which}:\s*(\d+) kB", status, re.M)[1]) << 10


def spent(server, query, *ready, timeout="1s"):
    """Runs a query in a session of its own, after the commands that prepare it, and returns its cost."""
    with server.connect() as db:
        for command in ready:
            db.execute(command)
        db.execute(f"SET max_parallel_workers_per_gather = 0; SET jit = off; SET statement_timeout = '{timeout}'")
        seconds, most = processor_seconds(db), memory(db, "VmHWM")
        limits = f"--as={memory(db, 'VmSize') + FAR_TOO_MUCH}", f"--cpu={FAR_TOO_LONG}"
        subprocess.run(as_server("prlimit", "--pid", str(db.info.backend_pid), *limits), check=True)
        rows = why = None
        try:
            rows = sorted(map(repr, db.execute(query).fetchall()))
        except psycopg.Error as error:
            assert not db.closed, f"stopped by force: {query[:1000]}"
            why = error.sqlstate
        return Spent(processor_seconds(db) - seconds, (memory(db, "VmHWM") - most) / (1 << 20), rows, why)


def nested(depth, call, arguments, last):
    """Nests calls in each other's arguments, the last one innermost."""
    for _ in range(depth):
        last = arguments.format(call.format(last))
    return call.format(last)


SPAN = "CASE WHEN {} THEN tstzrange('2026-01-01Z', now()) ELSE 'empty' END"
LAYOUT = "CASE WHEN {} THEN 'twitter' ELSE 'leaf' END"
# The planner evaluates none of these.
FIXED, OF_ROW, LATER = "'[2026-01-01Z,2026-01-02Z)'::text::tstzrange", "span", "CASE WHEN now() > '2026-01-01Z' THEN 'leaf' END"


@pytest.mark.matrix
@pytest.mark.parametrize("setting", ["DEFAULT", "0", "1e308"])
@pytest.mark.parametrize("call, plain, arguments, last", [
    ("flake_during({key}, {{}})", "({{}}) @> flake_timestamp({key})", SPAN, FIXED),
    ("flake_during({key}, {{}})", "({{}}) @> flake_timestamp({key})", SPAN, OF_ROW),
    ("flake_during({key}, '(,)', {{}})", "'(,)'::tstzrange @> flake_timestamp({key}, {{}})", LAYOUT, LATER),
    ("sno_during({sid}, {{}})", "({{}}) @> sno_timestamp({sid})", SPAN, FIXED),
], ids=["span", "span of the row", "layout", "sno"])  # fmt: skip
@pytest.mark.parametrize("inner", [
    {"key": "1", "sid": "sno_make('2026-01-01Z')"}, {"key": "id", "sid": "sid"},
], ids=["fixed", "row"])  # fmt: skip
def test_nested_calls_do_not_double_the_plan(server, call, plain, arguments, last, inner, setting):
    """If a level were written twice, 16 levels would be 65,536 times as large."""
    for depth in 16, 300:
        took = []
        for form in call, plain:
            span = nested(depth, form.format(**inner), arguments, last)
            query = f"SELECT n FROM ids WHERE {form.format(key='id', sid='sid').format(arguments.format(span))}"
            took.append(spent(server, query, f"SET cpu_operator_cost = {setting}"))
        assert not took[0].is_much and not took[1].is_much, took


@pytest.mark.parametrize("grouped", ["g", "g, " + " || ".join(["g::text"] * 2000)], ids=["by a column", "by a long text"])
def test_many_calls_beside_grouping_sets_are_planned_fast(server, grouped):
    condition = " OR ".join(f"flake_during(g + {n}, '[2025-01-01Z,2025-01-02Z)')" for n in range(1000))
    query = f"""SELECT g, count(*) FILTER (WHERE {condition}) FROM (VALUES (1::bigint)) v(g)
                GROUP BY GROUPING SETS (({grouped}), ())"""
    took = spent(server, query, timeout="1min")
    assert took.rows == ["(1, 0)", "(None, 0)"] and not took.is_much, took


def test_planning_can_be_stopped(server):
    """Each call examines its arguments, including all calls in them."""
    span = SPAN.format(nested(1000, "flake_during(1, {})", SPAN, FIXED))
    prepared = f"PREPARE nested AS SELECT n FROM ids WHERE {' AND '.join([f'flake_during(id, {span})'] * 4)}"
    whole, stopped = (spent(server, "EXECUTE nested", prepared, timeout=timeout) for timeout in ("1min", "10ms"))
    assert whole.rows == [] and stopped.why == "57014", (whole, stopped)
    assert stopped.seconds < whole.seconds / 4, (whole, stopped)
