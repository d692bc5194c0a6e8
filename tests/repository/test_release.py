"""scripts/release makes versions permanent, in copies of the repository, and a build installs the right scripts."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import ROOT
from next_release import VERSION, script

NEXT = "99.0.0"
EXTENSIONS = ["flake", "flake_sequences"]


class Copy:
    """A copy of the files that the scripts need, in the state before the first release."""

    def __init__(self, path):
        self.path, self.sql = path, path / "sql"
        for name in ["scripts", "sql"]:
            shutil.copytree(ROOT / name, path / name, ignore=shutil.ignore_patterns("flake*--*", "SHA256SUMS"))
        for name in ["Cargo.toml", "flake.control", "flake_sequences.control"]:
            shutil.copy(ROOT / name, path)

    def open_next(self):
        """Opens the next version, with an upgrade to it."""
        cargo = self.path / "Cargo.toml"
        cargo.write_text(cargo.read_text().replace(f'\nversion = "{VERSION}"', f'\nversion = "{NEXT}"'))
        for extension in EXTENSIONS:
            self.write(f"sql/{extension}--{VERSION}--{NEXT}.sql", "SELECT 'the upgrade';\n")

    def write(self, name, text):
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    def frozen(self):
        """Returns the names of the scripts with right checksums."""
        assert self.release("check").returncode == 0
        sums = self.sql / "SHA256SUMS"
        return {line.split()[1] for line in sums.read_text().splitlines()} if sums.exists() else set()

    def release(self, *arguments):
        command = [self.path / "scripts/release", *arguments]
        return subprocess.run(command, cwd=self.path, check=False, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path / "copy")


def test_a_built_script_takes_precedence_over_a_frozen_one(copy):
    """If the objects of a version have changed since it was frozen, tests use the new ones. The compiler here does nothing."""
    copy.release("cut")
    copy.open_next()
    copy.write(f"sql/flake--{NEXT}.sql", "SELECT 'as it was';\n")
    copy.write("target/quick/libflake.so", "the library")
    copy.write("bin/cargo", "#!/bin/sh\n")
    (copy.path / "bin/cargo").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FLAKE_")}
    environment |= {"FLAKE_PROFILE": "quick", "PATH": f"{copy.path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run([copy.path / "scripts/build"], env=environment, check=True, capture_output=True)
    built = {path.name: path.read_text() for path in (copy.path / "target").rglob("extension/*.sql")}
    assert built[f"flake--{VERSION}--{NEXT}.sql"] == "SELECT 'the upgrade';\n"
    there = {path.name: path.read_text() for path in copy.sql.glob("flake*--*.sql")}
    sequences = {f"flake_sequences--{NEXT}.sql": (copy.sql / "sequences.sql").read_text()}
    assert built == there | {f"flake--{NEXT}.sql": script()} | sequences


def test_the_first_release_is_cut(copy):
    """The first release has no upgrade to it."""
    assert copy.frozen() == set()
    assert copy.release("cut").returncode == 0
    frozen = {f"{extension}--{VERSION}.sql" for extension in EXTENSIONS}
    assert copy.frozen() == frozen == {path.name for path in copy.sql.glob("flake*--*.sql")}
    assert (copy.sql / f"flake--{VERSION}.sql").read_text() == script()


def test_the_next_release_is_cut(copy):
    """The install script and the upgrade script of the next release are permanent from then on."""
    copy.release("cut")
    copy.open_next()
    assert copy.release("cut").returncode == 0
    frozen = {f"{extension}--{versions}.sql" for extension in EXTENSIONS for versions in (VERSION, NEXT, f"{VERSION}--{NEXT}")}
    assert copy.frozen() == frozen
    assert (copy.sql / f"flake--{NEXT}.sql").read_text() == script()
    again = copy.release("cut")
    assert again.returncode != 0 and "exists: a version that was released does not change" in again.stderr
    copy.write(f"sql/flake--{VERSION}--{NEXT}.sql", "SELECT 'another upgrade';\n")
    assert copy.release("check").returncode != 0


def test_a_release_that_nothing_upgrades_to_is_refused(copy):
    copy.release("cut")
    copy.open_next()
    for extension in EXTENSIONS:
        upgrade = copy.sql / f"{extension}--{VERSION}--{NEXT}.sql"
        text = upgrade.read_text()
        upgrade.unlink()
        refused = copy.release("cut")
        assert refused.returncode != 0 and f"no script in sql upgrades {extension} to {NEXT}" in refused.stderr
        assert copy.frozen() == {f"{extension}--{VERSION}.sql" for extension in EXTENSIONS}
        upgrade.write_text(text)


@pytest.fixture
def gpg(monkeypatch):
    """Runs gpg with a new key, in a directory of its own. Its path is short because the agent's socket is in it."""
    with tempfile.TemporaryDirectory(prefix="gpg-", dir="/tmp") as home:
        monkeypatch.setenv("GNUPGHOME", home)

        def run(*arguments):
            return subprocess.run(["gpg", "--batch", *arguments], check=False, capture_output=True, text=True)

        made = run("--passphrase", "", "--quick-generate-key", "A maintainer <maintainer@flake.invalid>", "default", "default")
        assert made.returncode == 0, made.stderr
        yield run
        subprocess.run(["gpgconf", "--kill", "all"], check=True)


@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg, which signs releases, is not installed")
def test_packages_are_signed(copy, tmp_path, gpg):
    """The signature covers the packages' checksums, and packages with other bytes are refused."""
    (tmp_path / "dist").mkdir()
    packages = [tmp_path / "dist" / name for name in ["flake.deb", "flake.tar.gz"]]
    for package in packages:
        package.write_text(package.name)
    sums = tmp_path / "dist/SHA256SUMS-x86_64"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages))
    signature = sums.with_name(f"{sums.name}.asc")
    for _ in range(2):
        signed = copy.release("sign", tmp_path / "dist")
        assert (signed.returncode, gpg("--verify", signature, sums).returncode) == (0, 0), signed.stderr
    signature.unlink()
    packages[0].write_text("other bytes")
    assert copy.release("sign", tmp_path / "dist").returncode != 0 and not signature.exists()


@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg, which signs releases, is not installed")
def test_the_tag_is_signed(tmp_path, gpg):
    """RELEASE.md says how."""
    command = re.search(r"`(git tag -s v[^`]*)`", (ROOT / "RELEASE.md").read_text())[1]
    identity = ["-c", "user.name=A maintainer", "-c", "user.email=maintainer@flake.invalid"]

    def git(*arguments):
        return subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True).stderr

    git("init")
    git("commit", "--allow-empty", "--message", "Nothing")
    git(*command.split()[1:], "--message", "A version")
    assert "Good signature" in git("verify-tag", f"v{VERSION}")
