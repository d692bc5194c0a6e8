"""The archives of the packages: their types, and that they are made the same again."""

import os
import re
import subprocess
import sys

from buffer_programs import PACKAGES, package
from conftest import ROOT
from database import CLIENTS
from package_programs import needs, programs

__all__ = ["programs"]


def test_types_are_strict(programs):
    needs("python")
    environment = os.environ | {"PYTHONPATH": str(CLIENTS / "python")}
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(programs.directory / "mypy"), PACKAGES / "python/src"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_archives_are_the_same_again_and_have_the_version_of_the_extension(programs, tmp_path):
    needs("python")
    one, other = (package("python", "*.whl", tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    version = re.search('^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    assert one.name == f"flake_ids-{version}-py3-none-any.whl"
