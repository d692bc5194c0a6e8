"""The pitfalls of 64 bits in each client, by default and when it is set up as docs/how-to/clients.md shows, and the table of
that page."""

import csv
import io
import json
import os
import re
import urllib.parse

import pytest

from conftest import ROOT
from database import database, server_of_clients
from known import CLIENTS, IDS, MANY, every_client

__all__ = ["database", "server_of_clients"]
PAGE = ROOT / "docs/how-to/clients.md"
TEXTS = list(map(str, IDS))
# The heads of the table's columns; the last one is for ORMs only.
PLACES = ["columns", "arrays", "arrays with NULL", "JSON read", "JSON written", "objects at once"]


@every_client
def test_each_value_in_each_place_works_as_the_table_says(database, another, client):
    """Each failure is known and in the table."""
    plain, all, error = client.works(database, "plain")
    assert set(all) <= set(PLACES)
    set_up, _, _ = client.works(another, "set-up")
    # psycopg needs no lines; its second mode is its binary format.
    assert plain < set_up if client.lines else plain == set_up
    parts = plain, set_up - plain, set(all) - set_up
    assert parts[2] == set(client.fails)
    works = {name: word for word, part in zip(("yes", "lines", "no"), parts, strict=True) for name in part}
    check_row([client.name, client.version, *(works.get(name, "") for name in PLACES), f"`{error}`"])


def check_row(cells):
    """Compares a row of the table, or writes it."""
    row, page = "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|", PAGE.read_text()
    found = re.search(rf"^\| {re.escape(cells[0])} \|.*\|$", page, re.M)
    assert found, f"{PAGE.name} has no row for {cells[0]}"
    if os.environ.get("FLAKE_ACCEPT"):
        PAGE.write_text(page.replace(found[0], row))
    else:
        assert found[0] == row


@pytest.fixture
def another(database, tmp_path):
    return type(database)(database.server, tmp_path)


@pytest.mark.parametrize("client", [client for client in CLIENTS if client.is_orm], ids=lambda client: client.name)
def test_many_objects_at_once_take_few_statements(database, another, client):
    """Ten thousand objects take no more statements than with an identity column, and each object has the key of its row."""
    assert client.report(database, "set-up")["many"] == client.report(another, "identity")["many"] == MANY
    assert 0 < database.inserts("many") <= another.inserts("many") <= MANY / 1000


@every_client
def test_texts_in_urls_and_csv_files_are_read_again(database, client):
    """A program can put IDs into a URL or a CSV file, and read them again."""
    texts = [row[0] for row in client.report(database, "set-up")["kept"]]
    url = "/orders?" + urllib.parse.urlencode({"id": texts}, doseq=True)
    parameters = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["id"]
    assert database.sql("SELECT unnest(%s::text[])::bigint", parameters) == [(id,) for id in IDS]
    written = io.StringIO()
    csv.writer(written).writerows([text] for text in texts)
    with database.server.connect(dbname=database.name) as db, db.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE loaded (n integer GENERATED ALWAYS AS IDENTITY, id bigint)")
        with cursor.copy("COPY loaded (id) FROM STDIN (FORMAT csv)") as copy:
            copy.write(written.getvalue())
        assert cursor.execute("SELECT id FROM loaded ORDER BY n").fetchall() == [(id,) for id in IDS]
        with cursor.copy("COPY (SELECT id FROM loaded ORDER BY n) TO STDOUT (FORMAT csv)") as copy:
            assert list(csv.reader(b"".join(copy).decode().splitlines())) == [[text] for text in TEXTS]


def test_a_wide_key_is_a_text_in_node(database):
    """docs/how-to/convert.md says so: widening alone turns a number into a text."""
    program = database.node_directory / "wide.mjs"
    program.write_text("""
        import pg from "pg";
        const db = new pg.Client();
        await db.connect();
        console.log(JSON.stringify((await db.query("SELECT 132::integer AS narrow, 132::bigint AS wide")).rows[0]));
        await db.end();""")
    assert json.loads(database.node(program.name)) == {"narrow": 132, "wide": "132"}
