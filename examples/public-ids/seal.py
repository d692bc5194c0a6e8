"""Public IDs of flake without the database: reads lines `secret,id,uuid,text` as tests/vectors/seal.csv has them, and writes them
computed anew, the IDs that the UUIDs stand for where no ID is given."""

import sys
import uuid

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

ZEROS, DIGITS = 2**58 - 1, "0123456789abcdefghjkmnpqrstvwxyz"


def is_marked(block):
    return block[6] >> 4 == 8 and block[8] >> 6 == 2


def walk(step, block):
    while not is_marked(block := step(block)):
        pass
    return block


def seal(aes, number):
    number %= 2**64
    plain = number >> 16 << 80 | 8 << 76 | (number >> 4 & 0xFFF) << 64 | 2 << 62 | (number & 15) << 58
    return walk(aes.encryptor().update, plain.to_bytes(16, "big"))


def unseal(aes, block):
    if not is_marked(block):
        return None
    plain = int.from_bytes(walk(aes.decryptor().update, block), "big")
    number = plain >> 80 << 16 | (plain >> 64 & 0xFFF) << 4 | plain >> 58 & 15
    return None if plain & ZEROS else number - (number >> 63 << 64)


def text(block):
    return "".join(DIGITS[int.from_bytes(block, "big") >> 5 * n & 31] for n in reversed(range(26)))


for line in sys.stdin:
    secret, number, sealed, _ = line.rstrip("\n").split(",")
    aes = Cipher(algorithms.AES(bytes.fromhex(secret)), modes.ECB())
    block = seal(aes, int(number)) if number else uuid.UUID(sealed).bytes
    opened = unseal(aes, block)
    print(secret, "" if opened is None else opened, uuid.UUID(bytes=block), "" if opened is None else text(block), sep=",")
