"""The files and WAL that are on disk before an ID is returned."""

import concurrent.futures
import re

import psycopg
import pytest

from clients import Made
from standing_clock import SESSIONS, at, attempts, make, make_in_all, running, server_at_0, sessions, wait_until
from watermark import announce, below

# A library that records which files are flushed.
FLUSHES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int fdatasync(int file)
{
    int (*flush)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"), log = open("LOG", O_WRONLY | O_APPEND);
    char link[64], name[4096];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    length = readlink(link, name, sizeof name - 1);
    if (length > 0)
    {
        name[length] = '\\n';
        if (write(log, name, length + 1) < 0) {}
    }
    close(log);
    return flush(file);
}
"""


def preload(server, name, source):
    """Preloads a library that replaces functions, in a server that flushes."""
    library = server.compile(name, source)
    preloaded = server.environment["SERVER_ENV"]
    server.environment["SERVER_ENV"] = preloaded.replace("LD_PRELOAD=", f"LD_PRELOAD={library}:")
    server.restart("fsync=on")


def test_each_record_that_grants_time_is_flushed(own_servers):
    server, made = server_at_0(own_servers), Made()
    log = server.base / "flushes"
    log.touch()
    log.chmod(0o666)
    preload(server, "flushes", FLUSHES.replace("LOG", str(log)))

    def flushes():
        return sum(line.endswith("/flake.mark") for line in log.read_text().splitlines())

    with server.connect() as db:
        server.set_clock(at(10))
        make(db, made)
        for seconds in [20, 30, 40]:
            before = flushes()
            server.set_clock(at(seconds))
            make(db, made)
            assert flushes() == before + 1


# A library that records the flushes and the renames of files of the data directory.
REPLACED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void note(const char *what, const char *name)
{
    int log = open("LOG", O_WRONLY | O_APPEND);
    char line[4200];
    int length = snprintf(line, sizeof line, "%s %s\\n", what, name);
    if (strstr(name, "flake.mark") || strlen(name) >= 5 && !strcmp(name + strlen(name) - 5, "/data"))
        if (write(log, line, length) < 0) {}
    close(log);
}
int fsync(int file)
{
    int (*flush)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fsync");
    char link[64], name[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (readlink(link, name, sizeof name - 1) > 0)
        note("flush", name);
    return flush(file);
}
int rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = (int (*)(const char *, const char *)) dlsym(RTLD_NEXT, "rename");
    note("rename", to);
    return next(from, to);
}
"""


def test_a_new_file_is_flushed_before_its_name_and_its_directory_after(own_servers):
    """The simulator's new file is on disk at once. A crash between would leave an empty file, or an older one."""
    server = server_at_0(own_servers)
    log = server.base / "replaced"
    log.touch()
    log.chmod(0o666)
    server.stop()
    (server.dir / "data" / "flake.mark").unlink()
    library = server.compile("replaced", REPLACED.replace("LOG", str(log)))
    preloaded = server.environment["SERVER_ENV"]
    server.environment["SERVER_ENV"] = preloaded.replace("LD_PRELOAD=", f"LD_PRELOAD={library}:")
    server.launch("fsync=on")
    log.write_text("")
    # Without the file, no ID is made until the time that it may have granted is over.
    server.set_clock(running(3600))
    server.sql("SELECT flake_next('twitter')")
    steps = [(step.split()[0], re.split("[ /]", step)[-1]) for step in log.read_text().splitlines()]
    assert steps == [("flush", "flake.mark.new"), ("rename", "flake.mark"), ("flush", "data")], steps


# A library that makes the flush of a mark fail while a file exists.
FAILS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int fdatasync(int file)
{
    int (*flush)(int) = (int (*)(int)) dlsym(RTLD_NEXT, "fdatasync");
    char link[64], name[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (access("broken", F_OK) != 0 || readlink(link, name, sizeof name - 1) < 0 || !strstr(name, "/flake.mark"))
        return flush(file);
    errno = EIO;
    return -1;
}
"""


def test_an_acceptance_that_could_not_be_flushed_takes_no_watermark_back(own_servers):
    """The acceptance is in the file, and a crash follows. A watermark was asked for in between."""
    server, made = server_at_0(own_servers), Made()
    preload(server, "fails", FAILS)
    server.set_clock(at(3600))
    make_in_all(server, made)
    announce(server)
    server.set_clock(at(10))
    server.write("broken")
    with pytest.raises(psycopg.errors.IoError):
        server.sql("SELECT flake_accept_clock()")
    (server.dir / "data" / "broken").unlink()
    announced = announce(server)
    server.restart(mode="immediate")
    server.set_clock(at(20))
    made = Made()
    attempts(server, made)
    server.set_clock(at(3610))
    make_in_all(server, made)
    assert below(server, made, announced) == set()


# A library that keeps all processes from flushing WAL until a file exists.
HOLD = """
#include "postgres.h"
#include "fmgr.h"
#include "storage/lwlock.h"
#include <fcntl.h>
#include <unistd.h>
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(hold_wal);
Datum hold_wal(PG_FUNCTION_ARGS)
{
    LWLockAcquire(WALWriteLock, LW_EXCLUSIVE);
    close(open("held", O_CREAT | O_WRONLY, 0600));
    while (access("released", F_OK) != 0)
        pg_usleep(10000);
    LWLockRelease(WALWriteLock);
    PG_RETURN_VOID();
}
"""
WAITS = "SELECT pid FROM pg_stat_activity WHERE pid = %s AND wait_event = 'WALWrite'"


def test_the_mark_of_the_database_is_on_disk_before_an_id(own_servers):
    """Whichever session has written the mark, no session makes an ID before it is on disk."""
    server, made = server_at_0(own_servers), Made()
    server.sql(f"CREATE FUNCTION hold_wal() RETURNS void LANGUAGE c AS '{server.compile('hold', HOLD)}'")
    with sessions(server) as dbs, concurrent.futures.ThreadPoolExecutor(SESSIONS) as pool, server.connect() as looking:
        writer, reader, holder, *_ = dbs
        for db in [writer, reader]:
            make(db, made)
        server.set_clock(at(10))
        asked = [pool.submit(holder.execute, "SELECT hold_wal()")]
        wait_until((server.dir / "data" / "held").exists)
        try:
            for db in [writer, reader]:
                # The session uses one kind only: for another one, it would read the page and wait for its own record.
                asked.append(pool.submit(db.execute, "SELECT flake_next('twitter')"))
                wait_until(lambda: asked[-1].done() or looking.execute(WAITS, (db.info.backend_pid,)).fetchone())  # noqa: B023
            assert not any(ask.done() for ask in asked)
        finally:
            server.write("released")
        [ask.result() for ask in asked]
