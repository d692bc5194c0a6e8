"""A client that connects for each transaction pays for a session's first ID, and for the session's exit."""

import os
import pathlib
import re
import shutil
import sys

import pytest

from conftest import ROOT, bindir

sys.path.insert(0, str(ROOT / "bench"))

# The most instructions. A build with assertions takes more.
MOST = 100_000 if os.environ["FLAKE_PROFILE"] == "release" else 115_000


@pytest.mark.matrix
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind, which counts instructions")
@pytest.mark.parametrize("who", ["alone", "beside"])
def test_a_first_id_takes_about_as_many_instructions_as_nextval(counted, who):
    """The limit is about what nextval() takes in the same server."""
    assert counted[who]["flake_next"] <= MOST, counted


@pytest.fixture(scope="module")
def counted(servers):
    import first_id

    server = servers("shared_preload_libraries=flake")
    if server.value("SHOW debug_assertions") == "on":
        pytest.skip("the PostgreSQL checks its assertions, which takes instructions")
    server.stop()
    return first_id.first_and_exit(bindir(), server.dir / "data")


def test_a_first_id_takes_little_of_the_stack(servers):
    """Each page of the stack that is used for the first time takes the kernel as long as some IDs, and a stack is small on some
    systems. The first session also creates the shared memory."""
    server = servers("shared_preload_libraries=flake")
    server.stop()
    server.launch()
    for _ in range(2):
        with server.connect() as db:
            db.execute("SELECT count(*) FROM pg_class")
            before = kilobytes_of_stack(db)
            db.execute("SELECT flake_next('twitter')")
            assert kilobytes_of_stack(db) - before <= 128


def kilobytes_of_stack(db):
    maps = pathlib.Path(f"/proc/{db.info.backend_pid}/smaps").read_text()
    return int(re.search(r"\[stack\]\n(?:.*\n)*?Rss: *(\d+) kB", maps)[1])
