"""Public IDs without the database, as flake_seal and flake_unseal make and open them. It needs `flake-ids[seal]`."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable
from typing import Any

from .errors import InvalidID

ZEROS, DIGITS = 2**58 - 1, "0123456789abcdefghjkmnpqrstvwxyz"


class Key:
    """A key of flake_create_key: its name, and the 16 bytes of its secret."""

    def __init__(self, name: str, secret: bytes) -> None:
        if len(secret) != 16:
            raise ValueError("a secret has 16 bytes")
        ciphers: Any = importlib.import_module("cryptography.hazmat.primitives.ciphers")
        cipher = ciphers.Cipher(ciphers.algorithms.AES(secret), ciphers.modes.ECB())
        self._prefix = f"{name}_"
        self._encrypt: Callable[[], Any] = cipher.encryptor
        self._decrypt: Callable[[], Any] = cipher.decryptor

    def seal_uuid(self, id: int) -> uuid.UUID:
        n = id % 2**64
        plain = n >> 16 << 80 | 8 << 76 | (n >> 4 & 0xFFF) << 64 | 2 << 62 | (n & 15) << 58
        return uuid.UUID(bytes=_walk(self._encrypt().update, plain.to_bytes(16, "big")))

    def unseal_uuid(self, sealed: uuid.UUID) -> int:
        """Raises InvalidID if the UUID was not made with this key."""
        if not _is_marked(sealed.bytes):
            raise InvalidID("no public ID")
        plain = int.from_bytes(_walk(self._decrypt().update, sealed.bytes), "big")
        if plain & ZEROS:
            raise InvalidID("no public ID of this key")
        n = plain >> 80 << 16 | (plain >> 64 & 0xFFF) << 4 | plain >> 58 & 15
        return n - (n >> 63 << 64)

    def seal(self, id: int) -> str:
        block = self.seal_uuid(id).int
        return self._prefix + "".join(DIGITS[block >> 5 * n & 31] for n in reversed(range(26)))

    def unseal(self, text: str) -> int:
        """Raises InvalidID if the text was not made with this key."""
        digits = text.removeprefix(self._prefix)
        if len(digits) != 26 or len(text) != len(self._prefix) + 26 or not set(digits) <= set(DIGITS) or digits[0] > "7":
            raise InvalidID("no public ID of this key")
        block = 0
        for digit in digits:
            block = block << 5 | DIGITS.index(digit)
        return self.unseal_uuid(uuid.UUID(int=block))


def _is_marked(block: bytes) -> bool:
    return block[6] >> 4 == 8 and block[8] >> 6 == 2


def _walk(step: Callable[[bytes], bytes], block: bytes) -> bytes:
    while True:
        block = step(block)
        if _is_marked(block):
            return block
