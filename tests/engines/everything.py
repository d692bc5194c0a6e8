"""Data of every kind that depends on flake, for tests of copies, restores and upgrades, and checks that it is whole."""

import clients
from clients import Made
from standing_clock import ROWS, next_unit, server_at_0

# The defaults of the columns of the table `kept`: built-in layouts, custom ones, a batch, the type sno.
KINDS = clients.KINDS | {
    "ours": "flake_next('ours')::text",
    "tagged": "flake_next('Tagged.7', 7)::text",
    "batched": "one_of_a_batch()::text",
}

LAYOUTS = """
    SELECT flake_create_layout('ours', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z", "text": "base62"}');
    SELECT flake_create_layout('Tagged.7', '{
        "epoch": "2025-01-01T00:00:00Z", "tick": "10ms",
        "fields": [ {"name": "ticks", "bits": 39, "role": "timestamp"}, {"name": "kind", "bits": 4, "role": "tag"},
                    {"name": "worker", "bits": 10, "role": "worker"}, {"name": "number", "bits": 10, "role": "sequence"} ] }');
    COMMENT ON SERVER ours IS 'from 2024 on'"""

TABLES = """
    CREATE FUNCTION one_of_a_batch() RETURNS bigint BEGIN ATOMIC SELECT max(id) FROM flake_batch('snowflake', 1) id; END;
    CREATE TABLE kept (
        twitter bigint PRIMARY KEY DEFAULT flake_next('twitter'),
        base64id bigint UNIQUE DEFAULT flake_next('base64id') & ~511,
        sno sno UNIQUE DEFAULT sno_next(),
        ours bigint UNIQUE DEFAULT flake_next('ours'),
        tagged bigint UNIQUE DEFAULT flake_next('Tagged.7', 7),
        batched bigint UNIQUE DEFAULT one_of_a_batch(),
        created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(twitter)) STORED,
        code text GENERATED ALWAYS AS (flake_to_text(ours, 'ours')) STORED,
        since timestamptz GENERATED ALWAYS AS (sno_timestamp(sno)) STORED,
        CHECK (flake_timestamp(ours, 'ours') > '2024-01-01Z'));
    COMMENT ON COLUMN kept.ours IS 'in a layout of our own';
    CREATE VIEW decoded AS
        SELECT twitter, (flake_decode(tagged, 'Tagged.7')).*, flake_during(ours, '[2024-01-01Z,)', 'ours') FROM kept;
    CREATE MATERIALIZED VIEW latest AS SELECT max(sno) AS sno, max(flake_timestamp(tagged, 'Tagged.7')) AS at FROM kept;
    CREATE TABLE years (id bigint PRIMARY KEY DEFAULT flake_next('ours')) PARTITION BY RANGE (id);
    CREATE TABLE years_before PARTITION OF years FOR VALUES FROM (MINVALUE) TO (flake_min('2030-01-01Z', 'ours'));
    CREATE TABLE years_after PARTITION OF years FOR VALUES FROM (flake_min('2030-01-01Z', 'ours')) TO (MAXVALUE);
    CREATE TABLE times (id bigint DEFAULT flake_next('ours')) PARTITION BY RANGE (flake_timestamp(id, 'ours'));
    CREATE TABLE times_all PARTITION OF times FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
    CREATE TABLE hashed (id sno PRIMARY KEY DEFAULT sno_next(3)) PARTITION BY HASH (id);
    CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1)"""

# An index of every kind, each on its own table, and a condition that uses it to find a sno and a bigint.
INDEXES = {
    "by_btree": ("INDEX {} ON {} (id)", "id >= '{}'"),
    "by_uniqueness": ("UNIQUE INDEX {} ON {} (id DESC) INCLUDE (ours)", "id = '{}'"),
    "by_hash": ("INDEX {} ON {} USING hash (id)", "id = '{}'"),
    "by_brin": ("INDEX {} ON {} USING brin (id)", "id >= '{}'"),
    "by_gin": ("INDEX {} ON {} USING gin ((ARRAY[id]))", "ARRAY[id] @> ARRAY['{}'::sno]"),
    "by_time": ("INDEX {} ON {} (sno_timestamp(id))", "sno_timestamp(id) <= sno_timestamp('{}')"),
    "by_part": ("INDEX {} ON {} (id) WHERE sno_metabyte(id) = 2", "id >= '{}' AND sno_metabyte(id) = 2"),
    "by_uuid": ("INDEX {} ON {} ((id::uuid))", "id::uuid = '{}'::sno::uuid"),
    "by_own_time":
        ("INDEX {} ON {} (flake_timestamp(ours, 'ours'))", "flake_timestamp(ours, 'ours') = flake_timestamp({1}, 'ours')"),
    "by_own_hash": ("INDEX {} ON {} USING hash (ours)", "ours = {1}"),
    "by_own_brin": ("INDEX {} ON {} USING brin (ours)", "ours <= {1}"),
}
TABLE = "CREATE TABLE {0}s (id sno DEFAULT sno_next(2), ours bigint DEFAULT flake_next('ours')); CREATE {1}"

# A table of an application, whose sequence makes IDs.
ADOPTED = """
    CREATE EXTENSION flake_sequences;
    CREATE TABLE adopted (id bigserial PRIMARY KEY, v int);
    CALL flake_adopt('adopted', 'twitter')"""
# The objects of the extension and of its layouts, with comments and with the privileges of roles other than the owner.
CATALOG = """
    WITH objects AS (
        SELECT classid, objid FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
           AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')
        UNION SELECT 'pg_foreign_server'::regclass, oid FROM pg_foreign_server
    ), access AS (
        SELECT 'pg_proc'::regclass, oid, COALESCE(proacl, acldefault('f', proowner)), proowner FROM pg_proc UNION ALL
        SELECT 'pg_class'::regclass, oid, relacl, relowner FROM pg_class UNION ALL
        SELECT 'pg_type'::regclass, oid, COALESCE(typacl, acldefault('T', typowner)), typowner FROM pg_type UNION ALL
        SELECT 'pg_foreign_server'::regclass, oid, srvacl, srvowner FROM pg_foreign_server
    )
    SELECT pg_describe_object(classid, objid, 0), obj_description(objid, classid::regclass::name), owner::regrole::text,
           ARRAY(SELECT grantee::regrole || ' ' || privilege_type FROM aclexplode(acl) WHERE grantee <> owner ORDER BY 1)
    FROM objects LEFT JOIN access AS a (class, object, acl, owner) ON (class, object) = (classid, objid) ORDER BY 1"""
RELATIONS = "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v', 'm') AND relnamespace = 'public'::regnamespace"
CONTENT = "SELECT count(*), md5(string_agg(r::text, ' ' ORDER BY r::text)) FROM {} r"
# How many IDs a server can make depends on flake.node_count.
LAYOUT = "to_jsonb(l) - 'ids_per_second'"
WITHOUT_INDEXES = "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off"


def server_with_everything(servers, *settings):
    """A server whose clock stands a few milliseconds after 0, and the IDs that it has made."""
    # The rows are more than sessions can insert while the clock stands.
    server, made = server_at_0(servers, *settings, fill=fill), Made(KINDS)
    next_unit(server)
    return server, made


def fill(server, **options):
    with server.connect(**options) as db:
        db.execute(LAYOUTS)
        db.execute(TABLES)
        db.execute(ADOPTED)
        for name, (index, _) in INDEXES.items():
            db.execute(TABLE.format(name, index.format(name, f"{name}s")))
        db.execute("GRANT SELECT ON kept TO pg_monitor; GRANT USAGE ON FOREIGN SERVER ours TO pg_monitor")
        insert_everywhere(db)


def insert_everywhere(db):
    """Inserts rows with the defaults of every table. Unique indexes fail if an ID repeats."""
    db.execute(f"INSERT INTO kept SELECT FROM {ROWS}")
    for table in ["years", "times", "hashed", "adopted", *(f"{name}s" for name in INDEXES)]:
        db.execute(f"INSERT INTO {table} SELECT FROM generate_series(1, 100)")
    db.execute("REFRESH MATERIALIZED VIEW latest")


def seen(db, catalog=True):
    """Returns the content that a copy must have. Some copies leave out the objects of the extension."""
    relations = [name for name, in db.execute(RELATIONS).fetchall() if not name.startswith("flake_")]
    content = {name: db.execute(CONTENT.format(name)).fetchone() for name in relations}
    layouts = db.execute(f"SELECT {LAYOUT} FROM flake_layouts l WHERE source = 'custom' ORDER BY name").fetchall()
    assert len(content) > 15 and len(layouts) == 2
    return content, layouts, db.execute(CATALOG).fetchall() if catalog else None


def use_indexes(db):
    """Checks that each index is used, and that it finds the same rows as a scan of its table."""
    for name, (_, condition) in INDEXES.items():
        query = f"SELECT count(*) FROM {name}s WHERE {condition.format(*middle(db, name))}"
        with db.transaction():
            db.execute("SET LOCAL enable_seqscan = off")
            plan = "\n".join(line for line, in db.execute(f"EXPLAIN (COSTS OFF) {query}"))
            assert f" {name}" in plan.replace(f" on {name}s", ""), plan
            found = db.execute(query).fetchone()
        with db.transaction():
            db.execute(WITHOUT_INDEXES.replace("SET", "SET LOCAL"))
            assert db.execute(query).fetchone() == found and found > (0,), name


def middle(db, name):
    return db.execute(f"SELECT id, ours FROM {name}s ORDER BY id LIMIT 1 OFFSET 50").fetchone()


def assert_whole(server, before, catalog=True, **options):
    """Checks that a copy has the content that its original had, and that its indexes work."""
    with server.connect(**options) as db:
        content, layouts, objects = seen(db, catalog)
        assert before[0].items() <= content.items()
        assert before[1] == layouts
        # PostgreSQL 17 and later list arrays too.
        assert objects is None or [object for object in before[2] if object not in objects] == []
        use_indexes(db)


def assert_well(server, **options):
    """Checks that rows can be inserted everywhere at the current time, and that flake_check finds nothing."""
    # One of two nodes makes fewer IDs of base64id than flake_check wants.
    findings = "SELECT * FROM flake_check() WHERE ok IS FALSE AND name <> 'rates'"
    with server.connect(**options) as db:
        insert_everywhere(db)
        use_indexes(db)
        assert db.execute(findings).fetchall() == []
