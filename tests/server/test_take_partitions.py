"""flake_take: a partition is attached while a call runs, and the session gets the message after its snapshot sees the commit."""

import concurrent.futures

import pytest

from taking import events, prepared, wait_until_complete
from waiting import LOCKED, Waiting, wait_until

TAKE = "SELECT * FROM flake_take(NULL::log, 'positions', 'mailer', {})"

# Delays the message of a commit that others see, until a file exists. The library that is loaded first is called last.
PAUSE = """
#include "postgres.h"
#include <unistd.h>
#include "access/xact.h"
#include "fmgr.h"
PG_MODULE_MAGIC;
static void pause_at(XactEvent event, void *file)
{
    if (event == XACT_EVENT_COMMIT)
        for (int n = 0; n < 6000 && access(file, F_OK) != 0; n++)
            usleep(10000);
}
void _PG_init(void);
void _PG_init(void) { RegisterXactCallback(pause_at, "FILE"); }
"""

# Keeps an older list of a table's partitions until a file exists, although the messages were processed. PostgreSQL does that if
# messages arrive while it builds the list.
STALE = """
#include "postgres.h"
#include <unistd.h>
#include "access/table.h"
#include "fmgr.h"
#include "partitioning/partdesc.h"
#include "utils/inval.h"
#include "utils/rel.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(stale);
Datum stale(PG_FUNCTION_ARGS)
{
    Relation table = table_open(PG_GETARG_OID(0), AccessShareLock);
    PartitionDesc list = RelationGetPartitionDesc(table, true);
    MemoryContext memory = table->rd_pdcxt;
    table->rd_partdesc = NULL;
    table->rd_pdcxt = NULL;
    for (int n = 0; n < 6000 && access("FILE", F_OK) != 0; n++)
        usleep(10000);
    AcceptInvalidationMessages();
    table->rd_partdesc = list;
    table->rd_pdcxt = memory;
    table_close(table, AccessShareLock);
    PG_RETURN_VOID();
}
"""


@pytest.fixture
def db(server):
    for db in prepared(server):
        server.sql("""CREATE TABLE log (id bigint DEFAULT flake_next('twitter'), event int, PRIMARY KEY (id, event))
                          PARTITION BY LIST (event);
                      CREATE TABLE log1 PARTITION OF log FOR VALUES IN (1);
                      CREATE TABLE log2 (LIKE log INCLUDING ALL);
                      INSERT INTO log (event) SELECT 1 FROM generate_series(1, 9);
                      INSERT INTO positions VALUES ('mailer', 'log')""")
        wait_until_complete(server, "log")
        yield db


PARTITION = "ALTER TABLE log ATTACH PARTITION log2 FOR VALUES IN (2)"


def attach(writer, server, first="SELECT", come=PARTITION):
    """Attaches a partition with a row, in one transaction. The row's ID is below an ID of an earlier partition."""
    writer.execute(f"BEGIN; {first}; {come}; INSERT INTO log2 (event) VALUES (2)")
    server.sql("INSERT INTO log (event) VALUES (1)")


@pytest.mark.matrix
@pytest.mark.parametrize(("come", "is_partitioned"), ids=["partition", "partition of a partition", "first child"], argvalues=[
    (PARTITION, True), (PARTITION.replace("log ", "log3 "), True), ("ALTER TABLE log2 INHERIT log", False),
])  # fmt: skip
def test_rows_of_a_partition_whose_message_is_late_are_taken(server, db, come, is_partitioned):
    if is_partitioned and come != PARTITION:
        server.sql("CREATE TABLE log3 PARTITION OF log FOR VALUES IN (2) PARTITION BY LIST (event)")
    if not is_partitioned:
        server.sql("""CREATE TABLE one (LIKE log INCLUDING ALL); INSERT INTO one SELECT * FROM log;
                      DROP TABLE log; ALTER TABLE one RENAME TO log;
                      INSERT INTO positions VALUES ('mailer', 'log')""")
    file = server.base / f"go-{db.info.backend_pid}"
    library = server.compile("pause", PAUSE.replace("FILE", str(file)))
    assert [events(db, TAKE.format(1)) for _ in range(8)] == [[1]] * 8
    with server.session() as writer, concurrent.futures.ThreadPoolExecutor() as pool:
        attach(writer, server, f"LOAD '{library}'", come)
        committing = pool.submit(writer.execute, "COMMIT")
        try:
            wait_until(lambda: server.sql("SELECT FROM pg_inherits WHERE inhrelid = 'log2'::regclass"))
            wait_until_complete(server, "ONLY log" if not is_partitioned else "log1")
            waiting = Waiting(server, db, lambda db: events(db, TAKE.format(100)))
            assert not committing.done()
        finally:
            file.touch()
        committing.result()
        assert waiting.end() == [1, 2, 1]


def test_a_plan_older_than_the_snapshot_is_made_again(server, db):
    """A constraint is evaluated when the call plans its query, and waits."""
    server.sql("""CREATE FUNCTION pause() RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
                      IF current_setting('test.pause', true) = 'on' THEN
                          PERFORM pg_advisory_lock(1), pg_advisory_unlock(1);
                      END IF;
                      RETURN true; END $$;
                  ALTER TABLE log1 ADD CHECK (pause())""")
    with server.session() as turn, server.session() as planning, server.session() as writer:
        db.execute("SET test.pause = on")
        turn.execute("BEGIN; SELECT FROM positions WHERE source = 'log'::regclass FOR UPDATE")
        waiting = Waiting(server, db, lambda db: events(db, TAKE.format(100)))
        planning.execute("SELECT pg_advisory_lock(1)")
        turn.execute("COMMIT")
        wait_until(lambda: server.sql(LOCKED + " AND wait_event = 'advisory'", db.info.backend_pid))
        attach(writer, server)
        writer.execute("COMMIT")
        wait_until_complete(server, "log")
        planning.execute("SELECT pg_advisory_unlock(1)")
        assert waiting.end() == [1] * 9 + [2, 1]


def test_a_list_of_partitions_that_stays_stale_is_read_again(server, db):
    file = server.base / f"go-{db.info.backend_pid}"
    library = server.compile("stale", STALE.replace("FILE", str(file)))
    server.sql(f"CREATE FUNCTION stale(regclass) RETURNS void LANGUAGE c AS '{library}'")
    assert events(db, TAKE.format(9)) == [1] * 9
    with server.session() as writer, concurrent.futures.ThreadPoolExecutor() as pool:
        making = pool.submit(db.execute, "SELECT stale('log')")
        try:
            locks = "SELECT FROM pg_locks WHERE relation = 'log'::regclass AND pid = %s"
            wait_until(lambda: server.sql(locks, db.info.backend_pid))
            attach(writer, server)
            writer.execute("COMMIT")
            wait_until_complete(server, "log")
            assert not making.done()
        finally:
            file.touch()
        making.result()
    assert db.execute("SELECT count(*) FROM log").fetchone() == (10,), "PostgreSQL itself misses it"
    assert events(db, TAKE.format(100)) == [2, 1]
    assert db.execute("SELECT count(*) FROM log").fetchone() == (11,)


def test_children_of_many_parents_are_looked_for_once(server, db):
    """Each child is looked for once, although there are 2^40 paths to the last ones."""
    server.sql("CREATE TABLE tree (LIKE log INCLUDING ALL); INSERT INTO positions VALUES ('mailer', 'tree')")
    above = ["tree"]
    for level in range(40):
        here = [f"left{level}", f"right{level}"]
        for name in here:
            server.sql(f"CREATE TABLE {name} (PRIMARY KEY (id)) INHERITS ({', '.join(above)})")
        above = here
    server.sql("INSERT INTO right39 (event) VALUES (1)")
    wait_until_complete(server, "tree")
    db.execute("SET statement_timeout = '20s'")
    assert events(db, TAKE.format(100).replace("log", "tree")) == [1]
