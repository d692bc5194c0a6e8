"""A session that is stopped while it changes the ledger: other sessions wait for it, and their waits can be canceled."""

import contextlib
import datetime
import time

import psycopg
import pytest

from waiting import Background, is_busy, wait_until

# Holds the ledger's lock with an odd version, as a writer does that was stopped between its two increments.
STOP = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include <fcntl.h>
#include <unistd.h>
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
    close(creat(text_to_cstring(PG_GETARG_TEXT_PP(1)), 0600));
    for (int n = 0; n < 6000 && access(text_to_cstring(PG_GETARG_TEXT_PP(1)), F_OK) == 0; n++)
        pg_usleep(10000L);
    (*version)++;
    LWLockRelease(lock);
    PG_RETURN_VOID();
}
"""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def stopped(servers):
    """A server, and a context in which a writer is stopped. It yields a function that ends that."""
    server = servers()
    library = server.compile("stop", STOP)
    server.sql(f"CREATE FUNCTION stop_writer(bigint, text) RETURNS void STRICT LANGUAGE c AS '{library}'")
    stops = server.dir / "stopped"

    @contextlib.contextmanager
    def stop():
        mark = server.value("SELECT mark FROM flake_stats")
        until = (mark - EPOCH) // datetime.timedelta(microseconds=1)
        with Background(lambda: server.sql("SELECT stop_writer(%s, %s)", until, str(stops))):
            wait_until(stops.exists)
            try:
                yield stops.unlink
            finally:
                stops.unlink(missing_ok=True)

    return server, stop


@pytest.mark.parametrize("call", ["flake_next('twitter')", "sno_next()"])
def test_waits_for_a_stopped_writer_can_be_canceled(stopped, call):
    server, stop = stopped
    with server.connect() as db, server.connect() as other:
        for session in [db, other]:
            session.execute(f"SELECT {call}")
        # All granted time has ended, so all sessions must ask for time.
        time.sleep(4)
        with stop() as go_on:
            for _ in range(2):
                db.execute("SET statement_timeout = '300ms'")
                with pytest.raises(psycopg.errors.QueryCanceled):
                    db.execute(f"SELECT {call}")
            # A waiting session can be terminated, and ends when it can store its progress.
            with Background(lambda: pytest.raises(psycopg.OperationalError, other.execute, f"SELECT {call}")):
                wait_until(lambda: is_busy(server, other))
                server.sql("SELECT pg_terminate_backend(%s)", other.info.backend_pid)
                go_on()
        # When the writer runs again, so do the others.
        db.execute("SET statement_timeout = 0")
        made = db.execute(f"SELECT count(DISTINCT id) FROM (SELECT {call} FROM generate_series(1, 1000)) s(id)").fetchone()
        assert made == (1000,)
