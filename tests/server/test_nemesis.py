"""All faults at once, see tests/nemesis. `scripts/test nemesis SECONDS [SEED]` runs it for long."""

import os
import random
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from nemesis.run import run

SECONDS = os.environ.get("FLAKE_NEMESIS_SECONDS")
# The number of steps. Shorter plans are beginnings of longer ones.
STEPS = int(os.environ.get("FLAKE_NEMESIS_STEPS") or (40 if SECONDS else 8))
# Tests of a change play the same plans each time. Long runs draw new ones.
SEEDS = [os.environ.get("FLAKE_NEMESIS_SEED") or str(random.SystemRandom().randrange(10**9))] if SECONDS else ["153", "379"]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_id_is_made_twice_under_all_faults_at_once(seed):
    """A run that fails prints the seed of the plan, which FLAKE_NEMESIS_SEED plays again."""
    report = run(seed, float(SECONDS or 0), STEPS)
    print(report, flush=True)
    assert not report.failures, "\n".join(report.failures)
