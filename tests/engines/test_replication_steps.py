"""The blocks of docs/how-to/logical-replication.md. Each command fails once, and then no later command may run."""

import re
import subprocess

import pytest

from replication import HEADINGS, ON, PAGE, recipe

BLOCKS = [(heading, number) for heading in HEADINGS for number in range(len(recipe(heading, "bash")))]
# Programs that record their calls and succeed; only the call with this number fails.
PROGRAM = """#!/bin/bash
echo "$(tr '\\n' ' ' <<<"$0 $*")" >>"$CALLS"
if [ "$(wc -l <"$CALLS")" = "$FAILING" ]; then exit 1; fi
if [[ $* = *count* ]]; then echo 0; else echo t; fi
"""


def calls(directory, block, failing):
    """Returns whether a block runs to its end if that call fails, and what it has called by then."""
    log = directory / f"calls-{failing}"
    log.touch()
    environment = {"PATH": f"{directory}:/usr/bin:/bin", "CALLS": str(log), "FAILING": str(failing)}
    environment |= {name: name.lower() for name in re.findall(r"\$\{?([A-Z]+)", block)}
    done = subprocess.run(["/bin/bash", "-uc", ON + block], check=False, env=environment, capture_output=True, timeout=60)
    return done.returncode == 0, log.read_text().splitlines()


@pytest.mark.parametrize("heading, number", BLOCKS)
def test_a_block_stops_at_its_first_error(tmp_path, heading, number):
    """A command that waits for something is repeated instead."""
    for name in ["psql", "pg_dump", "pg_ctl", "pg_createsubscriber"]:
        (tmp_path / name).write_text(PROGRAM)
        (tmp_path / name).chmod(0o755)
    block = recipe(heading, "bash")[number]
    is_done, all_calls = calls(tmp_path, block, 0)
    assert is_done and all_calls
    asked_again = 0
    for failing, call in enumerate(all_calls, start=1):
        is_done, called = calls(tmp_path, block, failing)
        assert called == ([*all_calls[:failing], *all_calls[failing - 1 :]] if is_done else all_calls[:failing]), call
        asked_again += is_done
    assert asked_again == block.count("until")


def test_every_section_of_the_page_is_tested():
    assert [heading for heading in re.findall(r"^#+ (.*)$", PAGE.read_text(), re.M) if recipe(heading, "bash")] == [
        "Logical replication", *HEADINGS
    ]  # fmt: skip
