"""The files and WAL that are on disk before an ID is returned."""

import concurrent.futures
import re

import psycopg
import pytest

from clients import Made
from standing_clock import SESSIONS, at, attempts, make, make_in_all, running, server_at_0, sessions, wait_until
from watermark import announce, below

# A library that records what happens to the file of the mark and to the data directory. A flush of the file's data fails while a
# file "broken" exists in the data directory, and lasts as long as a file "slow" does.
DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int is_noted(const char *what, const char *name)
{
    int log, is_mark = strstr(name, "flake.mark") != NULL;
    char line[4200];
    int length = snprintf(line, sizeof line, "%s %s\\n", what, name);
    if (is_mark || (strlen(name) >= 5 && !strcmp(name + strlen(name) - 5, "/data")))
    {
        log = open("LOG", O_WRONLY | O_APPEND);
        if (write(log, line, length) < 0) {}
        close(log);
    }
    return is_mark;
}
static int of_file(const char *what, int file)
{
    char link[64], name[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    return readlink(link, name, sizeof name - 1) > 0 && is_noted(what, name);
}
int fsync(int file)
{
    of_file("flush", file);
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fsync"))(file);
}
int fdatasync(int file)
{
    if (of_file("data", file))
    {
        if (access("broken", F_OK) == 0)
            return errno = EIO, -1;
        if (access("slow", F_OK) == 0)
            close(open("flushing", O_CREAT | O_WRONLY, 0600));
        while (access("slow", F_OK) == 0)
            usleep(10000);
    }
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"))(file);
}
int rename(const char *from, const char *to)
{
    is_noted("rename", to);
    return ((int (*)(const char *, const char *)) dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""


def preload(server, while_stopped=lambda: None):
    """Preloads the library in a server that flushes. Returns a function that tells what was recorded since it was called."""
    log = server.base / "disk"
    log.touch()
    log.chmod(0o666)
    library = server.compile("disk", DISK.replace("LOG", str(log)))
    preloaded = server.environment["SERVER_ENV"]
    server.environment["SERVER_ENV"] = preloaded.replace("LD_PRELOAD=", f"LD_PRELOAD={library}:")
    server.restart("fsync=on", while_stopped=while_stopped)

    def told():
        lines = log.read_text().splitlines()
        log.write_text("")
        return [(line.split()[0], re.split("[ /]", line)[-1]) for line in lines]

    told()
    return told


def test_each_record_that_grants_time_is_flushed(own_servers):
    server, made = server_at_0(own_servers), Made()
    told = preload(server)
    with server.connect() as db:
        for seconds in [10, 20, 30, 40]:
            told()
            server.set_clock(at(seconds))
            make(db, made)
            assert seconds == 10 or told() == [("data", "flake.mark")]


def test_a_new_file_is_flushed_before_its_name_and_its_directory_after(own_servers):
    """The simulator's new file is on disk at once. A crash between would leave an empty file, or an older one."""
    server = server_at_0(own_servers)
    told = preload(server, while_stopped=(server.dir / "data" / "flake.mark").unlink)
    # Without the file, no ID is made until the time that it may have granted is over.
    server.set_clock(running(3600))
    server.sql("SELECT flake_next('twitter')")
    assert told() == [("flush", "flake.mark.new"), ("rename", "flake.mark"), ("flush", "data"), ("data", "flake.mark")]


@pytest.mark.matrix
def test_an_acceptance_that_could_not_be_flushed_takes_no_watermark_back(own_servers):
    """The acceptance is in the file, and a crash follows. A watermark was asked for in between."""
    server, made = server_at_0(own_servers), Made()
    preload(server)
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
