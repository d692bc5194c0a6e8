"""The tutorial in the browser: IDs are made and read there, and an error shows the statement that has failed."""

import base64
import json
import re
import subprocess
import time

import pytest

import cells
from conftest import HTML, ROOT

STATEMENTS = """
import {{ statements }} from '{module}'
console.log(JSON.stringify([...statements({text})]))"""


@pytest.fixture
def playground(browser, address):
    browser.open(f"{address}/playground.html")
    browser.until("document.querySelectorAll('.cell').length >= 7")
    browser.until("document.querySelector('#status').textContent.includes('is running')")
    return browser


def cell(number):
    return f"[...document.querySelectorAll('.cell')][{number}]"


def results(browser, number):
    """The tables of a cell, each as rows of texts, the first of them the names."""
    rows = "[...table.rows].map(row => [...row.cells].map(cell => cell.textContent))"
    return browser.run(f"[...{cell(number)}.querySelectorAll('table')].map(table => {rows})")


def errors(browser):
    return browser.run("[...document.querySelectorAll('.error')].map(error => error.textContent)")


def run_all(browser):
    """Clicks, and waits for the last step of the new database."""
    browser.run("document.querySelectorAll('.result').forEach(result => delete result.dataset.ran)")
    browser.click("#all")
    ran = "[...document.querySelectorAll('.result')].every(result => result.dataset.ran)"
    browser.until(f"({ran} && !document.querySelector('#all').disabled) || document.querySelector('.error')", seconds=120)
    assert errors(browser) == []


def run_step(browser, number):
    """Clicks the button of a step as it is."""
    browser.run(f"delete {cell(number)}.querySelector('.result').dataset.ran")
    browser.run(f"{cell(number)}.querySelector('button').click()")
    browser.until(f"{cell(number)}.querySelector('.result').dataset.ran && !document.querySelector('#all').disabled")


def run(browser, number, sql):
    """Types into a cell and clicks its button."""
    browser.run(f"{cell(number)}.id = 'tried'")
    browser.run("delete document.querySelector('#tried .result').dataset.ran")
    browser.fill("#tried textarea", sql)
    browser.click("#tried button")
    browser.until("document.querySelector('#tried .result').dataset.ran", seconds=60)


def test_the_tutorial_makes_and_reads_ids(playground):
    run_all(playground)
    orders, = results(playground, 0)
    assert orders[0] == ["id", "item", "created_at"] and [row[1] for row in orders[1:]] == ["tea", "rice", "salt"]
    for number, _, created_at in orders[1:]:
        made = ((int(number) >> 22) + 1288834974657) / 1000
        assert abs(made - time.time()) < 150
        assert created_at.startswith(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(made)))
    explained, = results(playground, 1)
    assert "datacenter = 11" in explained[1][0] and "2022-06-28T16:07:40.105Z" in explained[1][0]
    partitions, = results(playground, 3)
    assert [row[:2] for row in partitions[1:]] == [["events_before", "1000"], ["events_since", "10000"]]
    counted, filtered = results(playground, 4)
    assert counted[1] == ["60"] and "Filter" in str(filtered)
    ranged, = results(playground, 5)
    assert "Index Cond: (id <" in str(ranged)
    decoded, checks = results(playground, 6)
    assert decoded[1][0].startswith("(discord,") and {row[1] for row in checks[1:]} == {"t"}


def test_an_error_shows_its_statement(playground):
    run(playground, 0, "SELECT 1 AS one;\nSELECT flake_timestmp(-1);\nSELECT 2 AS two;")
    assert results(playground, 0) == [[["one"], ["1"]]]
    error = "document.querySelector('#tried .error')"
    assert playground.run(f"{error}.querySelector('pre').textContent") == "SELECT flake_timestmp(-1);"
    assert playground.run(f"{error}.querySelector('mark').textContent") == "flake_timestmp"
    assert "function flake_timestmp(integer) does not exist (42883)" in playground.run(f"{error}.textContent")
    run(playground, 0, "SELECT flake_timestamp(-1)")
    text = playground.run(f"{error}.textContent")
    assert "ID -1 is not possible" in text and "(22003)" in text and "HINT: Check that" in text
    run(playground, 0, "SELECT 'again' AS said")
    assert results(playground, 0) == [[["said"], ["again"]]]


def test_it_can_start_over(playground):
    run(playground, 0, "CREATE TABLE kept ()")
    playground.click("#anew")
    playground.until("!document.querySelector('#anew').disabled")
    run(playground, 0, "SELECT to_regclass('kept') IS NULL AS gone")
    assert results(playground, 0) == [[["gone"], ["t"]]]


def test_from_a_file_the_page_says_that_it_cannot_run(browser):
    browser.open((HTML / "playground.html").as_uri())
    browser.until("document.querySelector('#status').textContent.startsWith('From a file')")
    # The browser refuses modules there.
    browser.errors.clear()


def test_steps_that_the_edition_lacks_cannot_be_run(playground):
    shown = playground.run("[...document.querySelectorAll('main code.reading')].map(code => code.textContent)")
    assert len(shown) == 3 and "flake_take" in shown[0]
    runnable = playground.run("[...document.querySelectorAll('.cell textarea')].map(editor => editor.value)")
    assert not any("flake_take" in sql or "CREATE EXTENSION" in sql for sql in runnable)


def test_the_page_has_the_tutorials_steps():
    """A note for a step that the tutorial has no more is a fault."""
    folder = ROOT / "site/playground"
    made = cells.in_browser(ROOT / "docs/tutorial.md", folder)
    tutorial = (ROOT / "docs/tutorial.md").read_text()
    steps = re.findall(r"^```sql[^\n]*\n", made, re.M)
    assert len(steps) == len(re.findall(r"^```sql\n", tutorial, re.M)) + 2
    headings = [line for line in tutorial.splitlines() if line.startswith("## ")]
    assert [line for line in made.splitlines() if line.startswith("## ")][:-1] == headings[:-1]


def test_a_note_without_its_step_is_refused(tmp_path):
    (tmp_path / "notes.toml").write_text('[[note]]\nstep = "DROP TABLE"\nsays = "Nothing."\n')
    with pytest.raises(SystemExit, match="DROP TABLE"):
        cells.in_browser(ROOT / "docs/tutorial.md", tmp_path)


@pytest.mark.parametrize(("text", "wanted"), [
    ("SELECT 1; SELECT 2", ["SELECT 1;", "SELECT 2"]),
    (" ;; -- nothing;\n/* ; */", []),
    ("SELECT ';', \";\", E'\\';', $$;$$, $a$ $$;$a$; x", ["SELECT ';', \";\", E'\\';', $$;$$, $a$ $$;$a$;", "x"]),
    ("SELECT 'it''s;'; -- a;b\nSELECT 2;", ["SELECT 'it''s;';", "-- a;b\nSELECT 2;"]),
])  # fmt: skip
def test_statements_are_divided(text, wanted):
    # Node takes the file for a module only if the type says so.
    code = base64.b64encode((ROOT / "site/playground/statements.js").read_bytes()).decode()
    module = f"data:text/javascript;base64,{code}"
    script = STATEMENTS.format(module=module, text=json.dumps(text))
    found = subprocess.run(["node", "--input-type=module", "-e", script], check=True, capture_output=True, text=True).stdout
    assert json.loads(found) == wanted
