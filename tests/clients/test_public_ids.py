"""The code for frameworks in docs/how-to/public-ids.md: it finds a row by its public ID, and finds no row by anything else."""

import json

import pytest

from conftest import ROOT
from database import database, empty_database, server_of_clients
from pages import recipe

__all__ = ["database", "empty_database", "server_of_clients"]
PAGE = ROOT / "docs/how-to/public-ids.md"
EXPRESS = """
import express from "express";
import pg from "pg";
const app = express();
const pool = new pg.Pool();
{lines}
const server = app.listen(0, "127.0.0.1", async () => {{
  for (const id of process.argv.slice(2)) {{
    const response = await fetch(`http://127.0.0.1:${{server.address().port}}/users/${{id}}`);
    console.log(response.status, await response.text());
  }}
  server.close();
  await pool.end();
}});
"""
DJANGO = """
import os, sys
import django
from django.conf import settings
from django.db import models
from django.http import HttpRequest, QueryDict
database = {{"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"]}}
settings.configure(DATABASES={{"default": database | {{"HOST": os.environ["PGHOST"]}}}})
django.setup()
class User(models.Model):
    id = models.BigIntegerField(primary_key=True)
    name = models.TextField()
    class Meta:
        app_label, db_table = "users", "users"
{functions}
def find(request):
    return {query}
for id in sys.argv[1:]:
    request = HttpRequest()
    request.GET = QueryDict(f"id={{id}}")
    try:
        user = find(request)
        print(user.public_id, user.name)
    except User.DoesNotExist:
        print("none")
"""


@pytest.fixture
def users(database):
    """The database, the public ID of a user, and texts that are not public IDs of users."""
    database.sql("CREATE TABLE users (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), name text)")
    database.sql("SELECT flake_create_key('usr', 'twitter'), flake_create_key('ord', 'twitter')")
    ((shown, *others),) = database.sql("""
        WITH made AS (INSERT INTO users (name) VALUES ('tea') RETURNING id)
        SELECT flake_seal(id, 'usr'), flake_seal(id, 'ord'), flake_seal(id + 1, 'usr'), id::text FROM made""")
    return database, shown, [*others, "tea"]


def lines_of(language):
    (lines,) = recipe(PAGE, "Clients", language)
    return lines


def test_express_finds_a_row_by_its_public_id_only(users):
    database, shown, others = users
    program = database.node_directory / "public_ids.mjs"
    program.write_text(EXPRESS.format(lines=lines_of("js")))
    first, *rest = database.node(program.name, shown, *others).splitlines()
    status, answer = first.split(" ", 1)
    assert (status, json.loads(answer)) == ("200", {"id": shown, "name": "tea"})
    assert rest == ["404 Not Found"] * len(others)


def test_django_finds_a_row_by_its_public_id_only(users, tmp_path):
    database, shown, others = users
    functions, query = lines_of("python").rstrip().rsplit("\n", 1)
    program = tmp_path / "public_ids.py"
    program.write_text(DJANGO.format(functions=functions, query=query))
    printed = database.python("python", program, shown, *others)
    assert printed.splitlines() == [f"{shown} tea", *["none"] * len(others)]
