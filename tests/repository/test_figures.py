"""The figures of docs/explanation/how-it-is-tested.md: FLAKE_ACCEPT writes them."""

import os
import re
import sys

from conftest import ROOT
from pages import PAGES, blocks

sys.path.insert(0, str(ROOT / "tests"))

import mutants

PAGE = ROOT / "docs/explanation/how-it-is-tested.md"
TABLE = re.compile(r"(?<=^<!-- figures -->\n).*?(?=^<!-- end of figures -->$)", re.M | re.S)


def count(pattern, *files):
    return sum(len(re.findall(pattern, path.read_text(), re.M)) for glob in files for path in ROOT.glob(glob))


def lines(*globs):
    return sum(path.read_text().count("\n") for glob in globs for path in ROOT.glob(glob))


def code_and_tests():
    tests = lines("tests/**/*.py", "tests/**/*.rs", "tests/regress/sql/*", "src/*/tests/**/*.rs", "src/core/fuzz/**/*.rs")
    return lines("src/**/*.rs", "sql/flake.sql", "sql/sno.sql") - lines("src/*/tests/**/*.rs", "src/core/fuzz/**/*.rs"), tests


def figures():
    draw = re.search(r"    def draw\(self\):.*?\}\)", (ROOT / "tests/nemesis/plan.py").read_text(), re.S)[0]
    clients = (ROOT / "docs/how-to/clients.md").read_text().split("| client | version |")[1].split("\n\n")[0]
    code, tests = code_and_tests()
    yield 100 * tests // code, "lines of tests for 100 lines of code"
    yield len(mutants.rows()), "slips, each noticed by a test that is named for it"
    yield count(r"^ *#\[test\]$", "src/*/tests/**/*.rs"), "tests of the core, without a server"
    yield count(r"^#\[test\]$", "src/core/tests/simulator/stories*.rs"), "of them stories that the simulator plays each time"
    yield count(r"^def test_", "tests/server/*.py", "tests/libraries/*.py"), "tests of servers, many with a table of cases"
    yield len(re.findall(r"self\.\w+: ", draw)), "kinds of events in the nemesis's plans"
    vectors = [lines(f"tests/vectors/{path.name}") - 1 for path in ROOT.glob("tests/vectors/*.csv")]
    yield sum(vectors), "IDs of other implementations, or worked out from a format's description"
    yield clients.count("\n") - 1, "clients"
    yield sum(language == "sql" for page in PAGES for language, _ in blocks(page)), "examples in SQL on these pages, all executed"


def down(number):
    """So that the page changes now and then, and is never too bold."""
    step = 100 if number >= 1000 else 50 if number >= 200 else 5
    return number // step * step


def test_the_figures_are_counted():
    rows = [f"| {down(number):,} | {what} |\n" for number, what in figures()]
    table, page = "| at least | |\n|---:|---|\n" + "".join(rows), PAGE.read_text()
    if os.environ.get("FLAKE_ACCEPT"):
        PAGE.write_text(TABLE.sub(table, page))
    else:
        assert TABLE.search(page)[0] == table, "scripts/test accept writes it"
