"""Cancels statements, each from a forked process. In psycopg's C build, a cancel holds the interpreter's lock until the server
answers, so a test that cancels in a thread would hang on a server that was stopped."""

import contextlib
import os
import signal
import time

import psycopg

LIMIT = 10  # seconds that a cancel may wait for an answer


class Cancels:
    def __init__(self):
        self.asking = {}  # process ID to the time of the request

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
        """Reaps the processes that were answered, and kills those that have waited for longer than `limit`."""
        for process, since in list(self.asking.items()):
            if time.monotonic() - since > limit:
                os.kill(process, signal.SIGKILL)
            if os.waitpid(process, os.WNOHANG if time.monotonic() - since <= limit else 0)[0]:
                del self.asking[process]
