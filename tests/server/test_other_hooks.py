"""Other extensions that set the same hooks: whichever is loaded first, each calls the hook that was set before."""

import pathlib

import pytest

from conftest import pg_config

# A library that sets the same hooks as flake.
OTHER = """
#include "postgres.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
PG_MODULE_MAGIC;
static int relations, requests, startups;
static shmem_request_hook_type next_request;
static shmem_startup_hook_type next_startup;
static void at_request(void) { requests++; if (next_request) next_request(); }
static void at_startup(void) { startups++; if (next_startup) next_startup(); }
#if PG_VERSION_NUM >= 190000
static build_simple_rel_hook_type next_relation;
static void at_relation(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{ relations++; if (next_relation) next_relation(root, rel, rte); }
#define RELATION_HOOK build_simple_rel_hook
#else
static get_relation_info_hook_type next_relation;
static void at_relation(PlannerInfo *root, Oid oid, bool has_children, RelOptInfo *rel)
{ relations++; if (next_relation) next_relation(root, oid, has_children, rel); }
#define RELATION_HOOK get_relation_info_hook
#endif
void _PG_init(void)
{
    next_relation = RELATION_HOOK;
    RELATION_HOOK = at_relation;
    if (!process_shared_preload_libraries_in_progress)
        return;
    next_request = shmem_request_hook;
    shmem_request_hook = at_request;
    next_startup = shmem_startup_hook;
    shmem_startup_hook = at_startup;
}
PG_FUNCTION_INFO_V1(calls);
Datum calls(PG_FUNCTION_ARGS)
{ PG_RETURN_TEXT_P(cstring_to_text(psprintf("%d %d %d", requests, startups, relations))); }
"""
TABLE = "CREATE TABLE ids (id bigint PRIMARY KEY); INSERT INTO ids SELECT flake_next('twitter') FROM generate_series(1, 100)"
FILTER = "SELECT * FROM ids WHERE flake_timestamp(id) >= '2026-01-01Z'"


def calls(db):
    """The other library's counts: requests for memory, initializations of memory, and planned tables."""
    return [int(count) for count in db.execute("SELECT calls()").fetchone()[0].split()]


def assert_both_work(db):
    *_, before = calls(db)
    *_, between = calls(db)
    plan = str(db.execute(f"EXPLAIN {FILTER}").fetchall())
    # Since version 19, the query that reads the counts plans a relation too.
    assert calls(db)[2] - between == between - before + 1
    assert "flake_timestamp" not in plan and "(id >= '" in plan


@pytest.fixture
def other(own_servers):
    server = own_servers()
    library = server.compile("other", OTHER)
    server.sql(f"CREATE FUNCTION calls() RETURNS text LANGUAGE c AS '{library}'; {TABLE}")
    return server, library


@pytest.mark.matrix
@pytest.mark.parametrize("order", ["the other first", "flake first"])
def test_another_extension_loaded_by_a_session_is_called_too(other, order):
    server, library = other
    with server.connect() as db:
        for name in [library, "flake"] if order == "the other first" else ["flake", library]:
            db.execute(f"LOAD '{name}'")
        assert_both_work(db)


@pytest.mark.matrix
@pytest.mark.parametrize("order", ["the other first", "flake first"])
def test_another_preloaded_extension_is_called_too(other, order):
    server, library = other
    names = [str(library), "flake"] if order == "the other first" else ["flake", str(library)]
    server.restart(f"shared_preload_libraries={','.join(names)}")
    with server.connect() as db:
        assert calls(db)[:2] == [1, 1]
        assert_both_work(db)
        # The other library has requested memory of its own.
        assert db.execute("SELECT count(*) FROM pg_shmem_allocations WHERE name = 'flake'").fetchone() == (1,)
        assert db.execute("SELECT count(flake_next('twitter')) FROM generate_series(1, 100)").fetchone() == (100,)


def need(name):
    if not (pathlib.Path(pg_config("--pkglibdir")) / f"{name}.so").exists():
        pytest.skip(f"{name} is not installed for this PostgreSQL")


@pytest.mark.parametrize("order", ["{},flake", "flake,{}"])
def test_an_index_of_hypopg_serves_a_filter_by_time(own_servers, order):
    """An index that does not exist is planned for a filter by time."""
    need("hypopg")
    server = own_servers(f"shared_preload_libraries={order.format('hypopg')}")
    with server.connect() as db:
        db.execute(f"CREATE EXTENSION hypopg; {TABLE}; ALTER TABLE ids DROP CONSTRAINT ids_pkey; ANALYZE ids")
        db.execute("SET enable_seqscan = off")
        assert "Seq Scan" in str(db.execute(f"EXPLAIN {FILTER}").fetchall())
        db.execute("SELECT hypopg_create_index('CREATE INDEX ON ids (id)')")
        plan = str(db.execute(f"EXPLAIN {FILTER}").fetchall())
        assert "btree_ids_id" in plan and "Index Cond: (id >= '" in plan


@pytest.mark.parametrize("order", ["{},flake", "flake,{}"])
def test_a_hint_of_pg_hint_plan_is_followed(own_servers, order):
    """A hint applies to a filter by time."""
    need("pg_hint_plan")
    server = own_servers(f"shared_preload_libraries={order.format('pg_hint_plan')}")
    with server.connect() as db:
        db.execute(TABLE)
        for hint, scan in [("SeqScan(ids)", "Seq Scan on ids"), ("IndexScan(ids)", "Index Scan using ids_pkey")]:
            plan = str(db.execute(f"/*+ {hint} */ EXPLAIN {FILTER}").fetchall())
            assert scan in plan and "(id >= '" in plan and "flake_timestamp" not in plan
