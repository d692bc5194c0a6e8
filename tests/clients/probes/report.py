"""Reports how a Python client handles IDs, as a line of JSON. Each probe is called with IDs as texts."""

import json
import sys

# "plain", "set-up" as docs/how-to/clients.md shows, or "identity" to insert many objects into a table with an identity column.
MODE = sys.argv[1]
SET_UP = MODE == "set-up"
IDS = sys.argv[2:]
HOLE = 42
MANY = 10000


def text(id):
    return None if id is None else str(id)


def report(kept, hole, null, read, written, made, error, many=None):
    """`kept` has the result for each ID: the ID, an array with the ID twice, and the number of rows found by it. `hole` has the
    same with an array of the ID and NULL. `many` says how many objects that an ORM has inserted at once have the key of their
    row."""
    strings = lambda id, many, found: [text(id), list(map(text, many)), found]  # noqa: E731
    print(json.dumps({
        "type": type(made[0]).__name__,
        "kept": [strings(*row) for row in kept],
        "hole": strings(*hole),
        "null": null,
        "read": list(map(text, read)),
        "written": written,
        "made": [text(made[0]), made[1]],
        "error": error,
        "many": many,
    }))  # fmt: skip
