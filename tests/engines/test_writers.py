"""Clients of the tests of engines, by themselves."""

import pathlib

import writers
from waiting import wait_until


def descriptors():
    return len(list(pathlib.Path("/proc/self/fd").iterdir()))


def test_refused_clients_keep_no_connection(server):
    """This holds after any number of refusals: a process that waits by select() may have 1,024 descriptors."""
    server.sql("CREATE ROLE app NOLOGIN")
    before = descriptors()
    with writers.Writers([server], [server]) as clients:
        wait_until(lambda: len(clients.errors) >= 100)
        assert descriptors() < before + 20
