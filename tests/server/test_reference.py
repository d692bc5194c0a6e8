"""docs/reference agrees with the catalog on all functions and settings."""

import collections
import re

import pytest

import reference
from mistakes import PLAIN


@pytest.fixture(scope="module")
def server(servers):
    server = servers()
    server.sql("CREATE EXTENSION flake_sequences")
    return server


@pytest.mark.parametrize("page", reference.PAGES, ids=lambda page: page.name)
def test_the_page_is_that_of_the_catalog(server, page):
    reference.check(server, page, [call for _, call, *_ in PLAIN])


@pytest.mark.matrix
def test_the_introduction_names_errors_of_many_functions(server):
    """Other errors are named with each function."""
    (page,) = [page for page in reference.PAGES if page.name == "functions.md"]
    named = re.findall(r"^\| (.* \(\w{5}\)) \| ", reference.introduction(page), re.M)
    with server.connect() as db:
        catalog = reference.Catalog(db, [call for _, call, *_ in PLAIN])
    raised = collections.Counter(error for name in catalog.errors for error in catalog.raised(name))
    assert len(named) > 2
    assert [error for error in named if raised[error] < 4] == []


def test_each_function_has_a_place(server):
    """A new function belongs to a task, or to the functions that users do not call."""
    others = "pronamespace <> 'flake_plan'::regnamespace"
    functions = {name for name, in server.sql(f"SELECT DISTINCT proname FROM ({reference.FUNCTIONS}) f WHERE {others}")}
    assert len(functions) > 50
    assert sorted(reference.named()) == sorted(functions)


def test_each_function_and_view_has_a_user(server):
    """The page says for whom each view is, and each function except for those that only EXPLAIN shows."""
    page, sequences = (page.read_text() for page in reference.PAGES if page.name in ("functions.md", "sequences.md"))
    page = page.partition("\n## Shown by EXPLAIN\n")[0]
    wishes = re.search("^## Which function to use\n(.*?)^## ", page, re.M | re.S)[1]
    marks = reference.MARK.findall(page) + reference.MARK.findall(sequences)
    named = {name for kind, names, *_ in marks if kind == "functions" for name in names.split()}
    # The others have names of PostgreSQL's.
    called = {name for name in named if name.startswith(("flake_", "sno_"))}
    of_views = f"SELECT relname FROM pg_class JOIN ({reference.MEMBERS}) m ON oid = objid AND relkind = 'v'"
    views = {name for name, in server.sql(of_views)}
    assert set(re.findall(r"`((?:flake|sno)_\w+)", wishes)) == called | views and len(views) > 3
