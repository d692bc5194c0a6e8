"""docs/faq.md has the text of each error."""

import re

import pytest

import error_texts

# Messages of PostgreSQL that users meet because of the extension.
OF_POSTGRESQL = [
    "cannot execute flake_next() during recovery",
    "function flake_next(unknown) does not exist",
    "function flake_next() does not exist",
    "could not determine polymorphic type because input has type unknown",
    'could not find function "…" in file "…"',
    'could not access file "flake": No such file or directory',
    'duplicate key value violates unique constraint "…"',
]
# Messages that need no entry, because their DETAIL and HINT say everything.
SELF_EXPLAINING = {
    "an argument, and DETAIL has its range or an example": [
        "count must not be negative", "relation with OID … does not exist", "number of rows must be positive",
        'argument "…" must not be null',
        "fields must be a JSON object", 'invalid value for field "…" of layout "…": …', 'layout "…" has no field "…"',
        'layout "…" has no tag field', 'tag … is out of range for layout "…"', '… … is out of range for layout "…"',
        "… … is out of range for a sno", 'timestamp … does not match the given time in layout "…"',
        "a sno must have 10 bytes, not …", "uuid does not contain a sno",
        'a layout must have the option "definition" and no other', "layouts and keys have no foreign tables",
        "function that returns a set of rows was called where no set is expected",
    ],
    "a key, and DETAIL and HINT say what to do": [
        'key "…" does not exist', 'permission denied for key "…"', 'invalid public ID of key "…": "…"',
        'invalid name for a key: "…"',
        "secret of a key must have 16 bytes, not …", "invalid options for a key",
    ],
    "the role that is needed": [
        "must be superuser to call …", "must be owner of extension flake or of the database to …", "must be owner of …",
        "permission denied for …",
    ],
    "a limit, and DETAIL says what to do": ["expression in the catalog is too long", "JSON is too long"],
}  # fmt: skip
SAY_ALL = [text for texts in SELF_EXPLAINING.values() for text in texts]


@pytest.mark.parametrize("message", error_texts.messages())
def test_each_error_has_an_entry(message):
    assert (error_texts.entry(message) is None) == (message in SAY_ALL)


def test_each_entry_is_of_an_error():
    """Each entry above the questions has the text of an error. A text that has changed would not be found any more."""
    patterns = [error_texts.pattern(message, "[A-Z]*") for message in [*error_texts.messages(), *OF_POSTGRESQL]]
    texts = [text for text in error_texts.entries() if not text.endswith("?")]
    assert [text for text in texts if not any(re.fullmatch(pattern, text) for pattern in patterns)] == []
    assert set(SAY_ALL) <= set(error_texts.messages())


def test_all_messages_are_read():
    """Each error that is made has a text, a DETAIL, and in src/error/core.rs the core's error."""
    sources = [file.read_text() for file in (error_texts.ROOT / "src").rglob("*.rs") if "core" not in file.parts]
    calls = sum(len(re.findall(r"\bError::(?:not_ready|invalid|of)\(", source)) for source in sources)
    made = list(error_texts.made())
    assert [str(file) for file, texts in made if not texts] == []
    assert len(made) == calls
    assert len(error_texts.messages()) > 80
