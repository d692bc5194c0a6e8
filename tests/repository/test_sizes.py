"""Files and functions are short enough to be read at once: at most 400 and 80 lines."""

import ast
import re

import pytest

from conftest import ROOT

FOLDERS = ["src", "site", "tests", "bench"]
FILES = [
    path for folder in FOLDERS for end in ("rs", "py") for path in sorted((ROOT / folder).rglob(f"*.{end}"))
    if "target" not in path.parts
]  # fmt: skip
# Functions in rustfmt's layout: the last line has the indentation of the first one.
RUST = re.compile(r"^( *)(?:pub(?:\(\w+\))? )?(?:(?:const|unsafe|extern \S+) )*fn (\w+)[^;]*?\{\n.*?^\1\}", re.M | re.S)


def functions(path):
    source = path.read_text()
    if path.suffix == ".rs":
        return [(found[2], found[0].count("\n") + 1) for found in RUST.finditer(source)]
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return [(node.name, node.end_lineno - node.lineno + 1) for node in nodes]


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_and_functions_are_short(folder):
    files = [path for path in FILES if path.is_relative_to(ROOT / folder)]
    assert files
    assert [(str(path.relative_to(ROOT)), lines) for path in files if (lines := path.read_text().count("\n")) > 400] == []
    found = [(str(path.relative_to(ROOT)), name, lines) for path in files for name, lines in functions(path)]
    assert len(found) > len(files) / 2
    assert [each for each in found if each[2] > 80] == []
