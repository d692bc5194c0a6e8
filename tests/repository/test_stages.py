"""Each kind of test is listed once, in contributing/tests.md, and each stage of continuous integration once, in .ci/run."""

import json
import os
import re
import shutil
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


@pytest.fixture
def stubs(tmp_path):
    """Stages that only write down that they have run, and fail if they are named FAILING."""
    stub = '#!/bin/sh\necho "${0##*/} $*" >>ran\ntest "${0##*/} $*" != "$FAILING"\n'
    (tmp_path / ".ci").mkdir()
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    for name in ("scripts/test", "scripts/setup", "scripts/postgres", "make"):
        (tmp_path / name).write_text(stub)
        (tmp_path / name).chmod(0o755)

    def play(*stages, failing="nothing"):
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "FAILING": failing}
        done = subprocess.run([".ci/run", *stages], cwd=tmp_path, check=False, env=environment, capture_output=True, text=True)
        ran = (tmp_path / "ran").read_text().splitlines()
        (tmp_path / "ran").unlink()
        return done.returncode, ran, done.stdout + done.stderr

    return play


def test_all_stages_run_and_one_alone(stubs):
    status, ran, printed = stubs()
    commands = [command.removeprefix("scripts/") for command in json.loads(run(".ci/run", "--list")[1])]
    assert status == 0 and set(commands) <= set(ran) and printed.count(" took ") == len(commands), printed
    assert stubs("make lint")[:2] == (0, ["make lint"])


@pytest.mark.parametrize("failing", ["make test-engines", "make test-site", "make test-matrix"])
def test_one_stage_that_fails_is_enough(stubs, failing):
    status, ran, printed = stubs(failing=failing)
    assert status != 0 and f"{failing} FAILED" in printed
    # The engines and the stages beside them are begun together, and no stage after them.
    assert "make test-engines" in ran and ("make test" in ran) == (failing == "make test-matrix")
    assert stubs(failing, failing=failing)[0] != 0
