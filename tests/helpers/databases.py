"""Databases in several encodings. They belong to a role without superuser that has created the extension in them, and that a
superuser lets call internal functions too."""

# The functions of the extension.
OBJECTS = """
    SELECT p.oid::regproc::text, array(SELECT format_type(t, NULL) FROM unnest(proargtypes::oid[]) t), proretset
    FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake') AND prokind = 'f'"""
ENCODINGS = ["UTF8", "LATIN1", "SQL_ASCII", "EUC_JP", "WIN1251"]


def create(server):
    server.sql("CREATE ROLE keeper LOGIN IN ROLE pg_monitor")
    for encoding in ENCODINGS:
        server.sql(f"CREATE DATABASE {encoding} OWNER keeper TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
        with connect(server, encoding) as db:
            db.execute("CREATE EXTENSION flake")
        server.connect(dbname=encoding.lower()).execute("GRANT USAGE ON SCHEMA flake_internal TO keeper")


def connect(server, encoding, **options):
    return server.connect(dbname=encoding.lower(), user="keeper", client_encoding="UTF8", **options)
