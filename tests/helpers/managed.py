"""managed/flake.sql, the edition in plain SQL: its table of layouts comes from flake_layouts, written as its functions want it.

FLAKE_ACCEPT writes it into the file.
"""

import contextlib
import json
import os
import re

import pytest

from conftest import ROOT

FILE = ROOT / "managed/flake.sql"
PAGE = ROOT / "docs/how-to/managed.md"
ROWS = re.compile(r"(?<=^-- generated\n).*?(?=^-- end of generated$)", re.M | re.S)
LAYOUTS = """
    SELECT name, (extract(epoch FROM epoch) * 1000000)::bigint, (extract(epoch FROM tick) * 1000000)::bigint, bits, fields,
           (extract(epoch FROM ends_at) * 1000000)::bigint, (extract(epoch FROM sortable_until) * 1000000)::bigint,
           increasing, generates, text_form, source
    FROM flake_layouts WHERE source <> 'custom'"""
# A CASE is forty times faster than a list of VALUES, which is made anew for each call.
TABLE = """CREATE FUNCTION flake.names() RETURNS text[] IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN ARRAY[{}];

CREATE FUNCTION flake.known(name text) RETURNS flake.layout IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE name
{}
        END;
END $$;
"""


def array(runs):
    return "{" + ",".join(f"{{{shift},{bits}}}" for shift, bits in runs) + "}"


def signed(mask):
    return mask - (1 << 64) if mask >> 63 else mask


def columns(name, epoch, tick, width, fields, ends, ordered, *rest):
    """The values of a layout in the file."""
    shift, runs, workers, sequence, ticks, flag, turned = width, {}, [], [], None, None, None
    mask = fixed = random = 0
    for field in fields:
        shift -= field["bits"]
        run, role, held = (shift, field["bits"]), field["role"], ((1 << field["bits"]) - 1) << shift
        if role == "reserved":
            mask |= held
            fixed |= field.get("value", 0) << shift
            continue
        if role == "timestamp":
            ticks, turned = run, "r" if field.get("reversed") else None
            continue
        runs.setdefault(field["name"], []).append(run)
        if role == "worker":
            workers.append((field.get("rank", 0), run))
        elif role == "sequence":
            sequence.append(run)
        elif role == "random":
            random |= held
        elif role == "flag":
            flag, turned = shift, "f"
    mask |= (1 << 64) - (1 << width)
    last, ordered = (None if at is None else (at - epoch) // tick for at in (ends, ordered))
    # The coarsest worker field comes first; fields of equal rank stay in their order.
    worker = [run for _, run in sorted(workers, key=lambda ranked: ranked[0])]
    texts = json.dumps({key: array(value) for key, value in runs.items()})
    place = f"{{{ticks[0]},{ticks[1]}}}"
    increasing, generates, text, source = rest
    return [
        name, epoch, tick, last, ordered, place, turned, flag, signed(mask), fixed, random, array(worker), array(sequence),
        texts, width, json.dumps(fields), increasing, generates, text, source,
    ]  # fmt: skip


def literal(value):
    if isinstance(value, bool):
        return str(value).lower()
    quoted = str(value).replace("'", "''")
    # PostgreSQL reads a minus as an operator, and 2^63 does not fit a bigint.
    return "NULL" if value is None else str(value) if isinstance(value, int) and value >= 0 else f"'{quoted}'"


def row(layout):
    values = [literal(value) for value in columns(*layout)]
    return f"        WHEN {values[0]} THEN ROW({', '.join(values)})::flake.layout"


def rows(server):
    """The functions with the table."""
    layouts = server.sql(LAYOUTS)
    return TABLE.format(", ".join(literal(layout[0]) for layout in layouts), "\n".join(map(row, layouts)))


def check(server):
    """Compares the table in the file with the layouts."""
    text, generated = FILE.read_text(), rows(server)
    if os.environ.get("FLAKE_ACCEPT"):
        FILE.write_text(ROWS.sub(lambda _: generated, text))
    else:
        assert ROWS.search(text)[0] == generated


def install(server, dbname="postgres", node=(0, 1), user="postgres", schema="public"):
    """Installs the edition in a database of a server."""
    named = {"PGOPTIONS": f"-c flake.node_id={node[0]} -c flake.node_count={node[1]} -c search_path={schema}"}
    with environment(named):
        server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dbname, "-U", user, "-f", FILE)


@contextlib.contextmanager
def environment(named):
    before = {name: os.environ.get(name) for name in named}
    os.environ.update(named)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def create_pgcrypto(server, dbname="postgres"):
    """For the functions of public IDs."""
    if not server.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pgcrypto'"):
        pytest.skip("this PostgreSQL has no pgcrypto")
    server.run("psql", "-X", "-q", "-d", dbname, "-c", "CREATE EXTENSION pgcrypto")
