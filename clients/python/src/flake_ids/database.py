"""Where IDs come from: a connection of its own, or one of a pool for the time of a request. A request has two seconds. One that
takes longer loses its connection, because what comes later would be an answer to another question."""

from __future__ import annotations

import contextlib
import importlib
import os
import selectors
import struct
from typing import Any

from .buffer import now
from .errors import FlakeError

LIMIT = 2
BATCH = b"SELECT flake_batch($1, $2)"
# What opens a connection: a connection string, a function that returns a connection of psycopg, or a pool of psycopg_pool.
Connect = Any


class Database:
    def __init__(self, connect: Connect) -> None:
        self.connect, self.connection = connect, None
        self.pool = connect if hasattr(connect, "getconn") else None

    @property
    def is_used(self) -> bool:
        """Whether the next request is on a connection that was there before. The server may have ended it meanwhile."""
        return self.connection is not None or self.pool is not None

    def batch(self, layout: str, count: int) -> list[int]:
        """Raises the driver's error, or TimeoutError."""
        connection: Any = self.connection
        try:
            if connection is None:
                connection = self.pool.getconn(LIMIT) if self.pool else _opened(self.connect)
            ids = _asked(connection, layout, count)
        except BaseException:
            self.connection = connection
            self.close()
            raise
        if self.pool:
            self.pool.putconn(connection)
        else:
            self.connection = connection
        return ids

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()
            if self.pool:
                self.pool.putconn(connection)


def _opened(connect: Connect) -> Any:
    if not isinstance(connect, str):
        return connect()
    psycopg: Any = importlib.import_module("psycopg")
    defaults = {"connect_timeout": LIMIT, "fallback_application_name": f"flake-ids {os.getpid()}"}
    return psycopg.connect(**(defaults | psycopg.conninfo.conninfo_to_dict(connect)), autocommit=True)


def _asked(connection: Any, layout: str, count: int) -> list[int]:
    """One statement, by functions of libpq that do not wait: psycopg's own waits have no limit. It is sent outside of any
    transaction, and prepares nothing that a pool in transaction mode would lose."""
    errors: Any = importlib.import_module("psycopg.errors")
    libpq, deadline, results = connection.pgconn, now() + LIMIT, []
    libpq.send_query_params(BATCH, [layout.encode(connection.info.encoding), b"%d" % count], result_format=1)
    with selectors.DefaultSelector() as selector:
        key = selector.register(libpq.socket, selectors.EVENT_READ)

        def wait(event: int) -> None:
            selector.modify(key.fileobj, event)
            if not selector.select(max(0, deadline - now())) and now() >= deadline:
                raise TimeoutError(f"the database has not answered for {LIMIT} s")

        while libpq.flush():
            wait(selectors.EVENT_READ | selectors.EVENT_WRITE)
            libpq.consume_input()
        while True:
            while libpq.is_busy():
                wait(selectors.EVENT_READ)
                libpq.consume_input()
            if (result := libpq.get_result()) is None:
                break
            results.append(result)
    for result in results:
        if result.error_message:
            raise errors.error_from_result(result, connection.info.encoding)
    ids = b"".join(result.get_value(row, 0) for result in results for row in range(result.ntuples))
    if len(ids) != 8 * count:
        raise FlakeError(f"flake_batch({layout!r}, {count}) has returned {len(ids) // 8} IDs")
    return list(struct.unpack(f"!{count}q", ids))
