"""Everything in the README and in docs/ is executed.

A block of `sql` runs in one psql session for the file, and prints what the block of `text` behind it says: to the letter but for
numbers, times and the width of columns. A block of `ini` is what a server starts with, a block of `sh` names targets of make.
"""

import itertools
import re
import subprocess

import pytest

from conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
MARK = "----- end of block -----"


def blocks(page):
    return BLOCK.findall(page.read_text())


def normal(output):
    """What has to be equal whenever and wherever it is run."""
    output = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?([+-]\d\d)", "<time>", output)
    output = re.sub(r"\d+", "0", output)
    output = re.sub(r"-{2,}", "-", output)
    return [re.sub(r"\s+", " ", line).strip() for line in output.strip().splitlines()]


def expected_outputs(page):
    """The SQL blocks, each with the text block behind it if there is one."""
    found = blocks(page)
    for (language, sql), (following, text) in itertools.pairwise([*found, ("", "")]):
        if language == "sql":
            yield sql, text if following == "text" else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sql(servers, page):
    pairs = list(expected_outputs(page))
    assert pairs, "a page without an example"
    texts = sum(language == "text" for language, _ in blocks(page))
    assert texts == sum(text is not None for _, text in pairs), "output that belongs to no SQL"
    server = servers(extension=False)
    script = "SET timezone = 'UTC';\n" + "".join(f"{sql}\\echo {MARK}\n" for sql, _ in pairs)
    # Errors belong to the output.
    output = server.run("psql", "-X", "-q", input=script, stderr=subprocess.STDOUT).stdout
    outputs = output.split(MARK + "\n")
    assert len(outputs) == len(pairs) + 1
    for (sql, text), output in zip(pairs, outputs[:-1], strict=True):
        if text is None:
            assert "ERROR" not in output, f"{sql}\n{output}"
        else:
            assert normal(output) == normal(text), f"{sql}\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings(servers, page):
    for language, block in blocks(page):
        if language == "ini":
            server = servers(*(line.replace(" ", "") for line in block.splitlines() if line))
            assert server.value("SELECT flake_next('twitter')") > 0


def test_make_targets():
    commands = [
        line.split("#")[0].split()
        for page in PAGES for language, block in blocks(page) if language == "sh" for line in block.splitlines()
    ]  # fmt: skip
    assert ["make", "run"] in commands and ["make", "test"] in commands
    for command in commands:
        assert command[0] == "make", f"{command}: only make is known to this test"
        subprocess.run(["make", "-n", *command[1:]], cwd=ROOT, check=True, capture_output=True)


def test_every_function_and_setting_is_documented(server):
    """But for what operators, casts and the type itself are made of."""
    text = "".join(page.read_text() for page in PAGES)
    names = server.sql("""
        SELECT proname FROM pg_proc JOIN pg_depend ON objid = pg_proc.oid AND deptype = 'e' AND classid = 'pg_proc'::regclass
        WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')
          AND NOT EXISTS (SELECT FROM pg_operator WHERE oprcode = pg_proc.oid)
          AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = pg_proc.oid)
          AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc = pg_proc.oid)
          AND NOT EXISTS (SELECT FROM pg_type WHERE pg_proc.oid IN (typinput, typoutput, typsend, typreceive))
          AND NOT EXISTS (SELECT FROM pg_aggregate WHERE pg_proc.oid IN (aggtransfn, aggcombinefn))
        UNION SELECT name FROM pg_settings, (SELECT flake_next('twitter')) load WHERE name LIKE 'flake.%'""")
    assert len(names) >= 20
    assert [name for name, in names if name not in text] == []
