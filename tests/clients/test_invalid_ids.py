"""A text that the database does not open is an error of its own class in each client."""

import subprocess

import pytest

import managed
from buffer_programs import LANGUAGES, Programs
from database import database, empty_database, server_of_clients

__all__ = ["database", "empty_database", "server_of_clients"]
SECRET = "8c0786468c9c8c768337cb250029f920"


def changed(sealed, other):
    """The public ID of a key, and what is not one: another key's, others with one character changed, cut, longer, in another
    spelling."""
    digits = sealed.removeprefix("usr_")
    yield from (sealed, other, digits, "", "usr_", "usr", f"{sealed}0", sealed[:-1], f" {sealed}", f"{sealed}\n", f"usr_{other}")
    yield from (sealed.replace(digit, digit.upper()) for digit in "xyz")
    yield from (f"USR_{digits}", f"us__{digits}", f"usr{digits}0", f"usr_{digits.upper()}")
    yield from (sealed.replace("_", "-"), f"usr_usr_{digits[4:]}")
    yield from (f"usr_{first}{digits[1:]}" for first in "0123456789abcdefghijklmnopqrstuvwxyzAZ-+ é٣７")
    yield from (f"{sealed[:place]}{letter}{sealed[place + 1:]}" for place in (5, 16, 29) for letter in "ilouILOU_.é")


IMPORT = "SELECT flake_import_key('usr', 'twitter', decode(%s, 'hex'))"
OPEN = "SELECT array(SELECT flake_unseal(t, 'usr') FROM unnest(%s::text[]) WITH ORDINALITY u(t, n) ORDER BY n)"


@pytest.fixture
def opened(database):
    """Texts with what the database makes of them. One public ID has each of the last letters."""
    database.sql(IMPORT, SECRET)
    database.sql("SELECT flake_create_key('ord', 'twitter')")
    pair = database.sql("""
        SELECT sealed, flake_seal(id, 'ord') FROM generate_series(1, 100000) id, flake_seal(id, 'usr') sealed
        WHERE sealed ~ 'x' AND sealed ~ 'y' AND sealed ~ 'z' LIMIT 1""")
    texts = list(changed(*pair[0]))
    ids = database.sql(OPEN, texts)[0][0]
    assert 1 <= len(ids) - ids.count(None) < len(ids)
    return dict(zip(texts, ids, strict=True))


def test_the_edition_in_plain_sql(opened, empty_database):
    managed.install(empty_database.server, empty_database.name)
    managed.create_pgcrypto(empty_database.server, empty_database.name)
    empty_database.sql(IMPORT, SECRET)
    assert dict(zip(opened, empty_database.sql(OPEN, list(opened))[0][0], strict=True)) == opened


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language not in ("asyncio", "rust")])
def test_each_text_that_is_no_public_id(tmp_path_factory, opened, language):
    lines = "".join(f"{SECRET},{text.encode().hex()}\n" for text in opened)
    command = [*Programs(tmp_path_factory)[language], "unseal"]
    found = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert dict(zip(opened, found, strict=True)) == {text: "InvalidID" if id is None else str(id) for text, id in opened.items()}
