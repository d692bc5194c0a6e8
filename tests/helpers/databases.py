"""Databases in several encodings. They belong to a role without superuser that has created the extension in them, and that a
superuser lets call internal functions too."""

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
