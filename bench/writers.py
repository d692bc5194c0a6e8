"""Instructions of an INSERT that makes an ID, and of its commit, counted by valgrind in a running server: before anybody has
published a watermark, while another session publishes them, and afterwards.

    writers.py BINDIR DATA [DIRECTORY]   in the stopped cluster in DATA; keeps callgrind's files in the directory
"""

import contextlib
import pathlib
import shutil
import statistics
import sys
import tempfile
import threading

from first_id import connect, counted_in, server

COUNTED = ["PortalRun", "CommitTransactionCommand"]
INTERVAL = 0.05
FEW, MANY, TIMES = 100, 1100, 5
SETUP = ["CREATE EXTENSION IF NOT EXISTS flake", "DROP TABLE IF EXISTS written",
         "CREATE TABLE written (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), n integer)"]  # fmt: skip


def of_rows(data, folder, rows):
    with connect(data) as db:
        process = db.info.backend_pid
        db.execute("SET synchronous_commit = off")
        for _ in range(rows):
            db.execute("INSERT INTO written (n) VALUES (1)", prepare=False)
    return counted_in(folder, process)


def of_row(data, folder):
    """The median of some sessions that insert few rows and of some that insert many, as now and then a page is full."""
    return statistics.median((of_rows(data, folder, MANY) - of_rows(data, folder, FEW)) / (MANY - FEW) for _ in range(TIMES))


@contextlib.contextmanager
def published(data):
    ends = threading.Event()

    def publish():
        with connect(data) as db:
            while not ends.wait(INTERVAL):
                db.execute("SELECT flake_publish_watermark()")

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def inserts(bindir, data, folder=None):
    """None without valgrind. A server that is many times slower publishes more watermarks per row."""
    if not shutil.which("valgrind"):
        return None
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(folder or stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o777)
        stack.enter_context(server(bindir, data, folder, COUNTED))
        with connect(data) as db:
            for statement in SETUP:
                db.execute(statement)
        of_rows(data, folder, FEW)
        found = {"before": of_row(data, folder)}
        with published(data):
            found["while"] = of_row(data, folder)
        return found | {"after": of_row(data, folder)}


if __name__ == "__main__":
    print(inserts(*sys.argv[1:]))
