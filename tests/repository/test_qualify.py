"""scripts/qualify runs a part of a release until it has passed, once for each tree of the product."""

import re
import shutil
import subprocess

import pytest

from conftest import ROOT

COUNT = """#!/bin/sh
echo run >>runs
test ! -e broken
"""


@pytest.fixture
def checkout(tmp_path):
    for name in ("qualify", "lib.sh"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts" / name)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/run").write_text(COUNT)
    (tmp_path / ".ci/run").chmod(0o755)
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "src/lib.rs").write_text("one")
    (tmp_path / "README.md").write_text("one")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(directory, *arguments):
    who = ["-c", "user.name=flake", "-c", "user.email=flake@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=directory, check=True)


def commit(directory):
    git(directory, "add", "README.md", "scripts", "src", ".ci")
    git(directory, "commit", "-qm", "a change")


def runs(directory, status=0):
    """Runs the part, and returns how often it has run by now."""
    done = subprocess.run(["scripts/qualify", "ci"], cwd=directory, check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == status, done.stdout
    assert ("not yet: .ci/run" in done.stdout) == (status != 0), done.stdout
    return (directory / "runs").read_text().count("run")


def test_a_part_that_has_passed_runs_again_only_for_another_product(checkout):
    assert [runs(checkout), runs(checkout)] == [1, 1]
    (checkout / "README.md").write_text("two")
    commit(checkout)
    assert runs(checkout) == 1
    (checkout / "src/lib.rs").write_text("two")
    commit(checkout)
    assert runs(checkout) == 2


def test_what_is_remembered_is_a_file_to_commit_with_what_the_part_has_printed(checkout):
    printed = ["2 passed in 1 s", "==> SKIPPED: a library", "SKIPPED [3] tests/a.py:1: none", "40 passed, 3 skipped"]
    another = "git -c user.name=flake -c user.email=flake@localhost commit -q --allow-empty -m another\n"
    (checkout / ".ci/run").write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in printed) + another)
    commit(checkout)
    head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=checkout, check=True, text=True, stdout=subprocess.PIPE)
    subprocess.run(["scripts/qualify", "ci"], cwd=checkout, check=True)
    shutil.rmtree(checkout / "target")
    listed = subprocess.run(["scripts/qualify", "--list"], cwd=checkout, check=True, text=True, stdout=subprocess.PIPE).stdout
    ci, = (line.split() for line in listed.splitlines() if line.startswith("ci "))
    assert ci[2] == head.stdout.strip() and ci[4:] == ["42", "4"], listed
    assert (checkout / "tests/qualified.tsv").read_text().count("\n") == 2


def test_a_part_that_has_failed_runs_again(checkout):
    (checkout / "broken").touch()
    assert [runs(checkout, 1), runs(checkout, 1)] == [1, 2]
    (checkout / "broken").unlink()
    assert [runs(checkout), runs(checkout)] == [3, 3]


def test_what_is_not_committed_is_not_qualified(checkout):
    (checkout / "src/lib.rs").write_text("two")
    done = subprocess.run(["scripts/qualify", "ci"], cwd=checkout, check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "commit what has changed" in done.stderr and not (checkout / "runs").exists()


def test_each_part_of_the_soak_is_qualified():
    parts = re.findall(r"^    part ([a-z-]+) ", (ROOT / "scripts/test").read_text(), re.M)
    qualify = (ROOT / "scripts/qualify").read_text()
    named = re.search(r'for part in ([a-z -]+); do echo "soak-', qualify)[1].split()
    longer = ["plain-sql", "nemesis"]
    assert all(f"\n{name} " in qualify for name in ["deployments", *longer])
    assert sorted([*named, *longer, "simulator"]) == sorted(parts)
