"""The functions of flake_sequences beside PostgreSQL's own: what an application sees that reads its keys by them."""

import pytest

import semantics
from adopting import LARGE, adopt


@pytest.fixture(scope="module")
def server(servers):
    server = servers()
    server.sql("CREATE ROLE app")
    return server


def database(server, name, is_adopted, is_routed=False):
    """Makes a database with the tables, and returns the outcomes of all lines in a session of it."""
    server.sql(f"CREATE DATABASE {name}")
    with server.connect(dbname=name) as db:
        db.execute(f"CREATE EXTENSION flake; CREATE EXTENSION flake_sequences; {semantics.TABLES}")
        if is_adopted:
            for relation in ("a", "b", "h"):
                adopt(db, relation)
        if is_routed:
            db.execute("CALL flake_route('public')")
    with server.session(dbname=name) as db:
        return semantics.outcomes(db)


@pytest.fixture(scope="module")
def native(server):
    return database(server, "native", False)


# Each line that differs, and its outcome after adoption: an error, or what only an ID can be.
WANTED = {
    # A function with a search_path of its own calls PostgreSQL's nextval.
    "SELECT before_pathed_next() IS NOT NULL": "2200H",
    # lastval() asks for the privilege on a sequence of the extension, which every role has.
    "SELECT lastval() IS NOT NULL": [(True,)],
    # PostgreSQL calls it an internal error, XX000.
    "SELECT nextval(0::oid::regclass)": "42P01",
    # The numbers do not begin anew, so no key is made twice.
    "INSERT INTO a (v) VALUES (1) RETURNING id = lastval()": [(True,)],
}
# PostgreSQL forgets the last number with its sequence.
AFTER_DROP = ("SELECT lastval()", "55000")
# No number is left; out of the range; currval was not called; the transaction had an error before.
ERRORS = ["2200H", "22003", "55000", "25P02"]


def test_an_application_sees_no_difference_but_these(server, native):
    *different, (line, before, last) = semantics.differences(native, database(server, "adopted", True, True))
    assert {line: after for line, _, after in different} == WANTED and len(different) == len(WANTED)
    assert (line, before) == AFTER_DROP and last[0][0] > LARGE


def test_without_the_path_there_are_errors_and_no_small_numbers(server, native):
    """lastval() is right all the same, but after a statement with more than 64 IDs that could not read it."""
    found = database(server, "pathless", True)
    different = semantics.differences(native, found)
    wrong = [(line, after) for line, _, after in different[:-1] if after not in ERRORS and after != WANTED.get(line)]
    assert wrong == [("SELECT lastval() = max(id) FROM a", [(False,)])]
    line, before, last = different[-1]
    assert (line, before) == AFTER_DROP and last[0][0] > LARGE
    numbers = [number for _, result in found if isinstance(result, list) for row in result for number in row]
    assert [number for number in numbers if type(number) is int and number < LARGE] == []
