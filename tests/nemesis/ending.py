"""How a plan ends: every primary makes IDs again, every row is read, and no log shows a bug."""

import contextlib
import re
import time

import psycopg

from . import LONG
from .cluster import DATABASES
from .layouts import CALLS, TAILED
from .refusals import UNSEEN
from .turns import timelines, turn

ABOVE = 15  # seconds by which clocks are set above all used time
WRONG = re.compile(r"PANIC|panicked|Rust panic|TRAP|\bXX\d\d\d\b.*")
# A process that calls exit() may have a message left to send, although PostgreSQL has closed its socket.
UNSENT = re.compile(r"\[(\d+)\] XX000 LOG:  could not send data to client: Bad file descriptor")
KILLED = re.compile(r"\(PID (\d+)\) was terminated by signal \d+")


def end(cluster):
    cluster.settle()
    ahead = cluster.note_clocks() - time.time() + ABOVE
    for node in cluster.nodes.values():
        if node.up:
            cluster.set_clock(node, ahead)
    time.sleep(1)
    for node in cluster.primaries():
        for database in DATABASES:
            make_all_kinds(cluster, node, database)
        look_at_turn(cluster, node)
    for node in cluster.nodes.values():
        if node.up:
            read_rows(cluster, node)
        read_log(cluster, node)
    for consumer in cluster.consumers:
        if node := consumer.primary():
            consumer.read_to_the_end(node)


def look_at_turn(cluster, node):
    """Checks that the server has the turn by which the oracle judges it."""
    expected = f"This server has turn {turn(node.maker.branch)} of 0 to 3, on timeline {node.maker.branch.timeline}."
    if (found := node.server.value("SELECT detail FROM flake_check() WHERE name = 'turn'")) != expected:
        cluster.oracle.fail(f"{node.name}, whose timelines were {timelines(node.maker.branch)}: {found}")


def make_all_kinds(cluster, node, database):
    """Makes IDs of every kind. Only a busy machine may delay them."""
    for kind, call in CALLS.items():
        batch = cluster.oracle.begin(node, database, kind, "final")
        # After a failure there is no reason to wait long for another one.
        patience = 1 if cluster.oracle.failures else LONG
        deadline, wait = time.monotonic() + patience, f"SET statement_timeout = '{patience}s'"
        while True:
            try:
                with node.server.connect(dbname=database) as db:
                    db.execute(wait)
                    rows = db.execute(f"SELECT ({call})::text FROM generate_series(1, 5) n").fetchall()
                cluster.oracle.end(batch, node)
                cluster.oracle.returned(batch, node, cluster.layouts[kind], [text for text, in rows])
                break
            except psycopg.Error as error:
                if time.monotonic() > deadline:
                    cluster.oracle.fail(f"no IDs of {kind} in {database} of {node.name} at last: {error}")
                    return
                if UNSEEN in str(error):
                    see_the_number(node)
                time.sleep(0.5)


def see_the_number(node):
    """A server without flake in shared_preload_libraries does not know its number until a session begins in which no role and no
    database has set another."""
    with contextlib.suppress(psycopg.Error), node.server.connect() as db:
        db.execute("SELECT flake_next('twitter')")


def read_rows(cluster, node):
    oracle, layouts = cluster.oracle, cluster.layouts
    for database in DATABASES:
        with node.server.connect(dbname=database) as db:
            if node.is_primary:
                prepared = db.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()").fetchall()
                for name, in prepared:
                    db.execute(f"COMMIT PREPARED '{name}'")
            twice = "SELECT kind, id, token FROM kept GROUP BY 1, 2, 3 HAVING count(*) > 1"
            for row in db.execute(twice).fetchall():
                oracle.fail(f"rows twice in {database} of {node.name}: {row}")
            for kind, text, token in db.execute("SELECT kind, id, token FROM kept").fetchall():
                oracle.row(layouts[kind], text, token)
            for kind in TAILED:
                for text, token in db.execute(f"SELECT id::text, token FROM tailed_{kind}").fetchall():
                    oracle.row(layouts[kind], text, token)


def read_log(cluster, node):
    lines = node.log.splitlines()
    for at, line in enumerate(lines):
        ended = KILLED.search(line)
        unsent = UNSENT.search(line)
        if WRONG.search(line) and not (unsent and int(unsent[1]) in node.exited):
            cluster.oracle.fail(f"log of {node.name}: {line}")
        elif ended and int(ended[1]) not in node.killed:
            cluster.oracle.fail("\n    ".join([f"log of {node.name}:", *lines[max(0, at - 5) : at + 1]]))
