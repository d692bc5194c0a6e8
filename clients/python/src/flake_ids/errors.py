"""What can be wrong."""

from __future__ import annotations

import re

PERMANENT = {"42501", "42883", "22023", "2200H", "3D000", "28000", "28P01"}
# libpq does not tell the SQLSTATE of a login that the server has refused. A server that speaks another language than English is
# asked until the patience ends.
NO_LOGIN = re.compile(r"FATAL: .*(authentication failed|pg_hba\.conf|(role|database) .* does not exist)")


class FlakeError(Exception):
    """Any error of this package. `__cause__` is the error that the driver has raised, if there is one."""


class Unavailable(FlakeError):
    """There was no ID in time, and it is worth trying again."""


class Refused(FlakeError):
    """Somebody has to mend something: a privilege, the name of a layout, the extension, the login."""


class Closed(FlakeError):
    """close() was called."""


class InvalidID(FlakeError, ValueError):
    """A text is no public ID of this key."""


def is_permanent(problem: BaseException) -> bool:
    state: str | None = getattr(problem, "sqlstate", None)
    return state in PERMANENT if state else NO_LOGIN.search(str(problem)) is not None
