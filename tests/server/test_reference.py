"""docs/reference says what the catalog says, of all functions and settings."""

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
