"""A used database: objects that depend on the extension, their contents, and the objects of the extension."""

from test_lifecycle import SCHEMA

MORE = """
    CREATE TABLE things (id sno PRIMARY KEY DEFAULT sno_next(),
                         at timestamptz GENERATED ALWAYS AS (sno_timestamp(id)) STORED);
    CREATE INDEX ON things USING hash (id);
    CREATE INDEX ON things USING brin (id);
    CREATE VIEW layouts AS SELECT name, tick FROM flake_layouts;
    CREATE VIEW still_open AS SELECT * FROM flake_open_transactions;
    CREATE MATERIALIZED VIEW parts AS SELECT (flake_decode(id, 'mine')).* FROM aaa;
    CREATE TABLE whole (parts flake_parts, other sno_parts);
    INSERT INTO whole SELECT flake_decode(flake_next('twitter')), sno_fields(sno_next());
    CREATE FUNCTION newest() RETURNS bigint LANGUAGE sql
        BEGIN ATOMIC SELECT max(id) FROM aaa WHERE flake_node(id, 'mine') = 0; END;
    INSERT INTO things SELECT FROM generate_series(1, 1000);
"""
USED = SCHEMA + MORE
CONTENT = """SELECT (SELECT array_agg(a ORDER BY id) FROM aaa a), (SELECT array_agg(t ORDER BY id) FROM things t),
                    (SELECT array_agg(t ORDER BY id) FROM tweets t), (SELECT array_agg(e ORDER BY id) FROM events e),
                    (SELECT array_agg(s ORDER BY id) FROM slices s), (SELECT array_agg(p ORDER BY p::text) FROM parts p),
                    (SELECT array_agg(w) FROM whole w), newest(),
                    (SELECT array_agg((name, epoch, tick, bits, fields, ids_per_tick, ends_at, text_form, generates)
                            ORDER BY name) FROM flake_layouts WHERE source = 'custom')"""
TABLES = ["tweets", "events", "aaa", "slices", "things"]

MEMBERS = """
    SELECT pg_describe_object(classid, objid, 0), objid,
           CASE classid WHEN 'pg_class'::regclass THEN pg_relation_filenode(objid) END
    FROM pg_depend
    WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
        AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')"""


def members(db):
    """The objects of the extension, by description, with their OIDs and files."""
    return {name: (oid, file) for name, oid, file in db.execute(MEMBERS).fetchall()}


def replaced(before, after):
    """The objects that were replaced. If flake_mark is replaced, a server that has not read the marks of all nodes in its file
    loses them."""
    return [
        f"{name}: {'its file was replaced' if oid == after[name][0] else 'it was dropped and created again'}"
        for name, (oid, file) in before.items() if name in after and after[name] != (oid, file)
    ]  # fmt: skip
