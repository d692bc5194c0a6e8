"""Pages of docs/reference with marks. The text after a mark comes from the catalog; FLAKE_ACCEPT writes it."""

import os
import re

import psycopg

import error_texts
from conftest import ROOT

PAGES = [ROOT / "docs" / "reference" / name for name in ("functions.md", "sequences.md", "settings.md", "formulas.md")]
MARK = re.compile(r"(?<=^<!-- catalog: )(\w+)((?: \w+)*)( -->\n)(.*?)(?=^<!-- end of catalog -->$)", re.M | re.S)
SHORTER = {"timestamp with time zone": "timestamptz", "timestamp without time zone": "timestamp", "'::text": "'"}

MEMBERS = """
    SELECT classid, objid FROM pg_depend
    WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
        AND refobjid IN (SELECT oid FROM pg_extension WHERE extname IN ('flake', 'flake_sequences'))"""
# Functions that implement operators, casts, aggregates or the type are left out.
FUNCTIONS = f"""
    SELECT p.oid, p.* FROM pg_proc p WHERE prokind IN ('f', 'p') AND ('pg_proc'::regclass::oid, p.oid) IN ({MEMBERS})
        AND NOT EXISTS (SELECT FROM pg_operator WHERE oprcode = p.oid)
        AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = p.oid)
        AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc = p.oid)
        AND NOT EXISTS (SELECT FROM pg_type WHERE p.oid IN (typinput, typoutput, typsend, typreceive, typanalyze))
        AND NOT EXISTS (SELECT FROM pg_aggregate WHERE p.oid IN (aggtransfn, aggcombinefn))"""


class Catalog:
    """Everything that a mark can ask for: the first word of a mark is a method, and the others are names. A function's errors are
    those that the introduction of the page does not name."""

    def __init__(self, db, calls, introduction=""):
        self.db, self.introduction, self.errors = db, introduction, {}
        for call in calls:
            self.note(call)

    def note(self, call):
        """Returns the error of a wrong call of a function."""
        error = None
        try:
            self.db.execute(f"SELECT {call}")
        except psycopg.Error as raised:
            error = raised.diag
        assert error, call
        # Statements before the wrong call make what it needs.
        name = call.rpartition("; SELECT ")[2].split("(")[0]
        self.errors.setdefault(name, {})[error_texts.of(error.message_primary)] = error.sqlstate

    def rows(self, query, *parameters):
        return self.db.execute(query, parameters).fetchall()

    def functions(self, *names):
        return "\n".join(f"### {name}\n\n{self.function(name)}" for name in names)

    def function(self, name):
        overloads = self.rows(
            f"""SELECT format('%%s(%%s)', proname, pg_get_function_arguments(oid))
                           || COALESCE(' → ' || pg_get_function_result(oid), ''),
                       obj_description(oid, 'pg_proc'), CASE prokind WHEN 'p' THEN 'procedure' ELSE concat_ws(', ',
                           CASE provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' ELSE 'volatile' END,
                           'parallel ' || CASE proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END,
                           CASE WHEN NOT proisstrict THEN 'called with NULL' END) END
                FROM ({FUNCTIONS}) f (id) WHERE proname = %s ORDER BY prosrc""", name
        )
        assert overloads, name
        lines = [f"`{shortened(signature)}`\\\n{sentence(comment)} *({labels})*\n" for signature, comment, labels in overloads]
        errors = [error for error in self.raised(name) if error not in self.introduction]
        return "\n".join([*lines, *([f"Errors: {'; '.join(errors)}\n"] if errors else [])])

    def raised(self, name):
        return [f"{linked(text)} ({sqlstate})" for text, sqlstate in sorted(self.errors.get(name, {}).items())]

    def list(self, *names):
        return table(["function", "purpose"], [
            [f"`{name}`", "; ".join(comment for comment, in self.rows(
                f"SELECT obj_description(oid, 'pg_proc') FROM ({FUNCTIONS}) f (id) WHERE proname = %s ORDER BY prosrc", name))]
            for name in names
        ])  # fmt: skip

    def schema(self, name):
        return table(["function", "returns"], self.rows(
            f"""SELECT format('`%%s.%%s(%%s)`', %s::text, proname, pg_get_function_identity_arguments(oid)),
                       obj_description(oid, 'pg_proc')
                FROM ({FUNCTIONS}) f (id) WHERE pronamespace = %s::regnamespace ORDER BY prosrc""", name, name
        ))  # fmt: skip

    def columns(self, relation):
        query = "SELECT COALESCE(obj_description(%s::regclass, 'pg_class'), obj_description(%s::regtype, 'pg_type'))"
        comment = self.rows(query, relation, relation)[0][0]
        columns = self.rows(
            """SELECT attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum) FROM pg_attribute
               WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum""", relation
        )
        rows = [[f"`{name}`", shortened(of_type), meaning] for name, of_type, meaning in columns]
        return f"{sentence(comment)}\n\n" + table(["column", "type", "meaning"], rows)

    def settings(self):
        return table(["setting", "default", "range", "set by", "meaning"], [
            [f"`{name}`", f"{value}{unit or ''}", f"{least} to {most}" if least else "on, off",
             {"user": "any user", "superuser": "superusers"}.get(context, "the server's configuration"), f"{short} {more}"]
            for name, value, unit, least, most, context, short, more in self.rows(
                """SELECT name, boot_val, unit, min_val, max_val, context, short_desc, extra_desc
                   FROM pg_settings, (SELECT flake_next('twitter')) load WHERE name LIKE 'flake.%%' ORDER BY name""")
        ])  # fmt: skip

    def layouts(self):
        return table(["layout", "fields, in bits", "tick", "epoch", "last tick", "IDs a second, of all workers", "source"], [
            [f"`{name}`", " · ".join(f"{field.get('name', 'unused')} {field['bits']}" for field in fields), f"{1000 * tick:g} ms",
             epoch.removesuffix("T00:00:00.000Z"), end, f"{float(ids) / tick:,.0f}" if makes else "only read", source]
            for name, fields, tick, epoch, end, ids, makes, source in self.rows(
                """SELECT name, fields, extract(epoch FROM tick)::float, to_char(epoch, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                          to_char(ends_at, 'YYYY-MM-DD'), ids_per_tick, generates, source FROM flake_layouts""")
        ])  # fmt: skip

    def formulas(self):
        """Expressions for programs without flake. A timestamp that is stored in reverse has none."""
        return table(["layout", "milliseconds since 1970, in UTC"], [
            [f"`{name}`", f"`{milliseconds(epoch, tick, fields)}`"]
            for name, fields, epoch, tick in self.rows(
                """SELECT name, fields, (extract(epoch FROM epoch) * 1000000)::bigint,
                          (extract(epoch FROM tick) * 1000000)::bigint
                   FROM flake_layouts WHERE source <> 'custom'""")
            if not any(field.get("reversed") for field in fields)
        ])  # fmt: skip

    def type(self):
        """The objects of the type sno, without its functions."""
        return table(["object", "meaning"], sorted(self.rows(
            f"""SELECT replace(pg_describe_object(classid, objid, 0), 'function ', 'aggregate '), obj_description(objid, relname)
                FROM ({MEMBERS}) m JOIN pg_class c ON c.oid = classid
                WHERE relname IN ('pg_operator', 'pg_cast', 'pg_opclass')
                   OR relname = 'pg_proc' AND EXISTS (SELECT FROM pg_aggregate WHERE aggfnoid = objid)"""
        )))  # fmt: skip


def milliseconds(epoch, tick, fields):
    """The expression for the time of an ID; epoch and tick are in microseconds."""
    at, = (number for number, field in enumerate(fields) if field["role"] == "timestamp")
    bits = fields[at]["bits"]
    shift, above = (sum(field["bits"] for field in part) for part in (fields[at + 1 :], fields[:at]))
    # Bit 63 is the sign, which a shift would repeat.
    ticks = f"((id >> {shift}) & {2**bits - 1})" if above or shift + bits == 64 else f"(id >> {shift})"
    unit = f" * {tick // 1000}" if tick > 1000 else f" / {1000 // tick}" if tick < 1000 else ""
    assert epoch % 1000 == 0 and (tick % 1000 == 0 or 1000 % tick == 0)
    return f"{ticks}{unit}" + (f" + {epoch // 1000}" if epoch else "")


def shortened(text):
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


def sentence(comment):
    return f"{comment[0].upper()}{comment[1:]}."


def linked(text):
    """A message, with a link to its entry in the questions if it has one."""
    entry = error_texts.entry(text)
    return f"[{text}](../faq.md#{error_texts.anchor(entry)})" if entry else text


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def named():
    """The functions that the pages have a place for, in order."""
    marks = [mark for page in PAGES for mark in MARK.findall(page.read_text())]
    return [name for kind, names, *_ in marks if kind in ("functions", "list") for name in names.split()]


def introduction(page):
    return MARK.split(page.read_text(), maxsplit=1)[0]


def check(server, page, calls):
    """Compares a page with the catalog, or writes it."""
    with server.connect() as db:
        db.execute("SET timezone = 'UTC'")
        catalog = Catalog(db, calls, introduction(page))
        wanted = MARK.sub(
            lambda mark: f"{mark[1]}{mark[2]}{mark[3]}\n{getattr(catalog, mark[1])(*mark[2].split())}\n", page.read_text()
        )
    if os.environ.get("FLAKE_ACCEPT"):
        page.write_text(wanted)
    else:
        assert page.read_text() == wanted, "scripts/test accept writes it"
