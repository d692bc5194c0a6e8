"""Public IDs in other languages: the programs in examples/public-ids compute the vectors again."""

import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

PROGRAMS = ROOT / "examples/public-ids"
VECTORS = (ROOT / "tests/vectors/seal.csv").read_text().partition("\n")[2]
# Columns: program | what runs it
LANGUAGES = {"seal.py": [sys.executable], "seal.mjs": ["node"], "Seal.java": ["java"], "seal.go": ["go", "run"]}


@pytest.mark.parametrize("program", LANGUAGES)
def test_a_program_computes_the_vectors(program):
    command = LANGUAGES[program]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    if program == "seal.py":
        pytest.importorskip("cryptography", reason="Python's cryptography is not installed")
    done = subprocess.run([*command, PROGRAMS / program], input=VECTORS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, VECTORS), done.stderr


def test_each_program_is_run():
    assert {file.name for file in PROGRAMS.iterdir()} == set(LANGUAGES)
