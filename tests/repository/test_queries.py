"""The queries of the library run with the caller's search_path, so each name in them is qualified. rows() sets another path: its
queries need no schemas."""

import re

import pytest

from conftest import ROOT

STRINGS = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
# Texts of errors are for people, and end with a period.
FILES = [file for file in (ROOT / "src").rglob("*.rs") if not {"core", "error"} & set(file.relative_to(ROOT).parts)]
# A constant that rows() alone uses, in any file.
CONSTANT = re.compile(r'const (\w+): &str =\s*"((?:[^"\\]|\\.)*)";', re.DOTALL)


def code_of(file):
    return re.sub(r"(?m)^\s*//.*$", "", file.read_text())


def is_of_rows(name, file):
    """Whether each use of a constant is in an argument of rows(), directly or as a part of a text."""
    files = [other for other in FILES if other == file or re.search(rf"\buse .*\b{name}\b", other.read_text())]
    # Of texts, only what they have of variables.
    codes = [STRINGS.sub(lambda text: "".join(re.findall(r"\{\w+\}", text[1])), code_of(other)) for other in files]
    uses = [line for code in codes for line in code.splitlines() if re.search(rf"\b{name}\b", line)]
    uses = [line for line in uses if not re.search(r"\b(const|use)\b", line)]
    return uses and all(re.search(rf"\brows\(|let query = format!.*\b{name}\b", line) for line in uses)


def queries():
    for file in sorted(FILES):
        code = code_of(file)
        with_path = {text for name, text in CONSTANT.findall(code) if is_of_rows(name, file)}
        for text in sorted(set(STRINGS.findall(code)) - with_path):
            if re.search(r"\b(SELECT|UPDATE|INSERT|DELETE)\b", text) and not text.endswith("."):
                yield pytest.param(text, id=f"{file.relative_to(ROOT)}: {' '.join(text.split())[:40]}")


def unqualified(query):
    """Functions, types, relations and operators without a schema. Names that a query gives itself are not meant."""
    query = re.sub(r"--.*|'[^']*'", "''", query)
    own = set().union(*re.findall(r"(\w+)(?:\([\w, ]*\))? AS \(|\) (?:AS |WITH ORDINALITY )?(\w+)", query))
    query = re.sub(r"OPERATOR\((pg_catalog|\{\w+\})\.[^)]+\)|\bSET \w+ =", ",", query)
    relations = r"\b(?:FROM|JOIN|UPDATE|INTO) ([a-z_]\w*)(?![\w.(])"
    names = re.findall(rf"(?<![\w.}}])([a-z_]\w*)\(|::([a-z_]\w*)(?![\w.])|{relations}", query)
    operators = re.findall(r"[\w)\]}] +([-+*/<>=~!@#%^&|?]+) +[\w(\[{$']", query)
    return {name for found in names for name in found if name} - own | set(operators)


@pytest.mark.parametrize("query", queries())
def test_names_have_their_schema(query):
    assert unqualified(query) == set()


def test_a_name_without_a_schema_is_found():
    query = "SELECT count(*) FROM t JOIN pg_class c ON c.oid = t.id WHERE t.x OPERATOR(pg_catalog.<) '(a)'::text"
    assert unqualified(query) == {"count", "t", "pg_class", "=", "text"}
    query = "WITH below(oid) AS (SELECT $1) SELECT pg_catalog.max(oid)::pg_catalog.int8 FROM below, pg_catalog.unnest($2) u(v)"
    assert unqualified(query) == set()


def test_rows_sets_the_path():
    source = (ROOT / "src/functions/statements.rs").read_text()
    rows = source[source.index("pub fn rows") :].partition("\n}\n")[0]
    assert "qualified(|| connected(read))" in rows
    assert is_of_rows("MEMBERS", ROOT / "src/functions/convert_table/key.rs")
    assert not is_of_rows("CHECK_MISSING", ROOT / "src/functions/convert_table/key.rs")
