"""Waits for a state, however long the machine takes, and acts while another session is in that state."""

import contextlib
import os
import pathlib
import re
import threading
import time

# How many seconds to wait for a state.
LONG = 60
# A session that waits for a lock.
LOCKED = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"


def wait_until(condition, limit=LONG):
    deadline, pause = time.monotonic() + limit, 0.001
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


class Background:
    """Threads that run until the end of a `with`, which raises the exception of any of them."""

    def __init__(self, *runs):
        self.ends, self.failures, self.threads = threading.Event(), [], []
        for run in runs:
            self.add(run)

    def add(self, run, *arguments):
        def watched():
            try:
                run(*arguments)
            except BaseException as failure:  # noqa: BLE001 - raised at the end of the `with`
                self.failures.append(failure)

        self.threads.append(threading.Thread(target=watched))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


class Waiting(threading.Thread):
    """A session that acts in a thread, and waits for a lock once this object exists. `end` returns what the act returns, or
    raises its error."""

    def __init__(self, server, db, act):
        super().__init__()
        self.db, self.act, self.result, self.error = db, act, None, None
        self.start()
        wait_until(lambda: not self.is_alive() or server.sql(LOCKED, db.info.backend_pid))

    def run(self):
        try:
            self.result = self.act(self.db)
        except BaseException as error:  # noqa: BLE001 - raised at the end; what pytest.raises misses is no Exception
            self.error = error

    def end(self):
        self.join()
        if self.error:
            raise self.error
        return self.result


def is_busy(server, db, wait_event_type="%"):
    """Returns whether a session is executing a statement, and waiting for an event of the given type."""
    look = """SELECT FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND COALESCE(wait_event_type, '') LIKE %s"""
    return bool(server.sql(look, db.info.backend_pid, wait_event_type))


def process_of(db):
    """The fields that the system shows of a session's process, from its state on."""
    return pathlib.Path(f"/proc/{db.info.backend_pid}/stat").read_text().rsplit(")", 1)[1].split()


def processor_seconds(db):
    """The processor time of a session so far, which does not depend on other load."""
    fields = process_of(db)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sleeps(db):
    """Returns whether a session's process is waiting for something other than a processor."""
    return process_of(db)[0] == "S"


def waits_in_ticks(server, db):
    """Returns whether a session waits in many short ticks: it sleeps more often than it would to send rows."""
    status = pathlib.Path(f"/proc/{db.info.backend_pid}/status")

    def naps():
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)[1])

    before = naps()
    wait_until(lambda: naps() > before + 1000)
    return True


@contextlib.contextmanager
def cancelled_once(condition, server, db):
    """Cancels the statement that the `with` executes, as soon as the condition holds for its session."""

    def cancel():
        try:
            wait_until(lambda: condition(server, db))
        finally:
            db.cancel()

    with Background(cancel):
        yield
