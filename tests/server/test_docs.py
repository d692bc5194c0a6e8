"""All code in the README and in docs/ is executed, and the pages are complete.

All `sql` blocks of a page run in one psql session. Each prints what the following `text` block shows, except for numbers, times
and column widths. An `ini` block has settings that a server starts with. An `sh` block contains make targets; a `shell` block
is for other machines.
"""

import itertools
import re
import subprocess

import psycopg
import pytest

import arguments
from conftest import LAYOUTS, LIKE, ROOT
from pages import PAGES, blocks, compare, named, normal, recipe
from session_kinds import other_sessions, without_names

# Pages with several servers in a section; test_runbook.py and tests/engines execute them.
OF_SEVERAL_SERVERS = [ROOT / "docs/how-to" / name for name in ("runbook.md", "logical-replication.md", "shard.md")]
# Pages for operators, who have rights that owners of tables lack.
OF_OPERATORS = [
    ROOT / "docs" / name
    for name in (
        "explanation/guarantee.md",
        "how-to/adopt.md",
        "how-to/applications.md",
        "how-to/managed.md",
        "how-to/managed-tables.md",
        "how-to/monitor.md",
        "how-to/other-applications.md",
        "reference/settings.md",
    )
]
IN_A_SESSION = [
    page
    for page in PAGES
    if page not in OF_SEVERAL_SERVERS and {language for language, _ in blocks(page)} - {"shell"}
]
IN_EVERY_SESSION = [page for page in IN_A_SESSION if page not in OF_OPERATORS]
MARK = "----- end of block -----"


def expected_outputs(page):
    """Returns the SQL blocks, each with the text block after it if there is one."""
    found = blocks(page)
    for (language, sql), (following, text) in itertools.pairwise([*found, ("", "")]):
        if language == "sql":
            yield sql, text if following == "text" else None


@pytest.mark.parametrize("page", IN_A_SESSION, ids=named)
def test_sql_prints_what_the_pages_show(servers, page):
    pairs = list(expected_outputs(page))
    assert pairs, "a page whose examples are not executed"
    texts = sum(language == "text" for language, _ in blocks(page))
    assert texts == sum(text is not None for _, text in pairs), "output that belongs to no SQL"
    server = servers(extension=False)
    outputs = pasted(server, [f"SET timezone = 'UTC';\n{pairs[0][0]}", *(sql for sql, _ in pairs[1:])])
    for (sql, text), output in zip(pairs, outputs, strict=True):
        compare(page, sql, text, output)


def pasted(server, blocks):
    """Runs the blocks in one psql session. Returns their outputs with errors."""
    script = "".join(f"{sql}\\echo {MARK}\n" for sql in blocks)
    outputs = server.run("psql", "-X", "-q", input=script, stderr=subprocess.STDOUT).stdout.split(MARK + "\n")
    assert len(outputs) == len(blocks) + 1
    return outputs[:-1]


@pytest.mark.matrix
@other_sessions
@pytest.mark.parametrize("page", IN_EVERY_SESSION, ids=named)
def test_sql_prints_the_same_in_other_sessions(server, page, session):
    """Blocks for owners of tables print the same in such sessions."""
    pairs = list(expected_outputs(page))
    outputs = pasted(session.of(server), [session.named(sql) for sql, _ in pairs])
    for (sql, text), output in zip(pairs, outputs, strict=True):
        told, found = (normal(without_names(said or "")) for said in (text, output))
        assert found == told if text else "error" not in without_names(output), f"{sql}\n{output}\ninstead of\n{text}"


def test_new_errors_are_accepted_only_where_that_is_said(tmp_path, monkeypatch):
    page, text = tmp_path / "page.md", "ERROR:  division by zero\n"
    page.write_text(f"```text\n{text}```\n")
    monkeypatch.setenv("FLAKE_ACCEPT", "output")
    with pytest.raises(AssertionError, match="scripts/test accept --errors"):
        compare(page, "", text, f"{text}ERROR:  function flake_forgotten() does not exist\n")
    assert page.read_text() == f"```text\n{text}```\n"
    compare(page, "", text, "a division\n")
    assert page.read_text() == "```text\na division\n```\n"
    monkeypatch.setenv("FLAKE_ACCEPT", "errors")
    compare(page, "", "a division\n", text)
    assert page.read_text() == f"```text\n{text}```\n"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_settings_of_the_pages_are_accepted(servers, page):
    for settings in ini(page):
        assert servers(*settings).value("SELECT flake_next('twitter')") > 0


def ini(page):
    """Returns the settings of each `ini` block."""
    found = [block for language, block in blocks(page) if language == "ini"]
    return [[line.replace(" ", "") for line in block.splitlines() if line] for block in found]


def quoted(text):
    return re.findall(r"`(\w+)`", text)


def first_column(page, head):
    """Returns the names in the first column of the table with this head."""
    rows = page[page.index(head) :].split("\n\n")[0].splitlines()
    return [name for row in rows[2:] for name in quoted(row.split("|")[1])]


def test_every_layout_is_documented_and_tested(server):
    layouts = server.sql("""
        SELECT name, generates, text_form, generates AND ends_at > now() FROM flake_layouts WHERE source <> 'custom'""")
    page, forms = ((ROOT / "docs/reference" / name).read_text() for name in ("layouts.md", "text-forms.md"))
    read_only = re.split(r"\.\s", page.split(" are read-only")[0])[-1]
    named = {
        "the table in docs/reference/layouts.md": first_column(page, "| layout | description |"),
        "the list of read-only layouts in docs/reference/layouts.md": quoted(read_only),
        "LAYOUTS and LIKE in tests/server/conftest.py": [*LAYOUTS, *LIKE],
    }
    belonging = {
        "the table in docs/reference/layouts.md": {name for name, *_ in layouts},
        "the list of read-only layouts in docs/reference/layouts.md": {name for name, generates, *_ in layouts if not generates},
        "LAYOUTS and LIKE in tests/server/conftest.py": {name for name, _, _, makes_now in layouts if makes_now},
    }
    for form, built_in in re.findall(r"^\| `(\w+)` \|.*\| (.*)\|$", forms, re.M):
        if form != "decimal":
            named[f"the row {form} in docs/reference/text-forms.md"] = quoted(built_in)
            belonging[f"the row {form} in docs/reference/text-forms.md"] = {name for name, _, of, _ in layouts if of == form}
    # The error for an unknown form lists all forms.
    misspelt = """SELECT flake_create_layout('x', '{"like": "si", "text": "none"}')"""
    refused = pytest.raises(psycopg.Error, server.sql, misspelt).value
    known = set(quoted(refused.diag.message_primary)) - {"none"}
    for place, found in [
        ("the table in docs/reference/text-forms.md", re.findall(r"^\| `(\w+)` \|", forms, re.M)),
        ("forms in tests/helpers/arguments.py", arguments.FORMS),
    ]:
        named[place], belonging[place] = found, known
    wrong = {
        place: {"missing": sorted(belonging[place] - set(found)), "too many": sorted(set(found) - belonging[place])}
        for place, found in named.items()
        if belonging[place] != set(found)
    }
    assert wrong == {}
    assert set(LIKE.values()) <= set(LAYOUTS)


def test_the_queries_for_a_report_of_a_wrong_id_run(server):
    """The page's queries run."""
    queries, = recipe(ROOT / "SECURITY.md", "A wrong ID")
    with server.connect() as db:
        db.execute("SELECT flake_next('twitter')")
        for query in queries.removesuffix(";\n").split(";\n"):
            assert db.execute(query).fetchall(), query


def test_every_function_and_setting_is_documented(server):
    """Functions that implement operators, casts and the type are left out."""
    text = "".join(page.read_text() for page in PAGES)
    names = server.sql("""
        SELECT proname FROM pg_proc JOIN pg_depend ON objid = pg_proc.oid AND deptype = 'e' AND classid = 'pg_proc'::regclass
        WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')
          AND NOT EXISTS (SELECT FROM pg_operator WHERE oprcode = pg_proc.oid)
          AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = pg_proc.oid)
          AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc = pg_proc.oid)
          AND NOT EXISTS (SELECT FROM pg_type WHERE pg_proc.oid IN (typinput, typoutput, typsend, typreceive, typanalyze))
          AND NOT EXISTS (SELECT FROM pg_aggregate WHERE pg_proc.oid IN (aggtransfn, aggcombinefn))
        UNION SELECT name FROM pg_settings, (SELECT flake_next('twitter')) load WHERE name LIKE 'flake.%'""")
    assert len(names) >= 20
    assert [name for name, in names if name not in text] == []
