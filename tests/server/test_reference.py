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


KINDS = ["pg_proc", "pg_class", "pg_type", "pg_operator", "pg_cast", "pg_opclass", "pg_foreign_data_wrapper"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_object_has_a_comment(server, kind):
    objects = server.sql(f"""
        SELECT pg_describe_object(classid, objid, 0), obj_description(objid, '{kind}') FROM ({reference.MEMBERS}) m
        WHERE classid = '{kind}'::regclass AND NOT EXISTS (SELECT FROM pg_type WHERE oid = objid AND typelem <> 0)""")
    assert objects and [name for name, comment in objects if not comment] == []
