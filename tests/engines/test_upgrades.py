"""pg_upgrade to PostgreSQL 18 and 19, in all its modes: everything that depends on flake is whole, and no ID is made again."""

import functools
import os
import subprocess

import pytest

import everything
from conftest import ROOT
from standing_clock import at, insert, pass_through
from test_restored import upgrade

# By how many seconds a mark is ahead of the IDs below it.
LEAD = 2
BUILT = ["15", "15 oldest", *os.environ.get("FLAKE_TEST_VERSIONS", "16 17 18 19").split()]


def pg_config(version):
    """Returns the pg_config of a version that flake was built for; scripts/test builds it."""
    if version not in BUILT:
        pytest.skip(f"FLAKE_TEST_VERSIONS leaves out PostgreSQL {version}")
    found = subprocess.run([ROOT / "scripts/postgres", *version.split()], check=False, capture_output=True, text=True)
    if found.returncode or not (ROOT / f"target/stage-{version.split()[0]}").is_dir():
        pytest.skip(f"PostgreSQL {version} is not to be had: {found.stderr.strip() or 'flake was not built for it'}")
    return found.stdout.strip()


@pytest.mark.parametrize("mode", ["copy", "link", "swap"])
@pytest.mark.parametrize(
    "version, later", [("15 oldest", "18"), ("16", "18"), ("17", "18"), ("15 oldest", "19"), ("18", "19")]
)
def test_pg_upgrade_keeps_everything_and_makes_no_id_twice(own_servers, version, later, mode):
    """The new server's clock is behind by as much as the marks are ahead, and by more. Debian's 15.20 gives each table an
    option that no later version has, so every pg_upgrade from it fails. Older minor releases do not do that."""
    older, newer = pg_config(version), pg_config(later)
    old, made = everything.server_with_everything(functools.partial(own_servers, pg_config=older))
    if old.sql("SELECT FROM pg_attribute WHERE attoptions::text LIKE '%pg_attver%'"):
        pytest.skip("this minor release has an option pg_attver in the definition of every table, which later ones refuse")
    insert(old, made)
    old.set_clock(at(60))
    insert(old, made)
    with old.connect() as db:
        before = everything.seen(db)
    new = upgrade(own_servers, old, 60 - LEAD, mode=mode, pg_config=newer)
    assert new.value("SHOW server_version_num") >= f"{later}0000"
    everything.assert_whole(new, before)
    pass_through(new, made, 60 - LEAD, 0, 60)
    everything.assert_well(new)
