"""A made-up next version for tests of upgrades: its install script, and the script that upgrades to it."""

import os
import re
import subprocess

import pytest

from conftest import ROOT

VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
# Tests that run at the same time may use the same directory, and servers only find extensions that are installed.
NEXT = f"99.{os.getpid()}"
RELEASES = ROOT / "sql"

# The versions that were released.
RELEASED = sorted(path.stem.removeprefix("flake--") for path in RELEASES.glob("flake--*.sql") if path.name.count("--") == 1)
# The upgrades: each release to this version, and this version to the next one.
UPGRADES = [*((version, VERSION) for version in RELEASED if version != VERSION), (VERSION, NEXT)]
# Each process has another number for the next version.
each_upgrade = pytest.mark.parametrize(("version", "to"), UPGRADES, ids=[f"from {version}" for version, _ in UPGRADES])

NEW_FUNCTION = """CREATE FUNCTION flake_later(id bigint) RETURNS timestamptz IMMUTABLE STRICT PARALLEL SAFE
               LANGUAGE sql RETURN flake_timestamp(id, 'twitter');"""
NEW_GRANT = "GRANT EXECUTE ON FUNCTION flake_later(bigint) TO PUBLIC;"

# One change of every kind: the text in this version's script, the text in the next one's, and the upgrade's statement.
CHANGES = {
    "comment": (
        "IS 'returns the parts of a sno';",
        "IS 'returns each part of a sno';",
        "COMMENT ON FUNCTION sno_fields(sno) IS 'returns each part of a sno';",
    ),
    "label": (
        """CREATE FUNCTION flake_timestamp(id bigint, layout text DEFAULT 'twitter') RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE SUPPORT flake_internal.flake_during_support
""",
        """CREATE FUNCTION flake_timestamp(id bigint, layout text DEFAULT 'twitter') RETURNS timestamptz
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE SUPPORT flake_internal.flake_during_support COST 2
""",
        "ALTER FUNCTION flake_timestamp(bigint, text) LEAKPROOF COST 2;",
    ),
    "support function": (
        """CREATE FUNCTION sno_cover(id sno) RETURNS sno
    VOLATILE STRICT PARALLEL RESTRICTED
""",
        """CREATE FUNCTION sno_cover(id sno) RETURNS sno
    VOLATILE STRICT PARALLEL RESTRICTED SUPPORT flake_internal.sno_during_support
""",
        "ALTER FUNCTION sno_cover(sno) SUPPORT flake_internal.sno_during_support;",
    ),
    "C symbol": (
        "LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_last';",
        "LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_first';",
        """CREATE OR REPLACE FUNCTION flake_plan.last(span tstzrange, layout text) RETURNS bigint
               IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_first';""",
    ),
    "column of a view": (
        """    SELECT o.pid, p.gid, o.since
""",
        """    SELECT o.pid, p.gid, o.since, 1 AS more
""",
        """CREATE OR REPLACE VIEW flake_open_transactions AS
               SELECT o.pid, p.gid, o.since, 1 AS more
               FROM flake_internal.flake_open_transactions() o
                   LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction OPERATOR(pg_catalog.=) o.xid
               WHERE o.pid IS NOT NULL OR p.gid IS NOT NULL;""",
    ),
    "new function": ("-- Text ---", f"{NEW_FUNCTION}\n-- Text ---", NEW_FUNCTION),
    # Where default privileges require it, only superusers may call the function without this.
    "its privileges": ("-- IDs of an instant ---", f"{NEW_GRANT}\n-- IDs of an instant ---", NEW_GRANT),
    "privilege": (
        "GRANT USAGE ON TYPE flake_parts TO PUBLIC;",
        "GRANT USAGE ON TYPE flake_parts TO PUBLIC; GRANT SELECT ON flake_internal.flake_mark TO pg_monitor;",
        "GRANT SELECT ON flake_internal.flake_mark TO pg_monitor;",
    ),
    "operator": (
        "GRANT USAGE ON TYPE sno, sno_parts TO PUBLIC;",
        """GRANT USAGE ON TYPE sno, sno_parts TO PUBLIC;
           CREATE OPERATOR @< (FUNCTION = sno_during, LEFTARG = sno, RIGHTARG = tstzrange);""",
        "CREATE OPERATOR @< (FUNCTION = sno_during, LEFTARG = sno, RIGHTARG = tstzrange);",
    ),
}  # fmt: skip
# contributing/objects.md says that every upgrade begins and ends with these.
BEGINNING = re.search(r"^SELECT .*?;\nSELECT .*?;\n", (ROOT / "sql/flake.sql").read_text(), re.M | re.S)[0]
RECORD = "\nSELECT flake_internal.flake_record_mark();\n"
END = RECORD + re.search(r"^SELECT .*;\n\Z", (ROOT / "sql/sno.sql").read_text(), re.M | re.S)[0]


def script(*names):
    """An install script with these changes."""
    made = subprocess.run([ROOT / "scripts/release", "script"], check=True, capture_output=True, text=True).stdout
    for name in names:
        before, after, _ = CHANGES[name]
        assert made.count(before) == 1, name
        made = made.replace(before, after)
    return made


def provide(server, of_upgrade=tuple(CHANGES), more=""):
    """Lets the server find the next version's scripts. The upgrade makes all of its changes, or the given ones, and then
    `more`."""
    server.add_script(NEXT, script(*CHANGES))
    server.add_script(f"{VERSION}--{NEXT}", BEGINNING + "\n".join(CHANGES[name][2] for name in of_upgrade) + END + more)
