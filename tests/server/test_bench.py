"""The benchmarks run with few rows. Plots, the profile and instruction counts are left out, because they need other tools."""

import contextlib
import functools
import re
import sys

import pytest

from conftest import ROOT, bindir

sys.path.insert(0, str(ROOT / "bench"))


@pytest.fixture
def small(server, monkeypatch):
    import consumers
    import filters
    import loads
    import queries
    import sessions
    import tables
    import tightness

    for name, value in server.client_environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FLAKE_BENCH_ROUNDS", "0.01")
    monkeypatch.setenv("PATH", f"{bindir()}:{server.client_environment['PATH']}")
    monkeypatch.setattr(queries, "ROWS", 1000)
    monkeypatch.setattr(queries, "TICKS", 3)
    monkeypatch.setattr(sessions, "CONNECTIONS", 20)
    monkeypatch.setattr(tables, "ROWS", 5000)
    monkeypatch.setattr(loads, "ROWS", 4000)
    monkeypatch.setattr(tables, "LOOKUPS", 100)
    monkeypatch.setattr(tables, "RANGES", 4)
    monkeypatch.setattr(sessions, "NUMBERS", [1, 2])
    for module in consumers, sessions:
        monkeypatch.setattr(module, "pgbench", functools.partial(briefly, sessions.pgbench))
    monkeypatch.setattr(consumers, "ROWS", 800)
    monkeypatch.setattr(consumers, "LONG", 0.3)
    monkeypatch.setattr(filters, "ROWS", 5000)
    monkeypatch.setattr(filters, "FOUND", [10, 100])
    monkeypatch.setattr(tightness, "ROWS", 2400)
    monkeypatch.setattr(tightness, "LAYOUTS", ["twitter"])
    monkeypatch.setattr(tightness, "PAIRS", 100)
    monkeypatch.setattr(tightness, "STATEMENTS", 50)
    return server


def briefly(pgbench, script, clients, seconds=None, transactions=20, **options):
    """Runs a number of transactions where the benchmark runs for some seconds."""
    return pgbench(script, clients, transactions=transactions, **options)


def assert_no_place_is_empty(page):
    names = re.findall(r"^<!-- end of (.*) -->$", page, re.M)
    assert names
    for name in names:
        assert re.search(f"^<!-- {name} -->\n.+\n<!-- end of {name} -->$", page, re.M | re.S), f"{name} is empty"


@pytest.mark.matrix
def test_all_parts_of_the_benchmarks_run(small, tmp_path):
    import consumers
    import contestants
    import filters
    import loads
    import queries
    import report
    import run
    import sessions
    import tables

    (tmp_path / "docs/explanation").mkdir(parents=True)
    for page in "README.md", "docs/explanation/benchmarks.md":
        without = re.sub(r"(<!-- (\w+) -->\n).*?(<!-- end of \2 -->)", r"\1\3", (ROOT / page).read_text(), flags=re.S)
        assert "| flake_next('twitter') | " not in without
        (tmp_path / page).write_text(without)
    with contextlib.closing(run.connect()) as db:
        here, missing = contestants.present(db)
        assert {c.key for c in here} >= {"flake", "batch", "sno", "bigserial", "cached", "uuid4", "instagram", "mastodon"}
        assert {label for label, _ in missing} <= {c.label for c in contestants.ALL if c.extension or c.key == "uuid7"}
        fill, wal, repeated = tables.fill(db, here, 1)
        unique = [c for c in here if c.key not in repeated]
        some = [c for c in here if c.key in ("flake", "bigserial")]
        results = {
            "machine": run.machine(db), "labels": {c.key: c.label for c in here}, "ours": [], "clients": sessions.NUMBERS,
            "twitter": queries.ids_of_twitter(db), "memory": queries.memory(run.connect), "waiting": queries.waiting(run.connect),
            "calls": queries.calls(db, here, 1), "rows": queries.rows(db, 1),
            "fill": fill, "wal": wal, "repeated": repeated, **run.of_tables(db, unique, 1),
            "loads": loads.measure(db, 1), "last hour": loads.last_hour(db, 1),
            "inserts": [{key: [1.0, 2.0] for key in fill} | found for found in sessions.inserts(db, some, 1, 1)],
            "generating": sessions.generating(some, 1, 1),
            "tight": run.tight(db, some, 1), "tight of 32": run.one_of_many(),
            "loaded": sessions.loaded(1, 1), "consumers": consumers.measure(db, run.connect, 1, 1),
            "filters": filters.measure(db, 1),
            "reconnecting, loaded": sessions.reconnecting(1, 1), "reconnecting, preloaded": sessions.reconnecting(1, 1),
            "profile": None, "instructions": None, "first ID": None, "writers": None,
            "standby": {"interval": 0.05, "longest": 0.06, "more": [0.01, 0.04, 0.05]},
        }  # fmt: skip
    assert "flake" in fill and "bigserial" in fill
    report.write(tmp_path, results)
    report.write_other(tmp_path, results)
    page = (tmp_path / "docs/explanation/benchmarks.md").read_text()
    assert results["machine"] in page and f"a server has {results['waiting']['ids']} IDs of `si`" in page
    assert f"## On PostgreSQL {report.version(results)}\n" in page
    assert all(f"| {c.label} |" in page for c in unique)
    assert_no_place_is_empty(page)
    assert "| flake_next('twitter') |" in (tmp_path / "README.md").read_text()


def test_the_pages_show_what_was_measured():
    """The pages have the output of a run of `make bench` on each of two versions, with the plots of the first."""
    for page in ROOT / "README.md", ROOT / "docs/explanation/benchmarks.md":
        text = page.read_text()
        assert_no_place_is_empty(text)
        for path in re.findall(r"!\[.*?\]\((.*?benchmarks/.*?)\)", text):
            assert (page.parent / path).read_text().startswith("<?xml"), path
