"""docs/how-to/rounded.md: tools round IDs, and the lines of the page keep them."""

import json
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from database import database, server_of_clients
from pages import recipe

__all__ = ["database", "server_of_clients"]
PAGE = ROOT / "docs/how-to/rounded.md"
CONNECT = """
import atexit, json, sys, sqlalchemy
db = sqlalchemy.create_engine("postgresql+psycopg://", poolclass=sqlalchemy.NullPool).connect()
atexit.register(db.close)
"""
# One that neighbours of a double surround.
ID = 2123943899640725505


# No line of the page may warn. Debian's pytz, which pandas imports if it is there, warns of its own code.
STRICT = "import pandas, warnings\nwarnings.simplefilter('error')\n"


def run_lines(database, code, *arguments):
    return database.python("python", "-c", STRICT + code, *arguments)


@pytest.fixture
def crates(database):
    """The tables of the page, which one of the crates belongs to nobody in."""
    database.sql("\n".join(recipe(PAGE, "Where IDs are rounded, cut or compared wrongly")).replace("CREATE EXTENSION flake;", ""))
    return database


def joins(frame):
    """Code that prints how many rows a join has, and how many of these are right."""
    return f'pairs = {frame}\nprint(len(pairs), sum(pairs.id_y.astype("int64").astype(str) == pairs.farm_text))'


def test_a_data_frame_joins_wrong_rows_until_it_reads_by_the_page(crates):
    wrong, right = recipe(PAGE, "Data frames", "python")
    texts = 'db.exec_driver_sql("CREATE TEMP VIEW crates AS SELECT *, farm::text AS farm_text FROM public.crates")\n'
    printed = run_lines(crates, CONNECT + texts + wrong + joins("wrong") + "\n" + right + joins("right"))
    (wrong_rows, right_ones), kept = [tuple(map(int, line.split())) for line in printed.splitlines()]
    # 201 pairs would be right; each farm has one crate.
    assert wrong_rows > 2 * 200 and right_ones < wrong_rows
    assert kept == (200, 200)


def test_polars_keeps_nullable_keys(crates):
    code = CONNECT + 'import polars\nread = polars.read_database("SELECT farm FROM crates", db)\n'
    printed = json.loads(run_lines(crates, code + 'print(json.dumps(sorted(read["farm"].drop_nulls().to_list())))'))
    assert printed == [id for id, in crates.sql("SELECT id FROM farms ORDER BY id")]


def test_a_csv_file_is_read_with_all_digits_if_the_type_is_named(crates, tmp_path):
    file = tmp_path / "crates.csv"
    file.write_text(f"id,farm\n1,{ID}\n2,\n")
    assert "`pd.read_csv(file, dtype={\"farm\": \"Int64\"})`" in PAGE.read_text()
    code = """import pandas as pd, sys
file = sys.argv[1]
print(int(pd.read_csv(file).farm[0]), pd.read_csv(file, dtype={"farm": "Int64"}).farm[0])"""
    without, named = map(int, run_lines(crates, code, file).split())
    assert without != ID and named == ID


def test_numpy_rounds_a_list_with_null_or_a_fraction(database):
    first = f"int(n.array([{ID}, other], float if other is None else None)[0])"
    code = f"import numpy as n\nprint(*({first} for other in (None, 0.5, 1)))"
    null, fraction, whole = map(int, run_lines(database, code).split())
    assert null != ID and fraction != ID and whole == ID


def test_a_spreadsheet_gets_texts(crates, tmp_path):
    _, right = recipe(PAGE, "Data frames", "python")
    (line,) = recipe(PAGE, "Spreadsheets", "python")
    read = """
import openpyxl
rows = list(openpyxl.load_workbook(file).active.iter_rows(min_row=2, values_only=True))
print(json.dumps([[id, farm] for id, farm, *_ in rows]))"""
    farms = 'import pandas as pd\nfarms = pd.read_sql("SELECT * FROM farms", db)\nfile = sys.argv[1]\n'
    printed = json.loads(run_lines(crates, CONNECT + farms + right + line + read, tmp_path / "crates.xlsx"))
    assert sorted(printed, key=str) == sorted(map(list, crates.sql("SELECT id::text, farm::text FROM crates")), key=str)


def test_csv_readers_turn_texts_into_numbers(database, tmp_path):
    """A text of hex that has digits only loses its zeros, and one with an e is a double."""
    assert "`0123456789012345` and `12e4567890123456`" in PAGE.read_text()
    file = tmp_path / "texts.csv"
    code = "import pandas, sys\nprint(*pandas.read_csv(sys.argv[1]).id, *pandas.read_csv(sys.argv[1], dtype=str).id)"
    for text in ("0123456789012345", "12e4567890123456"):
        file.write_text(f"id\n{text}\n")
        found, as_text = run_lines(database, code, file).split()
        assert found != text and as_text == text


def output(*command, input=None):
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(command, check=True, capture_output=True, text=True, input=input).stdout.strip()


def test_programs_with_doubles_round(database):
    """Node, awk, and jq before 1.7."""
    assert int(float(ID)) != ID
    assert int(output("awk", f"BEGIN {{ printf \"%.0f\", {ID} + 0 }}")) == int(float(ID))
    assert int(database.node("-e", f"console.log(String(BigInt(Number('{ID}'))))")) == int(float(ID))
    assert int(database.node("-e", f"console.log(String(BigInt('{ID}')))")) == ID
    document = json.dumps({"id": ID, "text": str(ID)})
    version = tuple(map(int, output("jq", "--version").removeprefix("jq-").split(".")[:2]))
    assert (int(output("jq", ".id", input=document)) == ID) == (version >= (1, 7))
    assert int(output("jq", "-r", ".text", input=document)) == ID


def test_a_left_join_makes_doubles_of_keys(database):
    code = f"""import pandas as pd
orders = pd.DataFrame({{"farm": [{ID}, 7]}})
joined = orders.merge(pd.DataFrame({{"id": [{ID}]}}), how="left", left_on="farm", right_on="id")
print(joined.id.dtype, int(joined.id[0]))"""
    assert run_lines(database, code).split() == ["float64", str(int(float(ID)))]


def test_percentile_cont_rounds_and_percentile_disc_does_not(database):
    query = "SELECT (percentile_{}(0) WITHIN GROUP (ORDER BY id))::bigint FROM (VALUES (%s::bigint)) made (id)"
    assert database.sql(query.format("cont"), ID) == [(int(float(ID)),)]
    assert database.sql(query.format("disc"), ID) == [(ID,)]


def test_ids_of_si_are_exact_and_have_16_digits(database):
    """So doubles keep them, and 15 digits do not."""
    ids = [id for id, in database.sql("SELECT flake_batch('si', 200)")]
    assert all(int(float(id)) == id for id in ids)
    assert all(len(str(id)) == 16 for id in ids)
    assert sum(int(float(f"{id:.15g}")) == id for id in ids) < 40
    assert json.loads(database.node("-e", f"console.log(JSON.stringify(JSON.parse('{ids}')))")) == ids


def test_all_lines_of_python_on_the_page_are_run():
    assert sys.modules[__name__].__doc__
    assert [len(recipe(PAGE, heading, "python")) for heading in ("Data frames", "Spreadsheets")] == [2, 1]
    assert PAGE.read_text().count("```python") == 3
