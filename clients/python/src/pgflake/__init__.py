"""IDs of flake that an application makes itself, on a worker that the database leases to it. Public IDs without the database."""

from .aio import AsyncIds
from .errors import Closed, FlakeError, InvalidID, NoLease, Refused
from .ids import Ids
from .seal import Key

__all__ = ["AsyncIds", "Closed", "FlakeError", "Ids", "InvalidID", "Key", "NoLease", "Refused"]
