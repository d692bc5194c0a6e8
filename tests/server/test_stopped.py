"""A session that was stopped while it changed the ledger: others wait for it, and their waits can be canceled."""

import datetime
import threading
import time

import psycopg
import pytest

# Holds the ledger's lock, with the seqlock odd, as a writer that was stopped between its two increments.
STOP = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(stop_writer);
Datum stop_writer(PG_FUNCTION_ARGS)
{
    bool found;
    char *control = ShmemInitStruct("flake", 4096, &found);
    LWLock *lock = (LWLock *) (control + 32);   /* behind the header */
    int64 until = PG_GETARG_INT64(0), *version = NULL;
    if (!found)
        elog(ERROR, "no control block");
    /* The seqlock: version, from, until, skip, era. */
    for (int64 *word = (int64 *) control; word < (int64 *) (control + 4096) - 4; word++)
        if (word[2] == until && word[0] > 0 && word[0] < 1000000 && word[0] % 2 == 0 && word[3] == PG_INT64_MAX)
            version = word;
    if (version == NULL)
        elog(ERROR, "no seqlock");
    LWLockAcquire(lock, LW_EXCLUSIVE);
    (*version)++;
    pg_usleep(PG_GETARG_INT32(1) * 1000000L);
    (*version)++;
    LWLockRelease(lock);
    PG_RETURN_VOID();
}
"""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def stopped(servers):
    """A server, and a function that has a writer stopped for some seconds."""
    server = servers()
    library = server.compile("stop", STOP)
    server.sql(f"CREATE FUNCTION stop_writer(bigint, integer) RETURNS void STRICT LANGUAGE c AS '{library}'")

    def stop(seconds):
        mark = server.value("SELECT mark FROM flake_stats")
        until = (mark - EPOCH) // datetime.timedelta(microseconds=1) - 2_000_000
        thread = threading.Thread(target=server.sql, args=("SELECT stop_writer(%s, %s)", until, seconds))
        thread.start()
        time.sleep(0.3)
        assert thread.is_alive()
        return thread

    return server, stop


@pytest.mark.parametrize("call", ["flake_next('twitter')", "sno_next()"])
def test_a_stopped_writer(stopped, call):
    server, stop = stopped
    with server.connect() as db, server.connect() as other:
        for session in [db, other]:
            session.execute(f"SELECT {call}")
        # All sessions have to ask for time, and all that was granted is over.
        time.sleep(4)
        thread = stop(6)
        for _ in range(2):
            began = time.monotonic()
            db.execute("SET statement_timeout = '300ms'")
            with pytest.raises(psycopg.errors.QueryCanceled):
                db.execute(f"SELECT {call}")
            assert time.monotonic() - began < 1.3
        # A session that is waiting can be terminated; it ends when it can leave its progress.
        waiting = threading.Thread(target=lambda: pytest.raises(psycopg.OperationalError, other.execute, f"SELECT {call}"))
        waiting.start()
        time.sleep(0.3)
        server.sql("SELECT pg_terminate_backend(%s)", other.info.backend_pid)
        thread.join()
        waiting.join(1)
        assert not waiting.is_alive()
        # Once the writer runs again, so do the others.
        db.execute("SET statement_timeout = 0")
        made = db.execute(f"SELECT count(DISTINCT id) FROM (SELECT {call} FROM generate_series(1, 1000)) s(id)").fetchone()
        assert made == (1000,)
