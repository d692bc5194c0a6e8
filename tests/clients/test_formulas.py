"""docs/reference/formulas.md: its formulas give the times of flake_timestamp in other databases and languages."""

import json
import random
import re
import sqlite3

import pytest

from conftest import ROOT
from database import database, server_of_clients

__all__ = ["database", "server_of_clients"]
PAGE = (ROOT / "docs/reference/formulas.md").read_text()
FORMULAS = dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|$", PAGE, re.M))
EXPRESSIONS = dict(re.findall(r"^\| ([\w() ]+) \| `(.*?)`.*\|$", PAGE, re.M))
ELSEWHERE = """
    SELECT layout, id, floor(extract(epoch FROM flake_timestamp(id, layout)) * 1000)::bigint
    FROM unnest(%s::text[], %s::bigint[]) made (layout, id)"""


def signed(number):
    return number - (1 << 64) if number >> 63 else number


@pytest.fixture
def times(database):
    """IDs of each layout, with random bits and at both ends, and their milliseconds."""
    widths = dict(database.sql("SELECT name, bits FROM flake_layouts WHERE source <> 'custom'"))
    assert set(widths) - set(FORMULAS) == {"uniqueid", "uniqueid_v3"}
    drawn = random.Random(64)
    ids = [
        (name, signed(id))
        for name in FORMULAS
        for id in (0, (1 << widths[name]) - 1, *(drawn.getrandbits(widths[name]) for _ in range(200)))
    ]
    return database.sql(ELSEWHERE, *map(list, zip(*ids, strict=True)))


def assert_right(found, times):
    wrong = [(layout, id) for (layout, id, right), value in zip(times, found, strict=True) if int(value // 1) != right]
    assert len(times) > 4000 and wrong == []


def test_the_formulas_are_right_in_python(times):
    assert_right([eval(FORMULAS[layout], {"id": id}) for layout, id, _ in times], times)


def test_the_formulas_are_right_in_sqlite(times):
    db = sqlite3.connect(":memory:")
    query = "SELECT {} FROM (SELECT ? AS id)"
    assert_right([db.execute(query.format(FORMULAS[layout]), (id,)).fetchone()[0] for layout, id, _ in times], times)


DUCKDB = """
import duckdb, json, sys
formulas, times = json.load(open(sys.argv[1]))
db, found = duckdb.connect(), []
db.execute("CREATE TABLE made (n INTEGER, layout TEXT, id BIGINT)")
db.executemany("INSERT INTO made VALUES (?, ?, ?)", [(n, layout, id) for n, (layout, id, _) in enumerate(times)])
for layout, formula in formulas.items():
    found += db.execute(f"SELECT n, {formula} FROM made WHERE layout = ?", [layout]).fetchall()
print(json.dumps([value for _, value in sorted(found)]))
"""


def test_the_formulas_are_right_in_duckdb(database, times, tmp_path):
    file = tmp_path / "times.json"
    file.write_text(json.dumps([FORMULAS, times]))
    assert_right(json.loads(database.python("python", "-c", DUCKDB, file)), times)


NODE = """
for (const [id, code] of JSON.parse(require("fs").readFileSync(process.argv[1]))) {
  console.log(String(new Function("id", `return ${code}`)(BigInt(id))));
}
"""


def in_javascript(code):
    return re.sub(r"\b\d+\b", r"\g<0>n", code)


def test_the_formulas_are_right_in_node(database, times, tmp_path):
    file = tmp_path / "times.json"
    file.write_text(json.dumps([[str(id), in_javascript(FORMULAS[layout])] for layout, id, _ in times]))
    found = database.node("-e", NODE, str(file)).split()
    assert_right(list(map(int, found)), times)


def test_a_spreadsheet_is_right_to_two_milliseconds_with_15_digits(times):
    """It keeps 15 digits of a double. Bits above the timestamp cannot be cut off."""
    wrong = []
    for layout, id, right in times:
        if id >= 0 and layout != "seata":
            code = re.sub(r"& \d+", "", FORMULAS[layout]).replace("id >>", "id / 2 **")
            # A spreadsheet shows the time of this layout to a second.
            slack = {"base64id": 1000, "weibo": 1000, "baidu": 1000, "sonyflake": 10, "sonyflake_v2": 10}.get(layout, 0) + 2
            if not -2 <= eval(code, {"id": float(f"{id:.15g}")}) - right <= slack:
                wrong.append((layout, id))
    assert wrong == []


@pytest.fixture
def one(database):
    """An ID, its milliseconds and its time as an ISO text."""
    ((id, at, text),) = database.sql("""
        SELECT id, extract(epoch FROM flake_timestamp(id)) * 1000,
               to_char(flake_timestamp(id) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')
        FROM flake_next('twitter') id""")
    return id, int(at), text


def test_the_expressions_for_times_are_right(database, one):
    id, at, text = one
    ((found,),) = sqlite3.connect(":memory:").execute(f"SELECT {EXPRESSIONS['SQLite']} FROM (SELECT ? AS id)", (id,))
    assert found == text
    code = f"""
from datetime import UTC, datetime
import duckdb, pandas as pd
id, frame = {id}, pd.DataFrame({{"id": [{id}]}})
for at in (duckdb.sql("SELECT {EXPRESSIONS["DuckDB"]} FROM (SELECT {id}::BIGINT AS id)").fetchall()[0][0],
           {EXPRESSIONS["Python"]}, {EXPRESSIONS["pandas"]}[0]):
    print(at.strftime("%Y-%m-%d %H:%M:%S.") + f"{{round(at.microsecond / 1000):03}}")"""
    assert database.python("python", "-c", code).splitlines() == [text] * 3
    shown = database.node("-e", f"const id = {id}n; console.log(({EXPRESSIONS['JavaScript']}).toISOString())")
    assert shown.strip() == text.replace(" ", "T") + "Z"
    cell = str(float(f"{id:.15g}"))
    spreadsheet = EXPRESSIONS["spreadsheets (not run)"].removeprefix("=").replace("A1", cell).replace("^", "**")
    assert abs((eval(spreadsheet) - 25569) * 86400000 - at) <= 2


def test_expressions_that_are_not_run_are_marked():
    run = {"DuckDB", "SQLite", "JavaScript", "Python", "pandas"}
    assert {name for name in EXPRESSIONS if "(not run)" not in name} == run and len(EXPRESSIONS) == 10
    assert len({*re.findall(r"\b1288834974657n?\b", " ".join(EXPRESSIONS.values()))}) == 2
