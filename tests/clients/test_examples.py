"""The programs in examples/ do what their comments say."""

import pathlib
import re

import pytest

from database import EXAMPLES, database, empty_database, server_of_clients

__all__ = ["database", "empty_database", "server_of_clients"]
ID, TIME = r"\d{19}", r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00:00"
REFUSED = re.escape("22003 Check that the ID was made with this layout.")


def check(printed, *expected):
    lines = printed.splitlines()
    assert len(lines) == len(expected) and all(map(re.fullmatch, expected, lines)), printed


def test_the_example_for_psycopg_runs(database):
    printed = database.python("python", "with_psycopg.py")
    check(printed, f"{ID} tea {TIME}", "True True", r"\(2000,\)", REFUSED)
    assert database.sql("SELECT count(*), count(DISTINCT id) FROM orders") == [(3001, 3001)]


def test_the_example_for_asyncpg_runs(database):
    printed = database.python("python", "with_asyncpg.py")
    check(printed, f"{ID} tea {TIME}", "True True", "1000", "6vv9gn2222222222", REFUSED)


def test_the_example_for_sqlalchemy_runs(empty_database):
    empty_database.python("sqlalchemy", "-m", "alembic", "upgrade", "head")
    check(empty_database.python("sqlalchemy", "use_shop.py"), "True", f"{ID} cup 0", f"[2-9a-x]{{16}} {TIME}")
    assert empty_database.inserts("orders") == 1


def test_the_example_for_django_runs(empty_database):
    empty_database.python("django", "-m", "django", "migrate", "--verbosity", "0")
    check(empty_database.python("django", "use_shop.py"), f"{ID} 1000 1000", "True", "1000", f"{ID} 1 True", "True")
    assert empty_database.inserts("shop_order") == 1


@pytest.mark.parametrize(
    "program, expected",
    [
        ("with_pg.mjs", ["string 1000", "bigint true true", REFUSED]),
        ("with_postgres.mjs", ["string 1000", "bigint true true", REFUSED]),
        ("with_si.mjs", ["number 1000 true", "number tea"]),
        ("rounded.mjs", ["2123943899640725500", "Do not know how to serialize a BigInt"]),
        ("with_knex.mjs", ["string 1000", "true", REFUSED]),
        ("with_kysely.mjs", ["string 1000", "true", REFUSED]),
        ("with_typeorm.mjs", ["string cup 7", "0", REFUSED]),
    ],
)
def test_the_examples_for_node_run(database, program, expected):
    check(database.node(program), *expected)
    # TypeORM needs another statement for the single object.
    assert database.inserts("orders") == {"rounded.mjs": 0, "with_typeorm.mjs": 2, "with_si.mjs": 2}.get(program, 1)


def test_the_example_for_drizzle_runs(empty_database):
    empty_database.sql("CREATE SCHEMA flake")
    empty_database.sql("CREATE EXTENSION flake SCHEMA flake")
    empty_database.drizzle_kit("push")
    check(empty_database.node("with_drizzle.mjs"), "bigint cup 0", "true true", REFUSED)
    assert empty_database.inserts("orders") == 1


@pytest.mark.parametrize(
    "program, expected",
    [("with_tokio_postgres", ["true", "1000", REFUSED]), ("with_sqlx", ["true true", "1000", REFUSED])],
)
def test_the_example_for_rust_runs(database, program, expected):
    check(database.rust(program), *expected)


@pytest.mark.parametrize(
    "program, expected",
    [
        ("java/WithJdbc.java", ["1000", REFUSED]),
        ("go/with_pq.go", ["1000", REFUSED]),
        ("go/with_pgx.go", ["1000 <nil> <nil>", "true", REFUSED]),
        ("ruby/with_active_record.rb", [f"{ID} tea", "true", REFUSED]),
        ("php/with_pdo.php", ["integer tea", "in order", REFUSED]),
    ],
)
def test_the_examples_for_debians_clients_run(database, program, expected):
    check(database.debian(EXAMPLES / program), *expected)
    assert database.inserts("orders") <= 10


def test_all_programs_are_run_by_a_test():
    names = {file.name.removesuffix(".rs") for file in EXAMPLES.rglob("*") if file.name.lower().startswith("with")}
    text = pathlib.Path(__file__).read_text()
    assert [name for name in names if name not in text] == []
