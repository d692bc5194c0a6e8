"""A session that is stopped or slow while it changes the ledger: other sessions wait for it, and their waits can be canceled."""

import contextlib
import pathlib
import re
import time

import psycopg
import pytest

from clients import Made
from standing_clock import at, make, server_at_0, sessions
from test_durability import preload
from waiting import Background, is_busy, wait_until

# Holds the ledger's lock, as a session does that was stopped while it changes the ledger.
STOP = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/condition_variable.h"
#include "storage/dsm.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include <fcntl.h>
#include <unistd.h>
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(stop_writer);
Datum stop_writer(PG_FUNCTION_ARGS)
{
    bool found;
    dsm_handle *handle = ShmemInitStruct("flake", sizeof(*handle), &found);
    char *control = dsm_segment_address(dsm_attach(*handle));
    uint32 *lock = (uint32 *) (control + 16);   /* behind the header: the lock's state, its wait event, its condition variable */
    while (!__sync_bool_compare_and_swap(lock, 0, 1));
    close(creat(text_to_cstring(PG_GETARG_TEXT_PP(0)), 0600));
    for (int n = 0; n < 6000 && access(text_to_cstring(PG_GETARG_TEXT_PP(0)), F_OK) == 0; n++)
        pg_usleep(10000L);
    if (__atomic_exchange_n(lock, 0, __ATOMIC_SEQ_CST) == 2)
        ConditionVariableBroadcast((ConditionVariable *) (lock + 2));
    PG_RETURN_VOID();
}
"""


@pytest.fixture
def stopped(servers):
    """A server, and a context in which a writer is stopped. It yields a function that ends that."""
    server = servers()
    library = server.compile("stop", STOP)
    server.sql(f"CREATE FUNCTION stop_writer(text) RETURNS void STRICT LANGUAGE c AS '{library}'")
    stops = server.dir / "stopped"

    @contextlib.contextmanager
    def stop():
        with Background(lambda: server.sql("SELECT stop_writer(%s)", str(stops))):
            wait_until(stops.exists)
            try:
                yield stops.unlink
            finally:
                stops.unlink(missing_ok=True)

    return server, stop


@pytest.mark.matrix
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
            # A waiting session can be terminated, and ends although the writer is stopped.
            with Background(lambda: pytest.raises(psycopg.OperationalError, other.execute, f"SELECT {call}")):
                wait_until(lambda: is_busy(server, other))
                server.sql("SELECT pg_terminate_backend(%s)", other.info.backend_pid)
            go_on()
        # When the writer runs again, so do the others.
        db.execute("SET statement_timeout = 0")
        made = db.execute(f"SELECT count(DISTINCT id) FROM (SELECT {call} FROM generate_series(1, 1000)) s(id)").fetchone()
        assert made == (1000,)


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = %s AND pid = ANY (%s)"


def sleeps_of(db):
    """How often a session's process has gone to sleep."""
    status = pathlib.Path(f"/proc/{db.info.backend_pid}/status").read_text()
    return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", status)[1])


@pytest.mark.matrix
def test_waits_for_a_slow_writer_have_a_name_and_end_with_it(own_servers):
    """A session writes the file, and its disk is slow. The others sleep until then. One is canceled, and one is terminated,
    which must not keep the rest asleep."""
    server, made = server_at_0(own_servers), Made()
    preload(server)
    name = "FlakeMark" if server.value("SHOW server_version_num") >= "170000" else "Extension"
    with sessions(server) as dbs, server.connect() as looking:
        writer, canceled, ended, *others = dbs
        for db in dbs:
            make(db, made)
        server.set_clock(at(10))
        server.write("slow")

        def fails(db, error):
            pytest.raises(error, db.execute, "SELECT flake_next('twitter')")

        def until_all_wait(pids):
            wait_until(lambda: looking.execute(WAITS, (name, pids)).fetchone() == (len(pids),))

        failing = [(canceled, psycopg.errors.QueryCanceled), (ended, psycopg.OperationalError)]
        with Background(lambda: make(writer, made)) as background:
            wait_until((server.dir / "data" / "flushing").exists)
            for run, *arguments in [*((fails, *one) for one in failing), *((make, db, made) for db in others)]:
                background.add(run, *arguments)
                background.threads[-1].start()
            until_all_wait([db.info.backend_pid for db in dbs if db is not writer])
            before = [sleeps_of(db) for db in others]
            time.sleep(0.5)
            assert [sleeps_of(db) for db in others] == before
            looking.execute("SELECT pg_cancel_backend(%s)", (canceled.info.backend_pid,))
            looking.execute("SELECT pg_terminate_backend(%s)", (ended.info.backend_pid,))
            until_all_wait([db.info.backend_pid for db in others])
            (server.dir / "data" / "slow").unlink()
