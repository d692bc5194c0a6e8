"""Calls of the functions of tests/helpers/surface.py, in several forms, and how their results are compared."""

import psycopg

import managed
import surface
from surface import VALUES, Row

TAGGED = """SELECT flake_create_layout('tagged', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
    {"name": "t", "bits": 41, "role": "timestamp"}, {"name": "kind", "bits": 2, "role": "tag"},
    {"name": "w", "bits": 8, "role": "worker"}, {"name": "s", "bits": 12, "role": "sequence"}]}')"""
# Databases with their encoding and edition.
DATABASES = {"main": "UTF8", "latin1": "LATIN1", "sql_ascii": "SQL_ASCII", "euc_jp": "EUC_JP", "plain": "UTF8"}
EDITIONS = {"main": (surface.OF_EXTENSIONS, surface.ROWS), "plain": (surface.OF_MANAGED, surface.MANAGED)}


class Function:
    """A function of the catalog, with rows of arguments."""

    def __init__(self, catalog, rows):
        (self.name, self.signature, self.schema, self.kind, self.is_set, self.is_constant, self.type, self.types, names,
         self.defaults) = catalog
        self.row = rows.get(self.signature, Row())
        self.names = names or [""] * len(self.types)
        self.why_not = self.row if isinstance(self.row, str) else None
        if self.why_not:
            return
        named = [f"{name} {type}" for name, type in zip(self.names, self.types, strict=True)]
        keys = [name if name in VALUES else type for name, type in zip(named, self.types, strict=True)]
        usual = [[VALUES[key][(n + keys[:place].count(key)) % 3] for place, key in enumerate(keys)]
                 for n in range(0 if self.row.arguments else 3)]
        self.rows = self.row.arguments or usual
        if rows is surface.MANAGED:
            self.rows = [[value.replace("'mine'", "'tsid'") for value in row] for row in self.rows]
        self.rows = [[f"({value})::{column(type)}" for value, type in zip(row, self.types, strict=True)] for row in self.rows]
        self.columns = [f"a{place}" for place in range(len(self.types))]

    def call(self, arguments):
        given = [f"textout({value})" if type == "cstring" else value for value, type in zip(arguments, self.types, strict=False)]
        return f"{self.name}({', '.join(given)})"

    def query(self, call, arguments, n, source="", text=False):
        """Compares what a call returns, r, with the arguments that it had. A function that makes IDs also shows them."""
        if self.kind == "p":
            return f"CALL {call}"
        shape = f"CASE WHEN NOT r IS NULL THEN {self.row.shape.format(*arguments, r='r')} END"
        if text:
            shape = f"({shape})::text"
        columns = "".join(f", {name}" for name in arguments) if source else ""
        made = ", r" if self.row.makes else ""
        return f"SELECT {n} AS n, {shape} AS x{made} FROM (SELECT {n} AS n{columns}, {call} AS r {source}) s"

    def plain(self, text=False):
        """One call at a time."""
        return [self.query(self.call(row), row, n, text=text) for n, row in enumerate(self.rows)]

    def values(self, with_nulls):
        """Its rows of arguments. After each there is the same with a NULL in one place after another, with a negative number."""
        lines = []
        for n, row in enumerate(self.rows):
            lines.append([str(n), *row])
            if with_nulls and self.row.nulls:
                for place, type in enumerate(self.types):
                    lines.append(["-1", *row[:place], f"NULL::{column(type)}", *row[place + 1:]])
        return "VALUES " + ", ".join(f"({', '.join(line)})" for line in lines)


def column(type):
    return {"cstring": "text", "anyelement": "ids"}.get(type, type)


# The forms of a call: statements before it, and statements instead of one call for each row.


def over_rows(function):
    source = f"FROM ({function.values(with_nulls=True)}) v({', '.join(['n', *function.columns])})"
    return [], [function.query(function.call(function.columns), function.columns, "n", source, text=True)]


def lateral(function):
    source = f"FROM ({function.values(with_nulls=True)}) v({', '.join(['n', *function.columns])}) CROSS JOIN LATERAL"
    source = f"{source} (SELECT {function.call(function.columns)} AS f OFFSET 0) l"
    return [], [function.query("f", function.columns, "n", source, text=True)]


def named(function):
    orders = [list(zip(function.names, row, strict=True))[::-1] for row in function.rows]
    calls = [f"{function.name}({', '.join(f'{name} => {value}' for name, value in order)})" for order in orders]
    return [], [function.query(call, row, n, text=True) for n, (call, row) in enumerate(zip(calls, function.rows, strict=True))]


def nested(function):
    """In a view of a view and in a function of a function, over partitions of partitions."""
    columns = [f"{name} {column(type)}" for name, type in zip(function.columns, function.types, strict=True)]
    inner = function.query(function.call(function.columns), function.columns, "n", "FROM given", text=True)
    return [
        f"""CREATE TABLE given ({', '.join(['n int', *columns])}) PARTITION BY LIST (n);
            CREATE TABLE given0 PARTITION OF given FOR VALUES IN (0, 1) PARTITION BY RANGE (n);
            CREATE TABLE given0_low PARTITION OF given0 FOR VALUES FROM (0) TO (1);
            CREATE TABLE given0_high PARTITION OF given0 DEFAULT; CREATE TABLE given1 PARTITION OF given DEFAULT;
            INSERT INTO given {function.values(with_nulls=False)}""",
        f"CREATE VIEW inner_view AS {inner}", "CREATE VIEW outer_view AS SELECT * FROM inner_view",
        "CREATE FUNCTION inner_function() RETURNS SETOF outer_view LANGUAGE sql AS 'SELECT * FROM outer_view'",
        """CREATE FUNCTION outer_function() RETURNS SETOF outer_view LANGUAGE plpgsql AS
           'BEGIN RETURN QUERY SELECT * FROM inner_function(); END'""",
    ], ["SELECT * FROM outer_function()"]


def after_an_error(function):
    """In a handler of an exception, and in a block with one."""
    caught = """CREATE FUNCTION caught(query text) RETURNS SETOF record LANGUAGE plpgsql AS $$ BEGIN
        BEGIN RETURN QUERY EXECUTE query; PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;
        BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN
            BEGIN RETURN QUERY EXECUTE query; EXCEPTION WHEN too_many_rows THEN NULL; END;
        END;
    END $$"""
    columns = "n int, x text" + (f", r {function.type}" if function.row.makes else "")
    return [caught], [f"SELECT * FROM caught($query${query}$query$) c({columns})" for query in function.plain(text=True)]


FORMS = {
    over_rows: lambda function: function.kind == "p" and "a procedure is no expression",
    lateral: lambda function: function.kind == "p" and "a procedure is no expression",
    named: lambda function: not all(function.names) and "its arguments have no names",
    nested: lambda function: function.kind == "p" and "a procedure is no expression",
    after_an_error: lambda function: function.kind == "p" and "CALL has another form in PL/pgSQL",
}


def raw(db, query):
    """The rows in the binary format, which no setting of the session changes."""
    with db.cursor(binary=True) as cursor:
        cursor.execute(query)
        result = cursor.pgresult
        return [tuple(result.get_value(row, place) for place in range(result.nfields)) for row in range(result.ntuples)]


def outcome(db, function, queries, before=(), then=()):
    """Returns the rows of the queries and the state that they have left, or the error. All is undone."""
    try:
        for statement in [*before, *filter(None, [function.row.before]), *then]:
            db.execute(statement)
        found = [row for query in queries for row in raw(db, query)]
        state = raw(db, function.row.state) if function.row.state else None
        holds = not function.row.holds or db.execute(function.row.holds).fetchone()[0]
        assert holds, f"after {function.signature}"
    except psycopg.Error as error:
        return error.sqlstate
    finally:
        db.rollback()
    if function.row.makes:
        made = [row[2] for row in found if row[2] is not None]
        assert len(set(made)) == len(made), f"{function.signature} has made an ID twice"
        found = [row[:2] for row in found]
    # Partitions and catalogs are read in any order.
    return sorted(found, key=repr), state


def without_nulls(function, found):
    """Leaves out the rows of NULL arguments if their results are NULL."""
    if isinstance(found, str):
        return found
    rows, state = found
    nulls = [row for row in rows if row[0] == b"\xff\xff\xff\xff"]
    wanted = 0 if function.is_set or not function.row.nulls else len(function.rows) * len(function.types)
    return [row for row in rows if nulls != [(row[0], None)] * wanted or row not in nulls], state


def fill(server, name):
    """Fills a database. Its owner is not a superuser."""
    encoding = DATABASES[name]
    server.sql(f"CREATE DATABASE {name} OWNER keeper TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'")
    if name == "plain":
        managed.install(server, name)
        managed.create_pgcrypto(server, name)
        with server.connect(dbname=name) as db:
            db.execute(surface.KEYS + ";" + surface.PARTS)
        return
    with server.connect(dbname=name, user="keeper") as db:
        db.execute("CREATE EXTENSION flake; CREATE EXTENSION flake_sequences")
        for statement in [surface.KEYS, TAGGED, *surface.OBJECTS.split(";\n"), surface.PARTS]:
            db.execute(statement)
        db.execute("""GRANT ALL ON ALL TABLES IN SCHEMA public TO stranger, watcher;
                      GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO stranger;
                      GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO watcher;
                      GRANT USAGE ON FOREIGN SERVER usr, ord, old TO stranger, watcher""")


def unlike(found, expected):
    """Returns the differences, or None."""
    if found == expected:
        return None
    if isinstance(found, str) or isinstance(expected, str):
        return found, expected
    (rows, state), (expected_rows, expected_state) = found, expected
    return [f"{sign} {row}" for sign, some, others in (
        ("+", rows, expected_rows), ("-", expected_rows, rows), ("+", state or [], expected_state or []),
        ("-", expected_state or [], state or [])) for row in some if row not in others] or "other rows twice"


def check_each(functions, edition, difference):
    """Fails with the differences of functions."""
    wrong = {one.signature: found for one in functions[edition] if (found := difference(one))}
    assert not wrong
