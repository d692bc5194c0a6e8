"""How scripts/release makes a version permanent, and what a build installs of it, in copies of the repository."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT
from next_release import RELEASED, VERSION, script

NEXT = "99.0.0"


class Copy:
    """The files of the repository that the scripts need, at the next version, with the history of that."""

    def __init__(self, path):
        self.path = path
        for name in ["scripts", "sql"]:
            shutil.copytree(ROOT / name, path / name)
        for name in ["Cargo.toml", "flake.control"]:
            shutil.copy(ROOT / name, path)
        self.git("init", "--quiet")
        if VERSION not in RELEASED:
            assert self.release("cut").returncode == 0
        self.commit("this version")
        self.set_version(NEXT)
        self.write(f"sql/flake--{VERSION}--{NEXT}.sql", "SELECT 'the upgrade';\n")
        self.commit("the next one")

    def git(self, *arguments, **options):
        command = ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments]
        return subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True, **options).stdout

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def set_version(self, version):
        cargo = self.path / "Cargo.toml"
        cargo.write_text(cargo.read_text().replace(f'\nversion = "{VERSION}"', f'\nversion = "{version}"'))

    def write(self, name, text):
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    def release(self, *arguments):
        command = [self.path / "scripts/release", *arguments]
        return subprocess.run(command, cwd=self.path, check=False, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path / "copy")


def test_no_frozen_script_takes_the_place_of_the_one_that_is_built(copy):
    """Where the objects of a version have changed since it was frozen, tests run on those that it has now. The compiler is one
    that compiles nothing."""
    copy.write(f"sql/flake--{NEXT}.sql", "SELECT 'as it was';\n")
    copy.write("target/quick/libflake.so", "the library")
    copy.write("bin/cargo", "#!/bin/sh\n")
    (copy.path / "bin/cargo").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLAKE_")}
    environment |= {"FLAKE_PROFILE": "quick", "PATH": f"{copy.path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run([copy.path / "scripts/build"], env=environment, check=True, capture_output=True)
    built = {path.name: path.read_text() for path in (copy.path / "target").rglob("extension/*.sql")}
    assert built[f"flake--{VERSION}--{NEXT}.sql"] == "SELECT 'the upgrade';\n"
    there = {path.name: path.read_text() for path in (copy.path / "sql").glob("flake--*.sql")}
    assert built == there | {f"flake--{NEXT}.sql": script()}


def test_a_release_is_cut(copy):
    """Its install script, and the script that upgrades to it, stay from then on."""
    assert copy.release("cut").returncode == 0
    releases = copy.path / "sql"
    assert (releases / f"flake--{NEXT}.sql").read_text() == script()
    assert (releases / f"flake--{VERSION}--{NEXT}.sql").read_text() == "SELECT 'the upgrade';\n"
    listed = {line.split()[1] for line in (releases / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in releases.glob("flake--*.sql")}
    assert copy.release("check").returncode == 0
    again = copy.release("cut")
    assert again.returncode != 0 and "exists: a version that was released does not change" in again.stderr
    copy.write(f"sql/flake--{VERSION}--{NEXT}.sql", "SELECT 'another upgrade';\n")
    assert copy.release("check").returncode != 0


@pytest.mark.parametrize("tag", [True, False])
def test_the_commit_of_a_release_is_found(copy, tmp_path, tag):
    """With its tag and without, while it is the last commit and when another version follows; a clone that does not have it says
    so."""
    copy.release("cut")
    released = copy.commit("the release")
    assert copy.release("commit", NEXT).stdout.strip() == released
    if tag:
        copy.git("tag", f"v{NEXT}")
    copy.write("sql/sno.sql", "SELECT 'a change';\n")
    (copy.path / "Cargo.toml").write_text((copy.path / "Cargo.toml").read_text().replace(f'"{NEXT}"', '"99.1.0"'))
    copy.commit("the version after it")
    assert copy.release("commit", NEXT).stdout.strip() == released
    assert copy.release("commit", "98.0.0").returncode == 1
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{copy.path}", tmp_path / "shallow"], check=True)
    shallow = subprocess.run([tmp_path / "shallow/scripts/release", "commit", NEXT], check=False, capture_output=True, text=True)
    assert (shallow.returncode, shallow.stdout) == (1, "")
