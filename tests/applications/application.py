"""The database of an application, and a copy of it that was adopted by the commands of the page and by nothing else."""

import contextlib
import itertools
import json
import os
import pathlib
import select
import socket
import subprocess
import tempfile
import time
import urllib.request

import psycopg
import pytest

import pages
from browser import Browser, HasNavigatedError
from conftest import ROOT, as_server

PAGE = ROOT / "docs/how-to/adopt.md"
HERE = pathlib.Path(__file__).parent
# scripts/setup puts applications here that are not installed as packages of Debian.
APPLICATIONS = pathlib.Path(os.environ["FLAKE_CLIENTS"])
# Numbers of sequences are below, and IDs of each layout above.
LARGE = 1 << 40
numbers = itertools.count()

FOREIGN_KEYS = """
    SELECT format('SELECT count(*) FROM ONLY %s c WHERE (%s) AND NOT EXISTS (SELECT FROM %s p WHERE %s)', conrelid::regclass,
        (SELECT string_agg(format('c.%I IS NOT NULL', attname), ' AND ') FROM pg_attribute
         WHERE attrelid = conrelid AND attnum = ANY (conkey)),
        confrelid::regclass,
        (SELECT string_agg(format('p.%I = c.%I', k.attname, r.attname), ' AND ')
         FROM unnest(conkey, confkey) AS n(r, k) JOIN pg_attribute r ON r.attrelid = conrelid AND r.attnum = n.r
         JOIN pg_attribute k ON k.attrelid = confrelid AND k.attnum = n.k))
    FROM pg_constraint WHERE contype = 'f' AND conparentid = 0"""
SERIALS = """
    SELECT c.oid::regclass::text, attname FROM pg_attrdef JOIN pg_class c ON c.oid = adrelid
    JOIN pg_attribute ON attrelid = c.oid AND attnum = adnum
    WHERE pg_get_expr(adbin, adrelid) LIKE 'flake_sequences.nextval(%' AND atttypid = 'bigint'::regtype"""


def of_page(statement):
    """Returns a statement of the page."""
    assert statement in PAGE.read_text(), f"the page does not say: {statement}"
    return statement


class Application:
    def __init__(self, server, name, template="template1"):
        self.server, self.name = server, f"{name}_{next(numbers)}"
        server.sql(f"CREATE DATABASE {self.name} TEMPLATE {template}")

    def adopted(self, layout, schema="public", path=False):
        """Returns a copy whose keys get IDs of the layout. An application that itself calls nextval or currval needs the path."""
        copy = Application(self.server, f"{self.name}_adopted", self.name)
        copy.adopt(layout, schema, path)
        return copy

    def adopt(self, layout, schema="public", path=False):
        with self.connect() as db:
            for extension in "flake", "flake_sequences":
                db.execute(of_page(f"CREATE EXTENSION {extension};"))
            query = of_page('SELECT relation, column_name, kind, obstacle FROM flake_candidates ORDER BY relation')
            self.obstacles = {str(relation): found for relation, _, _, found in db.execute(query).fetchall() if found}
            call = of_page("CALL flake_adopt_schema('public', 'si')").replace("public", schema).replace("si", layout)
            self.undo, = db.execute(call).fetchone()
            if path:
                self.obstacles = {name: found for name, found in self.obstacles.items() if not found.startswith("only an app")}
                free = "SELECT relation::text FROM flake_candidates WHERE kind = 'free'"
                for sequence, in db.execute(free).fetchall():
                    self.undo += db.execute(f"CALL flake_adopt('{sequence}', '{layout}')").fetchone()
                db.execute(f"ALTER DATABASE {self.name} SET search_path = {schema}, flake_sequences, pg_catalog")

    def widen(self):
        """Makes all integers bigint, as docs/how-to/other-applications.md tells for applications without foreign keys."""
        page = ROOT / "docs/how-to/other-applications.md"
        on_a_copy = pages.recipe(page, "On a copy")
        view, = (code for code in on_a_copy if code.startswith("CREATE TEMP VIEW own_tables"))
        query, = (code for code in on_a_copy if code.rstrip().endswith(r"\gexec"))
        self.psql(f"{view}\n{query}")

    def connect(self):
        return self.server.connect(dbname=self.name)

    def sql(self, query, *parameters):
        with self.connect() as db:
            cursor = db.execute(query, parameters or None)
            return cursor.fetchall() if cursor.pgresult.status == psycopg.pq.ExecStatus.TUPLES_OK else None

    def psql(self, script):
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(command, input=script, env=self.environment, check=False, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def environment(self):
        """The environment of its programs."""
        named = self.server.client_environment | {"PGDATABASE": self.name}
        named.pop("PGOPTIONS", None)
        return named

    def run(self, *command, succeeds=True, **options):
        environment = self.environment | options.pop("environment", {})
        done = subprocess.run(
            [*map(str, command)], env=environment, check=False, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=900, **options,
        )  # fmt: skip
        assert (done.returncode == 0) == succeeds, done.stdout[-6000:]
        return done.stdout

    @contextlib.contextmanager
    def serving(self, *command, path="/", **options):
        """Runs a program that serves pages at the port PORT of its arguments and environment; gives their address."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        command = [str(part).replace("PORT", str(port)) for part in command]
        environment = self.environment | {"PORT": str(port)} | options.pop("environment", {})
        with tempfile.TemporaryFile("w+") as log:
            program = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                **options,
            )  # fmt: skip
            try:
                address = f"http://127.0.0.1:{port}"
                wait_for(f"{address}{path}", program, log)
                yield address
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, 15)
                    program.wait(30)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, 9)

    def dangling(self, *more):
        """Counts the rows that refer to a row that is not there: by foreign keys, and as queries say for others."""
        with self.connect() as db:
            queries = [query for query, in db.execute(FOREIGN_KEYS)]
            return sum(db.execute(query).fetchone()[0] for query in [*queries, *more])

    def tables_with_ids(self):
        """Returns the tables that got at least one ID as a key."""
        with self.connect() as db:
            db.execute("SET search_path = pg_catalog")
            keys = db.execute(SERIALS).fetchall()
            largest = 'SELECT max("{1}") > {2} FROM {0}'
            found = [table for table, key in keys if db.execute(largest.format(table, key, LARGE)).fetchone()[0]]
            return {table.removeprefix("public.") for table in found}


def wait_for(address, program, log):
    deadline = time.monotonic() + 180
    while True:
        try:
            return urllib.request.urlopen(address, timeout=60)
        except urllib.error.HTTPError:
            return None
        except OSError:
            if program.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                pytest.fail(f"it does not serve: {log.read()[-4000:]}")
            time.sleep(0.2)


class Visitor(Browser):
    """A browser whose user leaves pages without saving what they hold."""

    def open(self, url):
        self.run("window.isOld = true")
        # No answer may come if the page that is left is still loading.
        with contextlib.suppress(HasNavigatedError):
            self.call("Page.navigate", url=url)
        self.until("!window.isOld && document.readyState === 'complete'")

    def receive(self):
        if b"\0" not in self.rest and not select.select([self.answers], [], [], 5)[0]:
            raise HasNavigatedError
        return super().receive()

    def note(self, event):
        super().note(event)
        if event.get("method") == "Page.javascriptDialogOpening":
            message = {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}, "sessionId": self.session}
            os.write(self.commands, json.dumps(message).encode() + b"\0")


@contextlib.contextmanager
def browsing():
    browser = Visitor()
    try:
        yield browser
    finally:
        browser.close()


def report(product, **found):
    print(f"{product}: " + ", ".join(f"{name} {value}" for name, value in found.items()))


__all__ = ["APPLICATIONS", "HERE", "LARGE", "Application", "as_server", "browsing", "report"]
