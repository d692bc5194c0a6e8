"""What can be wrong."""

from __future__ import annotations

PERMANENT = {"42501", "42883", "0A000", "22023", "3D000", "28000", "28P01"}


class FlakeError(Exception):
    """Any error of this package. `__cause__` is the error that the driver has raised, if there is one."""


class NoLease(FlakeError):
    """There was no lease in time, and it is worth trying again. `reason` is the server's, if it has answered."""

    def __init__(self, message: str, reason: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason


class Refused(FlakeError):
    """Somebody has to mend something: a privilege, the name of a layout, a layout that cannot lease."""


class Closed(FlakeError):
    """close() was called."""


class InvalidID(FlakeError, ValueError):
    """A text is no public ID of this key."""


def sqlstate(problem: BaseException) -> str | None:
    """SQLSTATE, as psycopg, psycopg2 and asyncpg have it."""
    return getattr(problem, "sqlstate", None) or getattr(problem, "pgcode", None)
