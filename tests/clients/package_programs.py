"""Short programs that use the packages of the clients, and what they print."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from database import Database
from lease_programs import Programs, lacks, leasing_server

BEGIN = """
import asyncio, collections, json, multiprocessing, os, sys, threading, time
import psycopg
import pgflake
from pgflake import AsyncIds, Closed, Ids, NoLease, Refused, lessee
from pgflake.database import Database
from pgflake.window import Row, SECOND

def granted(token=1, seconds=60, worker=7):
    now = lessee.wall()
    end = now // 1000 + seconds * 1000
    return Row(None, 0, token, worker, now // 1000, end, 22, worker << 12, 0, 4096, 0, 1000, now, now + seconds * SECOND)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def database(servers, tmp_path_factory):
    made = Database(leasing_server(servers), tmp_path_factory.mktemp("database"))
    made.sql("CREATE TABLE orders (id bigint PRIMARY KEY, item text)")
    return made


def needs(language):
    if reason := lacks(language):
        pytest.skip(reason)


def python(programs, code, environment=None):
    needs("python")
    environment = (environment or os.environ) | {"PYTHONPATH": programs.python_path}
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


NODE = """
import pg from "pg";
import {{ Closed, Ids, NoLease, Refused }} from "pgflake";
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const connect = () => new pg.Client();
{code}
"""


def node(programs, database, code, **environment):
    needs("typescript")
    program = programs.node_directory / f"packages_{abs(hash(code))}.mjs"
    program.write_text(NODE.format(code=textwrap.dedent(code)))
    return json.loads(database.run("node", program.name, directory=programs.node_directory, **environment).splitlines()[-1])
