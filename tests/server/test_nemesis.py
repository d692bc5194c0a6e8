"""Everything at once: see tests/nemesis. `scripts/test nemesis SECONDS [SEED]` runs it for long."""

import os
import random
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from nemesis.run import run

# Steps of a plan, which begins alike however many they are: half a minute, or where it runs for long.
SHORT, LONG = 12, 50


def test_nemesis():
    """A run that fails prints the seed of the plan, which FLAKE_NEMESIS_SEED plays again."""
    seed = os.environ.get("FLAKE_NEMESIS_SEED") or str(random.SystemRandom().randrange(10**9))
    seconds = os.environ.get("FLAKE_NEMESIS_SECONDS")
    report = run(seed, float(seconds or 0), LONG if seconds else SHORT)
    print(report, flush=True)
    assert not report.failures, "\n".join(report.failures)
