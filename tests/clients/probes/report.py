"""What a client of Python does with IDs, as a line of JSON. Each probe is called with IDs as texts."""

import json
import sys

IDS = sys.argv[2:]
# Whether the client is set up as docs/clients.md says.
SET_UP = sys.argv[1] == "set-up"


def text(id):
    return None if id is None else str(id)


def report(kept, null, read, written, made, error):
    """`kept` has what came back for each ID: itself, an array of it and NULL, and how many rows were found by it."""
    print(json.dumps({
        "type": type(made[0]).__name__,
        "kept": [[text(id), list(map(text, many)), found] for id, many, found in kept],
        "null": null,
        "read": list(map(text, read)),
        "written": written,
        "made": [text(made[0]), made[1]],
        "error": error,
    }))  # fmt: skip
