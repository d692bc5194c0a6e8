"""Each kind of test is listed once, in contributing/tests.md, and each stage of continuous integration once, in .ci/run."""

import json
import re
import subprocess

import pytest

from conftest import ROOT

KINDS = set(re.search(r"^all \|([^)]*)\)$", (ROOT / "scripts/test").read_text(), re.M)[0].rstrip(")").split(" | "))
# These need no entry: a benchmark, packages and lint are commands of their own, and bars are tests of servers.
OTHERS = {"bench", "bars", "packages", "lint"}


def run(*command):
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout


def test_the_help_lists_each_kind_of_test():
    rows = re.findall(r"^\| ([A-Za-z-]+) \| ", (ROOT / "contributing/tests.md").read_text().partition("\n## ")[0], re.M)
    named = {{"SQL": "regress"}.get(row, row) for row in rows} - {"kind"} - OTHERS
    assert named == KINDS
    status, printed = run("scripts/test", "--help")
    assert status == 0 and printed.count("\n    ") == len(rows) - 1
    assert "scripts/test quick\n    formatting" in printed


@pytest.mark.parametrize("kind", ["nonsense", "prepare"])
def test_what_is_no_kind_of_test_is_refused(kind):
    assert run("scripts/test", kind)[0] != 0


def test_the_workflow_runs_the_stages():
    status, printed = run(".ci/run", "--list")
    stages = json.loads(printed)
    assert status == 0 and "make test" in stages and "make lint" in stages
    workflow = (ROOT / ".github/workflows/test.yml").read_text()
    assert ".ci/run --list" in workflow and '.ci/run "${{ matrix.stage }}"' in workflow
    assert run(".ci/run", "make test-nothing")[0] != 0
