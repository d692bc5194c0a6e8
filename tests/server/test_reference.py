"""docs/reference says what the catalog says, of all functions and settings."""

import re

import pytest

import reference
from test_errors import PLAIN


@pytest.mark.parametrize("page", reference.PAGES, ids=lambda page: page.name)
def test_the_page_is_that_of_the_catalog(server, page):
    reference.check(server, page, [call for _, call, *_ in PLAIN])


def test_each_function_has_a_place(server):
    """One: a function that is new belongs to a task, or to those that are not for use."""
    functions = {name for name, in server.sql(f"SELECT DISTINCT proname FROM ({reference.FUNCTIONS}) f")}
    assert len(functions) > 50
    assert sorted(reference.named()) == sorted(functions)


def test_each_function_and_view_has_a_user(server):
    """The page says when somebody wants each view, and each function other than those that only EXPLAIN shows."""
    (page,) = [page.read_text() for page in reference.PAGES if page.name == "functions.md"]
    page = page.partition("\n## Shown by EXPLAIN\n")[0]
    wishes = re.search("^## When you want which\n(.*?)^## ", page, re.M | re.S)[1]
    called = {name for kind, names, *_ in reference.MARK.findall(page) if kind == "functions" for name in names.split()}
    of_views = f"SELECT relname FROM pg_class JOIN ({reference.MEMBERS}) m ON oid = objid AND relkind = 'v'"
    views = {name for name, in server.sql(of_views)}
    assert set(re.findall(r"`((?:flake|sno)_\w+)", wishes)) == called | views and len(views) > 3
