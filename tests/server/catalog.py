"""What the catalogs say of the extension: two databases in which that is the same behave in the same way."""

import re

# What pg_dump does to keep object identifiers, and its comments.
NOISE = re.compile(r"^SELECT pg_catalog\.binary_upgrade_set_.*;$|^--.*$|^\\(un)?restrict .*$", flags=re.M)

DEPENDENCIES = """
    WITH member AS (
        SELECT classid, objid FROM pg_depend
        WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
            AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake'))
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid) || ' depends on '
           || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) || ' (' || d.deptype::text || ')'
    FROM pg_depend d
    WHERE (d.classid, d.objid) IN (TABLE member) OR (d.refclassid, d.refobjid) IN (TABLE member)"""


def statements(server, database):
    """What would make the objects of the extension one by one, with labels, comments and privileges."""
    dump = server.run("pg_dump", "--binary-upgrade", "--schema-only", database).stdout
    return {statement.strip() for statement in NOISE.sub("", dump).split(";\n")}


def catalog(server, database):
    """All of that, and the dependencies."""
    with server.connect(dbname=database) as db:
        return statements(server, database) | {line for line, in db.execute(DEPENDENCIES).fetchall()}


def differences(server, one, other):
    """What one database has and the other has not, either way."""
    return sorted(catalog(server, one) ^ catalog(server, other))
