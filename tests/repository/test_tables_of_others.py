"""Statements that read or change tables which are not flake's own, with the reason why each may do so.

A session that plans a query of a table runs functions of the table's owner with its own rights: in expressions of indexes, in
policies, in triggers. So every statement of the library and of the pages that names such a table, or whose table comes from the
catalog, is listed here. A statement for all tables has to leave out tables of other roles, or read them without the planner.
"""

import re

import pytest
from test_queries import FILES, STRINGS

from conftest import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NOT_CODE = {"text", "dockerfile", "conf", "ini", "yaml"}
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "clients").rglob("*.md")]
SCRIPTS = [
    # A frozen script is a copy of these, and was looked at when its version was made.
    *(path for path in (ROOT / "sql").glob("*.sql") if "--" not in path.name),
    *(ROOT / "managed").iterdir(), ROOT / "scripts/tour.sql", *(ROOT / "site").rglob("*.js"),
    *(path for folder in ("examples", "clients") for path in (ROOT / folder).rglob("*.*")
      if path.suffix in {".sql", ".py", ".mjs", ".ts", ".java", ".go", ".rs", ".rb", ".php", ".cs", ".yml"}
      and "node_modules" not in path.parts),
]  # fmt: skip

# Where a statement names a relation. REVOKE has FROM too, and extract() and the like.
PLACE = r"""\b(?P<verb>FROM|JOIN|(?:INSERT|MERGE)\s+INTO|UPDATE|TRUNCATE|ANALYZE|VACUUM|CLUSTER|COPY|
    REFRESH\s+MATERIALIZED\s+VIEW|(?:ALTER|LOCK|DROP|TRUNCATE|CREATE|DETACH|ATTACH)?\s*\b(?:TABLE|PARTITION\s+OF|PARTITION))\s+
    (?:ONLY\s+|IF\s+EXISTS\s+|CONCURRENTLY\s+|\([A-Z, ]+\)\s*)*"""
# Written by format() of SQL, of Rust and of Python, by a variable of psql or of a shell, or after the end of the literal.
BUILT = re.compile(rf"{PLACE}(?P<name>%(?:\d\$)?[sI]|\{{\w*\}}|:['\"]?\w+['\"]?|\$\{{[\w.]+\}}|\$\w+|\Z)(?!\w*\()", re.X)
NAMED = re.compile(rf"{PLACE}(?P<name>[a-z_]\w*(?:\.\w+)?|\"[^\"]+\")(?![\w.]*\()", re.X)
ALL = re.compile(r"\b(?:FOR ALL TABLES|ALL TABLES IN SCHEMA|\w*all_tables)\b")
# The table comes from the catalog or from a variable.
KNOWN = r"NULL::\w|'|regclass|relation regclass|anyelement|row_type|table, "
CALLS = re.compile(rf"\bflake_(?:convert|take)\((?!\s*(?:{KNOWN}))[^),]+")
CREATED = re.compile(
    r"CREATE (?:OR REPLACE |UNLOGGED |TEMP |FOREIGN |MATERIALIZED )*(?:TABLE|VIEW) (?:IF NOT EXISTS )?([\w.]+|\"[^\"]+\")"
)
WITH = re.compile(r"\b(\w+) ?(?:\([\w, ]*\))? AS (?:NOT )?(?:MATERIALIZED )?\(")
OWN = re.compile(r"pg_\w+|information_schema\.\w+|flake_\w+|flake\.\w+|pg_catalog\.\w+")


def statements(text):
    """The text without comments, and without what has FROM for another reason."""
    text = re.sub(r"(?m)(?<![\w'\"])--(?![\w-]*=|\w).*$", "", text)
    text = re.sub(r"(?i)\b(?:extract|substring|trim)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", "", text)
    return re.sub(r"(?s)\bREVOKE\b.*?\bFROM\b|\bDISTINCT\s+FROM\b", "", text)


def of_others(text, own=()):
    """The places of a text that name relations of others, such as "FROM %s"."""
    text = statements(text)
    known = {*own, *CREATED.findall(text), *WITH.findall(text)}
    found = {f"{m['verb']} {m['name'] or '…'}" for m in BUILT.finditer(text)}
    found |= {f"{m['verb']} {m['name']}" for m in NAMED.finditer(text) if m["name"] not in known and not OWN.fullmatch(m["name"])}
    found |= {m[0] for m in ALL.finditer(text)} | {m[0] for m in CALLS.finditer(text)}
    return {" ".join(place.split()) for place in found}


def of_rust(source):
    """The places in the strings of a file. Each string may be a part of a statement."""
    code = re.sub(r"(?m)^\s*//.*$", "", source)
    texts = [text for text in STRINGS.findall(code) if not text.rstrip().endswith(".")]
    # The query with this name stands in another string.
    own = {"members"}.union(*map(WITH.findall, texts))
    return set().union(*(of_others(text.replace("\\\n", " "), own) for text in texts))


READERS = "a table of the reader's own"
ONE_OWNER = "there is no plan if it concerns a table of another role"
SHOP = ["ALTER TABLE shop_customer", "ALTER TABLE shop_order"]
CALLERS = "a table that the caller names, as its owner"
LEFT_OUT = "tables of other roles, and those with such partitions or children, are left out"
LISTED = {
    "src/functions/convert_table/key.rs": {"LOCK TABLE …": "a lock runs nothing"},
    "src/functions/convert_table/switch.rs": {
        "ALTER TABLE …": "a default and an identity are changed, for which PostgreSQL looks at no row",
    },
    "src/sequences/adopt/exchange.rs": {
        "ALTER TABLE …": "a default and an identity are changed, for which PostgreSQL looks at no row",
        "FROM …": "a privilege is taken from a role",
    },
    "src/sequences/adopt/schema.rs": {
        "FROM …": "a view of the extension, with its schema",
    },
    "src/sequences/adopt/route.rs": {"FROM …": "a view of the extension, with its schema"},
    "src/functions/check/sequences.rs": {"JOIN {schema}": "a view of the extension, with its schema"},
    "src/functions/take/statements.rs": {
        "FROM {table}": "the caller reads rows, and trusts whose they are",
        "FROM {positions}": "a table that the caller names",
        "UPDATE {positions}": "a table that the caller names",
    },
    "managed/flake.sql": {"FROM %s": LEFT_OUT},
    "managed/sequences.sql": dict.fromkeys(["ALTER TABLE %s", "FROM %s", "LOCK TABLE %s"], ONE_OWNER),
    "examples/widen.sql": dict.fromkeys(["TABLE %s", "ALTER TABLE %s"], ONE_OWNER),
    "docs/how-to/convert.md": {"FROM %s": LEFT_OUT},
    "docs/how-to/leave.md": dict.fromkeys(["ALTER TABLE %1$s", "FROM %1$s"], LEFT_OUT),
    "docs/how-to/runbook.md": {"FROM %s": LEFT_OUT, "FROM orders": READERS},
    "docs/how-to/other-applications.md": {
        "ALTER TABLE %s": LEFT_OUT,
        "FROM %2$s": LEFT_OUT,
        "flake_convert(relation::regclass": LEFT_OUT,
        "FROM undo": "the role has made the table in the statement before",
    },
    "docs/how-to/adopt.md": {
        "ALTER TABLE %s": "a default is changed, for which PostgreSQL looks at no row",
        "FROM public.flake_candidates": "a view of the extension",
        "FROM public.flake_unrouted": "a view of the extension",
    },
    "docs/how-to/logical-replication.md": dict.fromkeys(
        ["FOR ALL TABLES", "replication_set_add_all_tables"], "the page says when owners have to be trusted"
    ),
    "docs/how-to/partition.md": dict.fromkeys(
        ["ALTER TABLE %s", "CREATE TABLE %s", "DETACH PARTITION %s", "DROP TABLE %s", "PARTITION OF %s"], CALLERS
    ),
    "docs/how-to/clients.md": dict.fromkeys(SHOP, READERS),
    "docs/how-to/public-ids-in-frameworks.md": {"FROM users": READERS},
    "examples/django/shop/migrations/0002_flake.py": dict.fromkeys(SHOP, READERS),
    "examples/django/use_shop.py": dict.fromkeys(
        ["ALTER TABLE auth_user", "ALTER TABLE auth_user_groups", "ALTER TABLE auth_user_user_permissions"], READERS
    ),
    **{f"examples/ids/{name}": {"INSERT INTO orders": READERS}
       for name in ("UseIds.java", "use_ids.go", "use_ids.py", "use_ids.rs", "use_ids.ts")},
    "sql/flake.sql": {"COPY calls": "a comment of functions that COPY calls"},
    "sql/sno.sql": {"COPY calls": "a comment of functions that COPY calls"},
    "sql/sequences.sql": {"COPY calls": "a comment of a function that COPY calls"},
    **{f"clients/{name}/README.md": {"INSERT INTO orders": READERS} for name in ("java", "python", "typescript")},
}  # fmt: skip


def places(path):
    text = path.read_text()
    if path in FILES:
        return of_rust(text)
    if path in PAGES:
        text = "\n".join(code for language, code in BLOCK.findall(text) if language not in NOT_CODE)
    return of_others(text)


def test_each_place_has_a_reason():
    found = {(str(path.relative_to(ROOT)), place) for path in [*FILES, *SCRIPTS, *PAGES] for place in places(path)}
    listed = {(path, place) for path, reasons in LISTED.items() for place in reasons}
    assert found - listed == set()
    assert listed - found == set(), "not there"


@pytest.mark.parametrize("text, place", [
    ("EXECUTE format('SELECT max(%I) FROM %s', name, of)", "FROM %s"),
    ("EXECUTE format('UPDATE %1$s SET %2$I = 0', of, name)", "UPDATE %1$s"),
    ("SELECT format('TRUNCATE ONLY %s', oid::regclass) FROM pg_class \\gexec", "TRUNCATE %s"),
    ("SELECT format('VACUUM (ANALYZE) %I.%I', schemaname, tablename) FROM pg_tables", "VACUUM %I"),
    ("SELECT count(*) FROM parcels -- of others", "FROM parcels"),
    ('DELETE FROM shop."Parcels"', "FROM shop"),
    ("LOCK TABLE parcels", "LOCK TABLE parcels"),
    ("INSERT INTO parcels SELECT", "INSERT INTO parcels"),
    ("WITH x AS (SELECT) SELECT FROM x JOIN :table ON true", "JOIN :table"),
    ("psql -c \"COPY $table TO STDOUT\"", "COPY $table"),
    ("CREATE PUBLICATION p FOR ALL TABLES", "FOR ALL TABLES"),
    ("SELECT flake_convert(oid::regclass, 'twitter') FROM pg_class", "flake_convert(oid::regclass"),
])  # fmt: skip
def test_another_place_is_found_in_sql(text, place):
    assert of_others(text) == {place}


@pytest.mark.parametrize("code, place", [
    ('let query = format!("SELECT max({column}) FROM {table}");', "FROM {table}"),
    ('run(client, [b"DELETE FROM ", &key.table[..]].concat())?;', "FROM …"),
    ('run(client, [b"LOCK TABLE ", name, b" IN SHARE MODE"].concat())?;', "LOCK TABLE …"),
    ('const ALL: &CStr = c"\n    SELECT count(*)\n    FROM public.orders";', "FROM public.orders"),
    ('client.select("REINDEX TABLE " + &name);', "TABLE …"),
])  # fmt: skip
def test_another_place_is_found_in_rust(code, place):
    assert of_rust(code) == {place}


def test_what_is_no_table_of_others_is_not_meant():
    assert of_others("""
        CREATE TABLE t (id bigint); INSERT INTO t VALUES (1); REVOKE INSERT ON t FROM PUBLIC; -- FROM nowhere
        WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT a FROM r) SELECT extract(epoch FROM now()) FROM r JOIN pg_class c ON true
        WHERE a IS DISTINCT FROM b; SELECT * FROM generate_series(1, 2); TABLE flake_layouts; SELECT flake_convert('t', 'twitter')
    """) == set()  # fmt: skip
    assert of_rust('// FROM {table}\nlet hint = "Run ALTER TABLE … ADD PRIMARY KEY.";') == set()
