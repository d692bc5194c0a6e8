"""The page that reads an ID, from a web server and from one file."""

import csv
import datetime
import json
import re
import subprocess
from pathlib import Path

import pytest

from conftest import HTML, ROOT

VECTORS = ROOT / "tests/vectors"
WASM = ROOT / "target/site/wasm32-unknown-unknown/release/flake_reader.wasm"
# In the year 2096. Many vectors are later than any date of Python.
LATEST = 4_000_000_000_000_000
DEFINITION = '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}'


def samples():
    """A vector of each built-in layout. Another epoch than the built-in one means the same bits at another time."""
    found = {}
    for file in sorted(VECTORS.glob("*.csv")):
        with file.open() as lines:
            for row in csv.DictReader(lines):
                if row.get("epoch_ms") and int(row["id"]) not in (0, 1) and int(row["unix_us"]) < LATEST:
                    found.setdefault(row["layout"], row)
    epochs = built_in()
    assert len(epochs) > 20
    for name, epoch in epochs.items():
        later = 1000 * (epoch - int(found[name]["epoch_ms"]))
        yield found[name] | {"unix_us": int(found[name]["unix_us"]) + later}


def built_in():
    """The epochs of the built-in layouts in milliseconds, by the table in the edition in plain SQL, which is generated."""
    rows = re.findall(r"WHEN '(\w+)' THEN ROW\('\w+', '?(-?\d+)'?,", (ROOT / "managed/flake.sql").read_text())
    return {name: int(epoch) // 1000 for name, epoch in rows}


SAMPLES = list(samples())


@pytest.fixture(params=["page", "file"])
def reader(request, browser, address):
    """The page of the site, and the file that stands alone, opened without a server."""
    browser.open(f"{address}/read-an-id.html" if request.param == "page" else (HTML / "flake-reader.html").as_uri())
    browser.until("document.querySelector('#reader[data-ready]')")
    return browser


def read(browser, text, layout=None):
    """Types an ID; returns the texts of a layout's reading: the first line, the rows of fields and of forms, and the bits."""
    browser.run("document.querySelector('#answer').replaceChildren()")
    browser.fill("#reader #id", text)
    browser.until("document.querySelector('#answer').children.length")
    reading = f"document.querySelector('.reading[data-layout={json.dumps(layout)}]')" if layout else "null"
    # The last cell of a form has the button that copies it.
    cells = "[...row.cells].filter(cell => !cell.querySelector('button'))"
    texts = "(parts => [...parts].map(part => part.textContent))"
    return browser.run(f"""(reading => reading && {{
        first: {texts}(reading.querySelectorAll('summary > *')),
        tables: [...reading.querySelectorAll('table')].map(table => [...table.rows].map(row => {texts}({cells}))),
        bits: {texts}(reading.querySelectorAll('.picture b')).join(''),
    }})({reading})""")


def instant(microseconds):
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(microseconds))
    return at.isoformat(" ", "milliseconds")


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["layout"] for sample in SAMPLES])
def test_an_id_of_each_layout_is_read(reader, sample):
    for text in {sample["id"], sample["text"]} - {""}:
        found = read(reader, text, sample["layout"])
        assert found["first"][0] == sample["layout"] and found["first"][1].startswith(instant(sample["unix_us"]))
        fields, forms = found["tables"]
        # Fields of one name are parts of one number, whose bits come one after the other.
        numbers = {}
        for name, width, number in fields:
            if number and name != "timestamp":
                numbers[name] = numbers.get(name, 0) << int(width.split()[0]) | int(number)
        assert numbers == {name: int(number) for name, number in (pair.split("=") for pair in sample["fields"].split())}
        assert ["bigint", sample["id"]] in forms
        assert int(found["bits"], 2) == int(sample["id"]) % (1 << 64) and len(found["bits"]) == 64
        if sample["text"]:
            assert sample["text"] in [text for _, text in forms]


def test_a_sno_is_read(reader):
    with (VECTORS / "sno.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    for row in rows[3:6]:
        for text in (row["text"], f"\\x{row['bytes']}"):
            found = read(reader, text, "sno")
            assert found["first"][1].startswith(instant(row["starts_us"]))
            assert {name: number for name, _, number in found["tables"][0]}["metabyte"] == row["metabyte"]
            assert int(found["bits"], 2) == int(row["bytes"], 16)


def test_an_instant_has_the_microseconds_of_a_short_tick(reader):
    found = read(reader, str(10_000_000_005 << 15), "cockroach")
    assert found["first"][1] == "2015-01-02 03:46:40.000050 UTC"


def test_a_wrong_id_is_refused_with_reasons(reader):
    read(reader, "0AWE5HZP3SKTU!")
    text = reader.run("document.querySelector('#answer').textContent")
    assert text.startswith("No layout has this ID") and 'tsid: character 13, "U", is not a digit of this text form' in text
    assert reader.run("document.querySelectorAll('.reading').length") == 0
    assert read(reader, "9007199254740992", "si") is None
    assert "si, si_single: its IDs have 53 bits" in reader.run("document.querySelector('#refused').textContent")


def test_forms_that_people_paste_are_read(reader):
    for text in ('"1541815603606036480"', " 1541815603606036480n ", "0x1565a11f6217a000", "urn:li:activity:1541815603606036480"):
        assert read(reader, text, "twitter")["first"][1] == "2022-06-28 16:07:40.105 UTC", text
    assert read(reader, "0x+1565a11f6217a00", "twitter") is None
    as_number, as_text = (read(reader, text, "uniqueid")["first"] for text in ("-3795148059625652224", "cb54ecf284000000"))
    assert as_number == as_text
    read(reader, "1.5418156036060365e+18")
    assert "JavaScript has rounded this number" in reader.run("document.querySelector('#answer').textContent")
    for key in ("usr", "api_user"):
        read(reader, f"{key}_75ddtqrrhdhagam34yy93n037g")
        assert f"a public ID of the key {key}." in reader.run("document.querySelector('#answer').textContent")


def test_a_layout_of_ones_own_is_read(reader):
    reader.click("#own summary")
    reader.fill("#definition", DEFINITION)
    found = read(reader, "4194304", "your layout")
    assert found["first"] == ["your layout", "2024-01-01 00:00:00.001 UTC", "datacenter 0", "worker 0", "sequence 0"]
    reader.fill("#definition", DEFINITION.replace("like", "lik"))
    reader.until("document.querySelector('#answer .fault')")
    assert "unknown field `lik`" in reader.run("document.querySelector('#answer .fault').textContent")


def test_the_address_can_have_the_id(browser, address):
    browser.open(f"{address}/read-an-id.html#1541815603606036480")
    browser.until("document.querySelector('.reading[data-layout=twitter]')")
    browser.open(f"{address}/read-an-id.html#50%")
    assert read(browser, "1541815603606036480", "twitter")


def test_the_core_names_no_directory_of_this_machine():
    code = WASM.read_bytes()
    assert b"flake/src/core" in code
    assert [path for path in (ROOT, Path.home() / ".cargo") if str(path).encode() in code] == []


def test_the_vectors_of_the_core_are_read_in_node():
    command = ["node", ROOT / "tests/site/vectors.mjs", WASM, VECTORS]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lines = {name: len((VECTORS / f"{name}.csv").read_text().splitlines()) - 1 for name in found}
    assert found == lines and sum(lines.values()) > 1500 and len(lines) == 8
