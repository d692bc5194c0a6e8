"""Cancels of statements, each from a process of its own: psycopg's C build holds the interpreter's lock until the server has
answered, and one that stands still would never be woken."""

import contextlib
import os
import signal
import time

import psycopg

LIMIT = 10  # seconds that a cancel may wait for an answer


class Cancels:
    def __init__(self):
        self.asking = {}  # since when each process does

    def ask(self, db):
        with contextlib.suppress(psycopg.Error):
            request = db.pgconn.get_cancel()
            process = os.fork()
            if process == 0:
                try:
                    request.cancel()
                finally:
                    os._exit(0)
            self.asking[process] = time.monotonic()

    def end(self, limit=LIMIT):
        """Ends the processes that were answered, and those that have waited for so long."""
        for process, since in list(self.asking.items()):
            if time.monotonic() - since > limit:
                os.kill(process, signal.SIGKILL)
            if os.waitpid(process, os.WNOHANG if time.monotonic() - since <= limit else 0)[0]:
                del self.asking[process]
