"""Everything that the workflows run is there: targets of the Makefile, and parts of scripts/test."""

import re

import pytest

from conftest import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
COMMENT = re.compile(r"^\s*#.*$", re.M)


def known():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    parts = re.search(r"^case .*\n(all \| .*)\)$", (ROOT / "scripts/test").read_text(), re.M)[1].split(" | ")
    return {f"make {target}" for target in targets} | {f"scripts/test {part}" for part in parts}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_its_commands_are_there(workflow):
    commands = re.findall(r"\b(?:make|scripts/\w+) \S+", COMMENT.sub("", workflow.read_text()))
    assert commands
    assert set(commands) - known() == set()
