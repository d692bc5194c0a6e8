"""The code of docs/how-to/public-ids-in-frameworks.md: it finds a row by its public ID, and finds no row by anything else."""

import json
import re

import pytest

from conftest import ROOT
from database import database, empty_database, server_of_clients
from pages import recipe

__all__ = ["database", "empty_database", "server_of_clients"]
PAGE = ROOT / "docs/how-to/public-ids-in-frameworks.md"
EXPRESS = """
import express from "{express}";
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
from django.http import JsonResponse
from django.shortcuts import get_object_or_404
from django.test import Client
from django.urls import path, reverse
database = {{"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"], "USER": os.environ["PGUSER"]}}
settings.configure(
    DATABASES={{"default": database | {{"HOST": os.environ["PGHOST"]}}}}, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["testserver"])
django.setup()
{lines}
class User(models.Model):
    id = models.BigIntegerField(primary_key=True)
    name = models.TextField()
    objects = PublicManager()
    class Meta:
        app_label, db_table = "users", "users"
def show(request, user):
    found = get_object_or_404(User, id=opened(user))
    return JsonResponse({{"id": found.public_id, "name": found.name}})
urlpatterns = [path("users/<public_id:user>/", show, name="user")]
for id in sys.argv[1:]:
    response = Client().get(f"/users/{{id}}/")
    print(response.status_code, response.content.decode().replace("\\n", " ")[:80])
print(reverse("user", args=[sys.argv[1]]))
"""
SQLALCHEMY = """
import sys
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
with Session(create_engine("postgresql+psycopg://")) as session:
    for text in sys.argv[1:]:
        user = find_user(session, text)
        print(user and f"{user.public_id} {user.name}")
"""
RAILS = """
require "active_record"
ActiveRecord::Base.establish_connection(adapter: "postgresql")
{lines}
ARGV.each do |text|
  user = User.find_sealed(text)
  puts "#{{user.public_id}} #{{user.name}}"
rescue ActiveRecord::RecordNotFound
  puts "none"
end
puts User.with_public_id.count(:all)
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


def lines_of(heading, language):
    (lines,) = recipe(PAGE, heading, language)
    return lines


@pytest.mark.parametrize("express", ["express", "express-4"])
def test_express_finds_a_row_by_its_public_id_only(users, express):
    """A zero byte in the path neither finds a row nor ends the process."""
    database, shown, others = users
    program = database.node_directory / "public_ids.mjs"
    program.write_text(EXPRESS.format(lines=lines_of("Express", "js"), express=express))
    printed = database.node(program.name, shown, "%00", *others).splitlines()
    lines = [line for line in printed if line[:4] in ("200 ", "404 ", "500 ")]
    status, answer = lines[0].split(" ", 1)
    assert (status, json.loads(answer)) == ("200", {"id": shown, "name": "tea"})
    assert lines[1].startswith("500 ") and lines[2:] == ["404 Not Found"] * len(others)


def test_express_4_ends_without_the_page_s_catch(users):
    database, shown, _ = users
    lines = lines_of("Express", "js").replace("next(error);", "throw error;")
    program = database.node_directory / "public_ids.mjs"
    program.write_text(EXPRESS.format(lines=lines, express="express-4"))
    assert "invalid byte sequence" in database.node(program.name, shown, "%00", shown, succeeds=False)


def test_django_finds_a_row_by_its_public_id_only(users, tmp_path):
    database, shown, others = users
    program = tmp_path / "public_ids.py"
    program.write_text(DJANGO.format(lines=lines_of("Django", "python")))
    first, *rest, path = [line for line in database.python("python", program, shown, *others).splitlines() if line[:1] in "24/"]
    assert json.loads(first.removeprefix("200 ")) == {"id": shown, "name": "tea"}
    assert [line[:3] for line in rest] == ["404"] * len(others) and path == f"/users/{shown}/"


def test_sqlalchemy_finds_a_row_by_its_public_id_only(users):
    database, shown, others = users
    printed = database.python("python", "-c", lines_of("SQLAlchemy", "python") + SQLALCHEMY, shown, *others)
    assert printed.splitlines() == [f"{shown} tea", *["None"] * len(others)]


def test_rails_finds_a_row_by_its_public_id_only(users, tmp_path):
    database, shown, others = users
    program = tmp_path / "public_ids.rb"
    program.write_text(RAILS.format(lines=lines_of("Rails", "ruby")))
    assert database.debian(program, shown, *others).splitlines() == [f"{shown} tea", *["none"] * len(others), "1"]


def test_the_pattern_of_the_page_is_that_of_public_ids(database):
    """It matches what flake_seal returns for IDs of all sizes, and no text with another first digit or letter."""
    pattern, = set(re.findall(r"usr_\[0-7\]\[[^]]*\]\{25\}", PAGE.read_text()))
    database.sql("SELECT flake_create_key('usr', 'twitter')")
    sealed = "SELECT flake_seal((random() * 2::float8 ^ n)::bigint, 'usr') FROM generate_series(0, 62) n"
    texts = [text for text, in database.sql(sealed)]
    assert all(re.fullmatch(pattern, text) for text in texts)
    wrong = [wrong for text in texts for wrong in ("usr_8" + text[5:], text[:-1] + "u", text.upper())]
    assert not any(re.fullmatch(pattern, text) for text in wrong)


WITHOUT_THE_DATABASE = """
import sys
from flake_ids import Key
keys = [(int(least), Key("usr", bytes.fromhex(secret))) for least, secret in zip(sys.argv[3::2], sys.argv[4::2])]
print(seal(keys, int(sys.argv[1])), seal(keys, int(sys.argv[2])), *(unseal(keys, seal(keys, int(id))) for id in sys.argv[1:3]))
try:
    unseal(keys, keys[0][1].seal(int(sys.argv[1])))
except InvalidID:
    print("refused")
"""


def test_a_program_without_the_database_chooses_the_secret_of_a_rotated_key(database):
    """An ID that another secret of the key has sealed is refused, as by the database."""
    database.sql("SELECT flake_create_key('usr', 'twitter'), flake_rotate_key('usr', 1000, force => true)")
    ((options,),) = database.sql("SELECT umoptions FROM pg_user_mappings WHERE srvname = 'usr'")
    old, new = (option.partition("=")[2] for option in options)
    code = lines_of("Without the database", "python") + WITHOUT_THE_DATABASE
    printed = database.python(ROOT / "clients/python/src", "-c", code, 999, 1000, 1000, new, -(2**63), old)
    ((first, second),) = database.sql("SELECT flake_seal(999, 'usr'), flake_seal(1000, 'usr')")
    assert printed.splitlines() == [f"{first} {second} 999 1000", "refused"]
