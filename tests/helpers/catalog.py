"""The catalog entries of the extension. If they are equal in two databases, both behave alike."""

import re

# pg_dump's statements that keep OIDs, and its comments.
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


# With these defaults, PUBLIC may only do what a script grants, and `grantee` may do everything that a script does not revoke.
DEFAULT_PRIVILEGES = "".join(
    f"ALTER DEFAULT PRIVILEGES REVOKE ALL ON {kind} FROM PUBLIC; ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO grantee;"
    for kind in ("TABLES", "FUNCTIONS", "SEQUENCES", "TYPES")
)

# Privileges on its objects, granted by a script or by PostgreSQL's defaults.
PRIVILEGES = """
    SELECT format('%s has %s on %s', COALESCE(r.rolname, 'PUBLIC'), a.privilege_type, pg_describe_object(d.classid, d.objid, 0))
    FROM pg_depend d CROSS JOIN LATERAL (
        SELECT COALESCE(proacl, acldefault('f', proowner)) FROM pg_proc WHERE d.classid = 'pg_proc'::regclass AND oid = d.objid
        UNION ALL SELECT COALESCE(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))
        FROM pg_class WHERE d.classid = 'pg_class'::regclass AND oid = d.objid
        UNION ALL SELECT COALESCE(typacl, acldefault('T', typowner)) FROM pg_type
        WHERE d.classid = 'pg_type'::regclass AND oid = d.objid
        UNION ALL SELECT COALESCE(fdwacl, acldefault('F', fdwowner)) FROM pg_foreign_data_wrapper
        WHERE d.classid = 'pg_foreign_data_wrapper'::regclass AND oid = d.objid
    ) o(acl) CROSS JOIN aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
        AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')"""


def statements(server, database):
    """The statements that would make the objects of the extension one by one, with labels, comments and privileges."""
    dump = server.run("pg_dump", "--binary-upgrade", "--schema-only", database).stdout
    return {statement.strip() for statement in NOISE.sub("", dump).split(";\n")}


def catalog(server, database):
    """All of these statements, the dependencies, and the privileges again as text."""
    with server.connect(dbname=database) as db:
        lines = db.execute(DEPENDENCIES).fetchall() + db.execute(PRIVILEGES).fetchall()
    return statements(server, database) | {line for line, in lines}


def differences(server, one, other):
    """The entries that only one of the two databases has."""
    first, second = catalog(server, one), catalog(server, other)
    return sorted([f"only {one}: {line}" for line in first - second] + [f"only {other}: {line}" for line in second - first])
