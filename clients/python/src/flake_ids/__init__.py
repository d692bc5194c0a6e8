"""IDs of flake for a program that needs them before it inserts the rows, from a buffer. Public IDs without the database."""

from .aio import AsyncIds
from .errors import Closed, FlakeError, InvalidID, Refused, Unavailable
from .ids import Ids
from .seal import Key

__all__ = ["AsyncIds", "Closed", "FlakeError", "Ids", "InvalidID", "Key", "Refused", "Unavailable"]
