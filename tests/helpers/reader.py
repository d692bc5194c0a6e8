"""docs/how-to/reader.sql: its rows come from flake_layouts, written as its functions want them.

FLAKE_ACCEPT writes them into the file.
"""

import os
import re

from conftest import ROOT

FILE = ROOT / "docs/how-to/reader.sql"
ROWS = re.compile(r"(?<=^-- generated\n).*?(?=^-- end of generated$)", re.M | re.S)
LAYOUTS = """
    SELECT name, (extract(epoch FROM epoch) * 1000000)::bigint, (extract(epoch FROM tick) * 1000000)::bigint, bits, fields,
           (extract(epoch FROM ends_at) * 1000000)::bigint, (extract(epoch FROM sortable_until) * 1000000)::bigint
    FROM flake_layouts WHERE source <> 'custom'"""


def array(runs):
    return "{" + ",".join(f"{{{shift},{bits}}}" for shift, bits in runs) + "}"


def row(name, epoch, tick, width, fields, ends, ordered):
    """The row of a layout in the file."""
    shift, runs, workers, sequence, ticks, flag, turned = width, {}, [], [], None, None, None
    mask = fixed = 0
    for field in fields:
        shift -= field["bits"]
        run, role = (shift, field["bits"]), field["role"]
        if role == "reserved":
            mask |= ((1 << field["bits"]) - 1) << shift
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
        elif role == "flag":
            flag, turned = shift, "f"
    mask |= (1 << 64) - (1 << width)
    last, ordered = (None if at is None else (at - epoch) // tick for at in (ends, ordered))
    signed = mask - (1 << 64) if mask >> 63 else mask
    # The coarsest worker field comes first; fields of equal rank stay in their order.
    worker = [run for _, run in sorted(workers, key=lambda ranked: ranked[0])]
    texts = "{" + ", ".join(f'"{key}": "{array(value)}"' for key, value in runs.items()) + "}"
    place = f"{{{ticks[0]},{ticks[1]}}}"
    values = [name, epoch, tick, last, ordered, place, turned, flag, signed, fixed, array(worker), array(sequence), texts]
    return ", ".join("NULL" if value is None else str(value) if isinstance(value, int) else f"'{value}'" for value in values)


def rows(server):
    """The rows of the table."""
    lines = [f"    ({row(*layout)})" for layout in server.sql(LAYOUTS)]
    return ",\n".join(lines) + "\n"


def check(server):
    """Compares the table in the file with the layouts."""
    text, generated = FILE.read_text(), rows(server)
    if os.environ.get("FLAKE_ACCEPT"):
        FILE.write_text(ROWS.sub(lambda _: generated, text))
    else:
        assert ROWS.search(text)[0] == generated
