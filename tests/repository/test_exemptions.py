"""The guarantee allows all that the simulator and the nemesis forgive: each exemption quotes the words that it rests on."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESTS_ON = re.compile(r'rests on "([^"]+)"')


def plain(text):
    """Returns the text without links and line breaks."""
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("* ", "").split())


def of_simulator():
    """The functions outside of `impl` that return a bool, each with the comment before it."""
    text = (ROOT / "src/core/tests/simulator/exemptions.rs").read_text()
    functions = re.findall(r"^((?:///.*\n)*)(?:pub )?(?:const )?fn (\w+)\([^{]*-> bool \{", text, re.M)
    return {name: comment.replace("///", "") for comment, name in functions}


def of_nemesis():
    tree = ast.parse((ROOT / "tests/nemesis/exemptions.py").read_text())
    functions = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    names, = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "EXEMPTIONS"]
    return {name.id: functions[name.id] for name in names.elts}


@pytest.mark.parametrize(("exemptions", "least"), [(of_simulator, 7), (of_nemesis, 5)])
def test_the_guarantee_says_what_is_forgiven(exemptions, least):
    guarantee = plain((ROOT / "docs/explanation/guarantee.md").read_text())
    found = exemptions()
    assert len(found) >= least
    for name, comment in found.items():
        quoted = RESTS_ON.search(plain(comment))
        assert quoted, f"{name} quotes nothing"
        assert quoted[1] in guarantee, f"{name}: {quoted[1]}"
