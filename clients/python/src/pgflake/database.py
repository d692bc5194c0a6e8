"""The connection that leases are asked for on: one of its own, that nobody else has to give back. A request has two seconds. One
that takes longer loses the connection, because what comes later would be an answer to another question."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from .errors import Refused
from .window import Row

LIMIT = 2
COLUMNS = ", ".join(field.name for field in fields(Row))
NAMED = "SELECT pg_catalog.set_config('application_name', $1, false) WHERE pg_catalog.current_setting('application_name') = ''"
# What opens a connection: a connection string, or a function that returns a connection of psycopg, psycopg2 or asyncpg.
Connect = str | Callable[[], Any]


class Database:
    def __init__(self, connect: Connect, lease: str, release: str) -> None:
        self.connect, self.lease_function, self.release_function = connect, lease, release
        self.connection: _DBAPI | _Asyncpg | None = None

    def lease(self, layout: str, token: int | None) -> Row:
        query = f"SELECT protocol, {COLUMNS} FROM {self.lease_function}($1, $2::bigint)"
        row = self._rows(query, layout, token)[0]
        if row[0] != 1:
            raise Refused(f"the server speaks protocol {row[0]} of leases, and this client protocol 1")
        return Row(row[1], *(value or 0 for value in row[2:]))

    def release(self, layout: str, token: int, last_tick: int | None) -> bool:
        return bool(self._rows(f"SELECT {self.release_function}($1, $2::bigint, $3::bigint)", layout, token, last_tick)[0][0])

    def batch(self, layout: str, count: int) -> list[int]:
        return [row[0] for row in self._rows("SELECT flake_batch($1, $2::integer)", layout, count)]

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def _rows(self, query: str, *values: object) -> list[Any]:
        try:
            if self.connection is None:
                self.connection = _opened(self.connect)
                self.connection.rows(NAMED, f"pgflake {os.getpid()}")
            return self.connection.rows(query, *values)
        except BaseException:
            self.close()
            raise


def _opened(connect: Connect) -> _DBAPI | _Asyncpg:
    if isinstance(connect, str):
        driver = importlib.import_module("psycopg")
        return _DBAPI(driver.connect(connect, connect_timeout=LIMIT, prepare_threshold=None))
    made = connect()
    return _Asyncpg(made) if inspect.isawaitable(made) else _DBAPI(made)


class _DBAPI:
    """psycopg, psycopg2, and what else has a `fileno`."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        connection.autocommit = True

    def rows(self, query: str, *values: object) -> list[Any]:
        with _cut_after(self.connection, LIMIT):
            cursor = self.connection.cursor()
            cursor.execute(re.sub(r"\$\d", "%s", query), values)
            return list(cursor.fetchall())

    def close(self) -> None:
        self.connection.close()


@contextlib.contextmanager
def _cut_after(connection: Any, seconds: float) -> Iterator[None]:
    """Shuts the socket down after this time, which ends a wait for an answer."""
    lock, is_over = threading.Lock(), False

    def cut() -> None:
        with lock:
            if not is_over:
                with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as copy:
                    copy.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            is_over = True
        timer.cancel()


class _Asyncpg:
    """asyncpg, on an event loop of the thread that asks."""

    def __init__(self, made: Any) -> None:
        self.loop = asyncio.new_event_loop()
        try:
            self.connection = self._run(made)
        except BaseException:
            self.loop.close()
            raise

    def _run(self, made: Any) -> Any:
        async def within() -> Any:
            return await asyncio.wait_for(made, LIMIT)

        return self.loop.run_until_complete(within())

    def rows(self, query: str, *values: object) -> list[Any]:
        return list(self._run(self.connection.fetch(query, *values)))

    def close(self) -> None:
        self.connection.terminate()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()
