"""Short programs that use the packages of the clients, and what they print."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from buffer_programs import Programs, lacks
from database import Database

BEGIN = """
import asyncio, collections, importlib, json, multiprocessing, os, sys, threading, time
import psycopg
import flake_ids
from flake_ids import AsyncIds, Closed, FlakeError, Ids, Refused, Unavailable
from flake_ids.database import Database
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory)


@pytest.fixture(scope="module")
def database(servers, tmp_path_factory):
    return Database(servers("log_line_prefix=%d "), tmp_path_factory.mktemp("database"))


def needs(language):
    if reason := lacks(language):
        pytest.skip(reason)


def python(programs, code, environment=None):
    needs("python")
    environment = (environment or os.environ) | {"PYTHONPATH": programs.python_path}
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


NODE = """
import {{ cpSync }} from "node:fs";
import pg from "pg";
import {{ Closed, Ids, Refused, Unavailable }} from "flake-ids";
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const connect = () => new pg.Client();
{code}
"""


def node(programs, database, code, **environment):
    needs("typescript")
    program = programs.node_directory / f"packages_{abs(hash(code))}.mjs"
    program.write_text(NODE.format(code=textwrap.dedent(code)))
    return json.loads(database.run("node", program.name, directory=programs.node_directory, **environment).splitlines()[-1])
