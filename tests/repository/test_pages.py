"""Everything that pages and tables name exists, such as make targets and files."""

import re
import subprocess
import sys
import textwrap
import tomllib

import pytest

from conftest import ROOT
from pages import PAGES, blocks, named

sys.path.insert(0, str(ROOT / "tests"))

import mutants

GUIDES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "contributing").glob("*.md"))]
LINKED = re.compile(r"\]\(((?:\.\./)+examples/[^)]*\.\w+)\)")


def test_targets_of_make_that_are_named_exist():
    commands = [
        line.split("#")[0].split()
        for page in PAGES for language, block in blocks(page) if language == "sh" for line in block.splitlines()
    ]  # fmt: skip
    assert ["make", "run"] in commands and ["make", "test"] in commands
    for command in commands:
        assert command[0] == "make", f"{command}: only make is known to this test"
        subprocess.run(["make", "-n", *command[1:]], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("page", [*PAGES, *GUIDES], ids=named)
def test_files_that_are_named_exist(page):
    text = page.read_text()
    # Paths below the root, or below src/ as in the drawings; A and B stand for versions.
    paths = set(re.findall(r"(?<![\w/.*=-])(?:[\w.-]+/)+(?:[\w.-]+\.(?:rs|md|sql|py|toml|json|csv))?(?![\w/-])", text))
    paths |= set(re.findall(r"`((?:scripts|src|tests|sql|docs|bench)/[\w./-]+)`", text))
    paths |= set(re.findall(r"\]\(([^)#]+)\)", text))
    missing = [
        path for path in sorted(paths)
        if "--A--" not in path and not any((base / path).exists() for base in (ROOT, ROOT / "src", ROOT / "tests", page.parent))
    ]  # fmt: skip
    assert missing == []
    if page in GUIDES:
        assert len(paths) >= 5
        targets = set(re.findall(r"`make ([a-z-]+)`", text))
        for target in targets:
            subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)


def is_part(code, file):
    """Returns whether a page has these lines, with any indentation."""
    lines, count = file.read_text().splitlines(), len(code.splitlines())
    return any(textwrap.dedent("\n".join(lines[n : n + count])) == code.rstrip("\n") for n in range(len(lines)))


def test_code_of_clients_is_from_the_examples():
    """Each program of the examples is named too."""
    pages = [ROOT / "docs/how-to" / name for name in ("clients.md", "json.md", "applications.md")]
    linked = {page: [(page.parent / path).resolve() for path in LINKED.findall(page.read_text())] for page in pages}
    for page in pages:
        quoted = [code for language, code in blocks(page) if language not in ("sql", "text", "ini")]
        assert quoted
        assert [code for code in quoted if not any(is_part(code, file) for file in linked[page])] == []
    programs = {file for file in (ROOT / "examples").rglob("*") if file.name.lower().startswith("with")}
    assert len(programs) > 10
    assert programs - {file for files in linked.values() for file in files} == set()


def test_slips_and_the_tests_that_notice_them_exist():
    assert list(mutants.faults()) == []


def test_the_slip_and_the_choices_of_tests_that_guides_show_exist():
    files = sorted((ROOT / "tests/mutants").glob("*.toml"))
    slips = {name for file in files for of in tomllib.loads(file.read_text()).values() for name in of}
    page = (ROOT / "contributing/tests.md").read_text()
    example = re.search(r"^```toml\n(.*?)^```$", page, re.M | re.S)[1]
    assert any(example.partition("\n")[2] in file.read_text() for file in files)
    assert set(re.findall(r"scripts/test mutants ([A-Z]\w+)", page)) <= slips
    for folder, choice in re.findall(r"(tests/[\w/]+(?:\.py)?) -k (\w+)", page):
        # A parameter may come from a module beside the tests.
        beside = (ROOT / folder).parent if folder.endswith(".py") else ROOT / folder
        assert choice.lower() in "".join(file.read_text() for file in beside.glob("*.py")).lower(), choice


def test_the_picture_of_lanes_has_the_numbers_of_the_core():
    picture, test = (ROOT / path for path in ("docs/explanation/drawings/lanes.svg", "src/core/tests/lanes.rs"))
    said = re.search(r">(\d+) steps × (\d+) lanes × (\d+) IDs = ([\d,]+) IDs in each millisecond<", picture.read_text())
    steps, lanes, ids, all_ids = (int(number.replace(",", "")) for number in said.groups())
    assert f'division("twitter", 8), ({lanes}, {steps}, {ids}, {all_ids:_})' in test.read_text()


def test_the_picture_of_an_id_has_the_bits_of_an_id_of_the_readme():
    picture, readme = (ROOT / path for path in ("docs/explanation/drawings/id.svg", "README.md"))
    drawn = picture.read_text()
    number = int(re.search(r">(\d{19})<", drawn)[1])
    row = re.search(rf"^ {number} \| tea +\| (.*)\+00$", readme.read_text(), re.M)
    assert f"= {row[1]} UTC" in drawn
    assert "".join(re.findall(r">([01])</text>", drawn)) == f"{number:064b}"
    for name, value in ("time", number >> 22), ("worker", number >> 12 & 1023), ("sequence", number & 4095):
        assert f">{name}: {value:,}" in drawn
