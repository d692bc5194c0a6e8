"""The check of prose reads the right files, and finds each of its habits."""

import sys
import tomllib

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests"))

import prose

HABITS = tomllib.loads((ROOT / "tests/prose.toml").read_text())["habit"]
QUOTES = '"' * 3
QUOTES = '"' * 3
SOURCES = {
    "page.md": "The list\nof which\n\n```sql\n-- of which\n```\n\n* That\n* of which\n",
    "code.rs": "/// The list\n/// of which\nlet of_which = 1;\n// That\n//\n// of which\n",
    "code.py": f'text = "of which"\n{QUOTES}The list\nof which{QUOTES}\nx = 1\n# That\n\n# of which\n',
    "code.sql": "-- The list\n-- of which\nSELECT 'of which';\n-- That\n\n-- of which\n",
    "script": "#!/bin/sh\n# The list\n# of which\necho of which\n# That\n\n# of which\n",
}


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit["instead"])
def test_each_habit_is_found(habit):
    assert habit["instead"] in "".join(prose.places([habit], "page", habit["example"]))


@pytest.mark.parametrize("name", SOURCES)
def test_sentences_continue_on_the_next_line_and_code_is_not_prose(tmp_path, name):
    path = tmp_path / name
    path.write_text(SOURCES[name])
    texts = [text.lstrip("* ") for _, text in prose.paragraphs(path) if text]
    assert texts == ["The list of which", "That", "of which"]


def test_pages_and_scripts_are_read():
    read = {str(path.relative_to(ROOT)) for path in prose.files()}
    assert {"README.md", "docs/faq.md", "docs/reference/functions.md", "scripts/lint"} <= read
    assert not {path for path in read if path.startswith("target")}
