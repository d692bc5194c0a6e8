"""Servers that were restored to a point in time, or upgraded, continue above the IDs and the watermarks of their originals."""

import functools
import os
import pathlib
import re

import pytest

from clients import Made
from conftest import ROOT, pg_config
from standing_clock import COUNT, ROWS, SESSIONS, SETTINGS, at, insert, make_in_all, pass_through, server_at_0
from waiting import wait_until
from watermark import announce, goes_on


def recover(restored, server, *settings):
    """Starts a copy that replays the original's WAL up to a point. The original does not run any more."""
    server.stop()
    recover_beside(restored, server, *settings)


def recover_beside(restored, server, *settings):
    """Starts such a copy beside the original, which may run on."""
    restored.write("recovery.signal")
    restored.launch(f"restore_command=cp {server.dir}/data/pg_wal/%f %p", "recovery_target_action=promote", *settings)
    wait_until(lambda: not restored.value("SELECT pg_is_in_recovery()"))


@pytest.mark.matrix
@pytest.mark.parametrize("target", ["xid", "name"])
def test_ids_after_a_recovery_are_above_its_last_commit(own_servers, target):
    """The recovery ends with a commit, and only the WAL before that commit shows when its IDs were made."""
    server, made = server_at_0(own_servers), Made()
    restored = own_servers(copy_of=server, clock=at(-3600))
    server.sql("CREATE TABLE plain ()")
    server.set_clock(at(60))
    make_in_all(server, made)
    with server.connect() as db:
        db.execute("BEGIN")
        made.add(db.execute(f"INSERT INTO kept SELECT FROM {ROWS} RETURNING *").fetchall())
        end, = db.execute("SELECT pg_current_xact_id()").fetchone()
        db.execute("COMMIT")
    server.set_clock(at(0))
    server.sql("CREATE TABLE plain_too ()")
    server.sql("SELECT pg_create_restore_point('here')")
    server.sql("CREATE TABLE later ()")
    recover(restored, server, f"recovery_target_xid={end}" if target == "xid" else "recovery_target_name=here")
    assert restored.sql("SELECT count(*), to_regclass('later') FROM kept") == [(COUNT, None)]
    pass_through(restored, made, -3600, 0, 60)


@pytest.mark.matrix
@pytest.mark.parametrize("number", [0, 1])
def test_no_id_is_below_a_watermark_from_before_a_recovery(own_servers, number):
    """The watermark was asked for on the original, which has made no ID since the copy. The copy may have a number of its own."""
    server = server_at_0(own_servers, "flake.node_count=2")
    restored = own_servers(f"flake.node_id={number}", copy_of=server, clock=at(-3600))
    server.set_clock(at(60))
    announced = announce(server)
    server.set_clock(at(0))
    server.sql("SELECT pg_create_restore_point('here')")
    recover(restored, server, "recovery_target_name=here")
    goes_on(restored, announced, -3600, 0, 59, 60)


MAJOR = int(re.search(r"\d+", pg_config("--version").name)[0])
OLD = MAJOR - 1


def version_before():
    """Returns the pg_config of the version before, or the reason why it is not available here."""
    if MAJOR not in (18, 19):
        return None, "the upgrade is tested from PostgreSQL 17 to 18 and from 18 to 19"
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    places = [f"/usr/lib/postgresql/{OLD}", f"/var/cache/flake/postgresql-{OLD}", cache / f"flake/postgresql-{OLD}"]
    found = [place / "bin/pg_config" for place in map(pathlib.Path, places) if (place / "bin/initdb").exists()]
    if not found:
        return None, f"there is no PostgreSQL {OLD} to upgrade from"
    installed = [(ROOT / f"target/stage-{major}").rglob("flake--*.sql") for major in [OLD, MAJOR]]
    scripts = [{path.name: path.read_bytes() for path in paths} for paths in installed]
    if not scripts[0] or scripts[0] != scripts[1]:
        return None, f"flake was not built for PostgreSQL {OLD} from the same sources"
    return found[0], None


@pytest.fixture
def old(own_servers, monkeypatch):
    """A server of the version before, whose clock is at 60."""
    older, lacks = version_before()
    if lacks:
        pytest.skip(lacks)
    # They can be settings that only a PostgreSQL with assertions has.
    monkeypatch.delenv("SERVER_SETTINGS", raising=False)
    slots = ["autovacuum_worker_slots=2"] if OLD >= 18 else []
    old = server_at_0(functools.partial(own_servers, pg_config=older), *slots)
    old.set_clock(at(60))
    return old


def upgrade(own_servers, old, seconds=-600, **options):
    """Returns the upgraded server, whose clock is behind."""
    old.set_clock(at(0))
    old.stop()
    new = own_servers(upgrade_of=old, clock=at(seconds), **options)
    # Both versions need the same number of slots: version 17 has one for each worker of autovacuum.
    new.launch(*SETTINGS, "autovacuum_worker_slots=2")
    return new


def test_ids_after_pg_upgrade_are_above_the_mark(own_servers, old):
    """pg_upgrade copies no file of the data directory that it does not know, and keeps only the last value of a sequence. That
    value counts up to an hour ahead of the clock."""
    made = Made()
    insert(old, made)
    new = upgrade(own_servers, old)
    assert new.value("SELECT count(*) FROM kept") == COUNT * SESSIONS
    pass_through(new, made, -600, 0, 60)


def test_no_id_is_below_a_watermark_from_before_an_upgrade(own_servers, old):
    announced = announce(old)
    goes_on(upgrade(own_servers, old), announced, -600, 0, 59, 60)
