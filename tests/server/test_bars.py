"""Operations that should be fast take as few instructions as bench/bars.py says."""

import os
import shutil
import sys

import pytest

from conftest import ROOT, bindir

sys.path.insert(0, str(ROOT / "bench"))


@pytest.mark.skipif(os.environ.get("FLAKE_PROFILE") != "release", reason="FLAKE_PROFILE is not release: the library that counts")
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind, which counts instructions, is not installed")
def test_no_bar_is_exceeded(own_servers):
    import bars

    server = own_servers()
    server.stop()
    found = list(bars.measured(bindir(), server.dir / "data"))
    assert len(found) == len(bars.CALLS + bars.SORTS + bars.PLANS)
    assert [bar for bar in found if bar[1] > bar[2]] == [], found
