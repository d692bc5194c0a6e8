"""The queries of the library, which run with the caller's search_path: each name in them is qualified."""

import re

import pytest

from conftest import ROOT

STRINGS = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
# Texts of errors are for people, and end with a period.
FILES = [file for file in (ROOT / "src").rglob("*.rs") if not {"core", "error"} & set(file.relative_to(ROOT).parts)]
# A WITH query that has its name in another string.
ELSEWHERE = {"members"}


def queries():
    for file in sorted(FILES):
        code = re.sub(r"(?m)^\s*//.*$", "", file.read_text())
        for text in STRINGS.findall(code):
            if re.search(r"\b(SELECT|UPDATE|INSERT|DELETE)\b", text) and not text.endswith("."):
                yield pytest.param(text, id=f"{file.relative_to(ROOT)}: {' '.join(text.split())[:40]}")


def unqualified(query):
    """Functions, types, relations and operators without a schema. Names that a query gives itself are not meant."""
    query = re.sub(r"--.*|'[^']*'", "''", query)
    own = ELSEWHERE.union(*re.findall(r"(\w+)(?:\([\w, ]*\))? AS \(|\) (?:AS |WITH ORDINALITY )?(\w+)", query))
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
