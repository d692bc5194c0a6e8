"""What the database returns NULL for, or refuses, is an error of its own class in each client."""

import subprocess

import pytest

from buffer_programs import LANGUAGES, Programs
from database import database, server_of_clients

__all__ = ["database", "server_of_clients"]
SECRET = "8c0786468c9c8c768337cb250029f920"


def changed(sealed, other):
    """The public ID of a key, and what is not one: another key's, others with one character changed, cut, longer, in another
    spelling."""
    digits = sealed.removeprefix("usr_")
    yield from (sealed, other, digits, "", "usr_", "usr", f"{sealed}0", sealed[:-1], f" {sealed}", f"{sealed}\n", f"usr_{other}")
    yield from (f"USR_{digits}", f"us__{digits}", f"usr{digits}0", f"usr_{digits.upper()}", sealed.replace("_", "-"), f"usr_usr_{digits[4:]}")
    yield from (f"usr_{first}{digits[1:]}" for first in "0123456789abcdefghijklmnopqrstuvwxyzAZ-+ é٣７")
    yield from (f"{sealed[:place]}{letter}{sealed[place + 1:]}" for place in (5, 16, 29) for letter in "ilouILOU_.é")


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language not in ("asyncio", "rust")])
def test_each_text_that_is_no_public_id(tmp_path_factory, database, language):
    database.sql("SELECT flake_import_key('usr', decode(%s, 'hex'), 'twitter'), flake_create_key('ord', 'twitter')", SECRET)
    (pair,) = database.sql("SELECT flake_seal(1234567890123456789, 'usr'), flake_seal(1234567890123456789, 'ord')")
    texts = list(changed(*pair))
    expected = [id for id, in database.sql("SELECT flake_unseal(t, 'usr') FROM unnest(%s::text[]) WITH ORDINALITY u(t, n) ORDER BY n", texts)]
    assert 1 <= len(expected) - expected.count(None) < len(expected)
    lines = "".join(f"{SECRET},{text.encode().hex()}\n" for text in texts)
    command = [*Programs(tmp_path_factory)[language], "unseal"]
    found = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert dict(zip(texts, found, strict=True)) == {
        text: "InvalidID" if id is None else str(id) for text, id in zip(texts, expected, strict=True)}
