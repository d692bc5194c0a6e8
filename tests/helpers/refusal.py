"""A server whose system refuses memory to sessions when a test says so; see refusal.c."""

import pathlib

SOURCE = pathlib.Path(__file__).with_suffix(".c")

FUNCTIONS = """
    CREATE FUNCTION refusing(anyelement, bigint) RETURNS anyelement VOLATILE STRICT LANGUAGE c AS '{library}', 'refusing';
    CREATE FUNCTION refusing(cstring, bigint) RETURNS cstring VOLATILE STRICT LANGUAGE c AS '{library}', 'refusing';
    CREATE FUNCTION refused_seconds() RETURNS float8 VOLATILE LANGUAGE c AS '{library}', 'refused_seconds'"""


def install(server):
    """Creates the functions of refusal.c in the database of the server's clients."""
    server.sql(FUNCTIONS.format(library=server.compile("refusal", SOURCE.read_text())))
