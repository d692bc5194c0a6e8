"""Fast operations take as few instructions as bench/bars.py says, and the clock is read seldom."""

import os
import pathlib
import re
import shutil
import sys

import pytest

from conftest import ROOT, bindir, pg_config
from waiting import processor_seconds

CLOCK = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
READS_ALWAYS = not CLOCK.exists() or CLOCK.read_text() != "tsc\n"

sys.path.insert(0, str(ROOT / "bench"))


@pytest.mark.skipif(os.environ.get("FLAKE_PROFILE") != "release", reason="FLAKE_PROFILE is not release: the library that counts")
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind, which counts instructions, is not installed")
def test_no_bar_is_exceeded(own_servers):
    import bars

    server = own_servers()
    server.stop()
    major = re.search(r"\d+", pg_config("--version").name)[0]
    stage = os.environ.get("FLAKE_STAGE") or f"{ROOT}/target/stage-{major}"
    found = list(bars.measured(bindir(), server.dir / "data", f"{stage}{pg_config('--pkglibdir')}/flake.so", f"{stage}.debug"))
    assert len(found) == len(bars.ALONE + bars.BESIDE + bars.SORTS + bars.PLANS) + 3 * len(bars.FILLED)
    assert [bar for bar in found if bar[1] > bar[2]] == [], found


@pytest.mark.matrix
@pytest.mark.skipif(READS_ALWAYS, reason="the processor's counter is not the system's clock, so each ID takes a reading")
def test_the_clock_is_read_for_few_ids(own_servers):
    """The bars do not count readings of the clock. On this server, a reading takes a hundred times as long as an ID."""
    server = own_servers(clock="+0")
    with server.connect() as db:

        def seconds_of(call):
            # The system counts the processor's time in hundredths of a second.
            before = processor_seconds(db)
            db.execute(f"SELECT count({call}) FROM generate_series(1, 200000)")
            return processor_seconds(db) - before

        readings = seconds_of("clock_timestamp()")
        for call in ["flake_next('twitter')", "sno_next()"]:
            assert seconds_of(call) < readings / 3, (call, readings)
