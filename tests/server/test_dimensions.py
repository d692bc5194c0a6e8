"""Every function in each dimension once: over rows, with named arguments, in partitions, views and functions, in databases of
other encodings, time zones, states of transactions, and on timelines. The results must equal the results of one call at a
time."""

import subprocess
import time

import psycopg
import pytest

import surface
from conftest import as_server, bindir
from dimensions import (
    DATABASES,
    EDITIONS,
    FORMS,
    Function,
    after_an_error,
    check_each,
    fill,
    outcome,
    unlike,
    without_nulls,
)  # fmt: skip
from memory import peak_memory


@pytest.fixture(scope="module")
def server(servers):
    server = servers("max_prepared_transactions=2", "fsync=off", "timezone=UTC", extension=False)
    server.sql("CREATE ROLE keeper LOGIN; CREATE ROLE stranger LOGIN; CREATE ROLE outsider LOGIN;"
               "CREATE ROLE watcher LOGIN IN ROLE pg_monitor;"
               "CREATE ROLE admin LOGIN NOINHERIT IN ROLE postgres")
    for name in DATABASES:
        fill(server, name)
    return server


@pytest.fixture(scope="module")
def functions(server):
    """The functions of both editions, and what they return when they are called one at a time."""
    found = {}
    for edition, (where, rows) in EDITIONS.items():
        with server.connect(dbname=edition, autocommit=False) as db:
            listed = [Function(row, rows) for row in db.execute(surface.CATALOG.format(where)).fetchall()]
            db.rollback()
            unknown = rows.keys() - {function.signature for function in listed}
            assert not unknown, f"there is no {unknown}"
            found[edition] = {one: outcome(db, one, one.plain()) for one in listed if not one.why_not}
            failed = {one.signature: error for one, error in found[edition].items() if isinstance(error, str)}
            assert failed == {}
    return found


both = pytest.mark.parametrize("edition", EDITIONS)


@pytest.mark.matrix
@both
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_each_form_of_a_call(server, functions, edition, form):
    with server.connect(dbname=edition, autocommit=False) as db:

        def different(function):
            if FORMS[form](function):
                return None
            before, queries = form(function)
            found = without_nulls(function, outcome(db, function, queries, before))
            expected = outcome(db, function, function.plain(text=True))
            if form is after_an_error and not isinstance(expected, str):
                expected = sorted(expected[0] * 2, key=repr), expected[1]
            return unlike(found, expected)

        check_each(functions, edition, different)


@pytest.mark.matrix
@both
def test_results_are_values_of_their_types(server, functions, edition):
    """A value that a function assembles itself equals the value that PostgreSQL reads from its text."""
    with server.connect(dbname=edition, autocommit=False) as db:

        def different(function):
            if function.kind == "p" or function.type in ("void", "record", "cstring", "anyelement"):
                return None
            calls = [f"SELECT r IS DISTINCT FROM r::text::{function.type} FROM (SELECT {function.call(row)} AS r) s"
                     for row in function.rows]
            statements = [*filter(None, [function.row.before]), *calls]
            found = [row for statement in statements for row in db.execute(statement).fetchall()]
            db.rollback()
            return [row for row in found if row == (True,)]

        check_each(functions, edition, different)


@both
def test_arguments_that_are_left_out(server, functions, edition):
    with server.connect(dbname=edition, autocommit=False) as db:

        def different(function):
            for left in range(1, len(function.defaults) + 1):
                for row in function.rows:
                    full = row[:-left] + function.defaults[-left:]
                    short, full = (
                        outcome(db, function, [function.query(function.call(given), full, 0)]) for given in (row[:-left], full)
                    )
                    if short != full:
                        return unlike(short, full)
            return None

        check_each(functions, edition, different)


@both
def test_filters_over_partitions_of_partitions(server, functions, edition):
    with server.connect(dbname=edition, autocommit=False) as db:

        def different(function):
            if not (function.is_constant and function.types[:1] in (["bigint"], ["sno"]) and function.names[0] == "id"):
                return None
            table, rows = f"{function.types[0]}s", []
            for row in function.rows:
                call, value = function.call(["id", *row[1:]]), function.call(row)
                # The planner does not see through OFFSET.
                seen, read = f"FROM {table} WHERE {call}", f"FROM (SELECT id, {call} AS r FROM {table} OFFSET 0) s WHERE r"
                for where in (f"{operator} {value}" for operator in ["<", "<=", "=", ">=", ">"]):
                    both = f"SELECT array(SELECT id {seen} {where} ORDER BY id), array(SELECT id {read} {where} ORDER BY id)"
                    rows.append((where, db.execute(both).fetchone()))
            return [(where, pair) for where, pair in rows if pair[0] != pair[1]]

        check_each(functions, edition, different)


def test_objects_that_name_a_layout_or_a_key_keep_it(server, functions):
    """A view with each function, whose layout or key is the argument of that name."""
    with server.connect(dbname="main", user="keeper", autocommit=False) as db:

        def is_dropped(function):
            kind = next((name for name in ("key", "layout") if name in function.names), None)
            if not function.is_constant or not kind:
                return None
            row = [f"NULL::{type}" for type in function.types]
            row[function.names.index(kind)] = name = "'unused1'" if kind == "layout" else "'usr'"
            db.execute(f"CREATE VIEW naming AS SELECT {function.call(row)}; SAVEPOINT before")
            try:
                db.execute(f"SELECT flake_drop_{kind}({name})")
                return f"the {kind} was dropped"
            except psycopg.errors.DependentObjectsStillExist:
                db.execute("ROLLBACK TO before")
                if kind == "key":
                    db.execute("DROP SERVER usr CASCADE")
                    said = db.execute("SELECT FROM flake_check() WHERE NOT ok AND name = 'keys' AND detail ~ 'naming'").fetchall()
                    return None if said else "flake_check does not miss the key"
            finally:
                db.rollback()
            return None

        check_each(functions, "main", is_dropped)


@pytest.mark.parametrize("change", ["DROP USER MAPPING FOR PUBLIC SERVER {}", *[
    f"ALTER USER MAPPING FOR PUBLIC SERVER {{}} OPTIONS ({option})" for option in (
        "DROP key1", "DROP key2", "SET key1 '00000000000000000000000000000000'", "SET key2 '00000000000000000000000000000000'")]])
def test_the_view_says_which_secrets_a_key_lacks(server, change):
    with server.connect(dbname="main", user="keeper", autocommit=False) as db:
        stored = "SELECT bool_and(stored) FROM flake_keys WHERE name = 'old'"
        assert db.execute(stored).fetchone() == (True,) and db.execute("SELECT flake_seal(1, 'old')").fetchone()
        db.execute(change.format("old"))
        assert db.execute(stored).fetchone() == (False,)
        assert pytest.raises(psycopg.Error, db.execute, "SELECT flake_seal(1, 'old')").value.sqlstate == "55000"


def test_a_view_of_one_key_or_one_role_shows_no_other(server):
    with server.connect(dbname="main", user="keeper", autocommit=False) as db:
        shown = "SELECT * FROM flake_keys WHERE name = 'old' ORDER BY version"
        expected = db.execute(shown).fetchall()
        assert [row[3].upper for row in expected] == [1000, None]
        db.execute("DROP SERVER ord CASCADE; DROP SERVER usr CASCADE")
        assert db.execute(shown).fetchall() == expected
        assert db.execute("SELECT count(*) > 2 FROM flake_candidates").fetchone() == (True,)
        db.rollback()
    with server.connect(dbname="main", user="outsider") as db:
        assert db.execute("SELECT * FROM flake_candidates").fetchall() == []


def in_zone(zone, dates, intervals):
    return [f"SET LOCAL timezone = '{zone}'; SET LOCAL datestyle = '{dates}'; SET LOCAL intervalstyle = '{intervals}'"]


ISOLATION = "SET TRANSACTION ISOLATION LEVEL"
PLACES = {
    "Kiritimati": in_zone("Pacific/Kiritimati", "SQL, DMY", "iso_8601"),
    "Lord Howe": in_zone("Australia/Lord_Howe", "German", "sql_standard"),
    "Saint John's": in_zone("America/St_Johns", "Postgres, MDY", "postgres_verbose"),
    "read only": ["SET TRANSACTION READ ONLY"],
    "repeatable read": [f"{ISOLATION} REPEATABLE READ", "SELECT 1"],
    "serializable": [f"{ISOLATION} SERIALIZABLE"],
    "after a subtransaction": ["SAVEPOINT a", "CREATE TABLE gone ()", "ROLLBACK TO a"],
}


def is_exempt(function, place):
    """A time without a zone is one of the session, and a drawing has times as the session writes them."""
    is_local = {"date", "timestamp without time zone"} & {*function.types} or "explain" in function.name
    return place in list(PLACES)[:3] and is_local


@pytest.mark.matrix
@both
@pytest.mark.parametrize("place", PLACES)
def test_sessions_and_transactions_of_each_kind(server, functions, edition, place):
    with server.connect(dbname=edition, autocommit=False) as db:

        def different(function):
            where = {"then" if place == "read only" else "before": PLACES[place]}
            found, expected = outcome(db, function, function.plain(), **where), functions[edition][function]
            expected = function.row.refused.get(place, expected)
            return None if is_exempt(function, place) else unlike(found, expected)

        check_each(functions, edition, different)


@pytest.mark.matrix
@both
def test_transactions_that_are_prepared(server, functions, edition):
    """Another session ends them."""
    with server.connect(dbname=edition, autocommit=False) as db, server.connect(dbname=edition) as other:

        def different(function):
            if isinstance(functions[edition][function], str):
                return None
            for statement in [*filter(None, [function.row.before]), *function.plain()]:
                db.execute(statement)
            db.execute("PREPARE TRANSACTION 'called'")
            db.rollback()
            other.execute("ROLLBACK PREPARED 'called'")
            found = outcome(db, function, function.plain())
            return unlike(found, functions[edition][function])

        check_each(functions, edition, different)


@pytest.mark.matrix
@pytest.mark.parametrize("database", [name for name, encoding in DATABASES.items() if encoding != "UTF8"])
def test_databases_of_other_encodings(server, functions, database):
    with server.connect(dbname=database, autocommit=False, client_encoding=DATABASES[database]) as db:

        def different(function):
            found, expected = outcome(db, function, function.plain()), functions["main"][function]
            return unlike(found, expected)

        check_each(functions, "main", different)


# Roles, how a session becomes them, and which functions they may call.
ROLES = [
    ("stranger", "", ["everybody", "setter"]), ("watcher", "", ["everybody", "monitor"]),
    ("keeper", "", ["everybody", "setter", "owner"]),
    ("admin", "SET ROLE postgres", ["everybody", "monitor", "setter", "owner", "superuser"]),
    ("postgres", "SET ROLE stranger", ["everybody", "setter"]),
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(("role", "becomes", "allowed"), ROLES, ids=[f"{role} {becomes}" for role, becomes, _ in ROLES])
def test_roles(server, functions, role, becomes, allowed):
    with server.connect(dbname="main", user=role, autocommit=False) as db:

        def different(function):
            found = outcome(db, function, function.plain(), [becomes] if becomes else [])
            who = "superuser" if function.schema == "flake_internal" else function.row.who
            expected = functions["main"][function] if who in allowed else "42501"
            return unlike(found, expected)

        check_each(functions, "main", different)


@pytest.mark.matrix
def test_a_role_gains_nothing_by_what_its_session_has_called_before(server, functions):
    """The outsider was granted nothing."""
    refused = set()
    with server.connect(dbname="main", autocommit=False) as db, server.connect(
            dbname="main", user="outsider", autocommit=False) as fresh:

        def different(function):
            before, then = [*filter(None, [function.row.before]), "SAVEPOINT a"], ["ROLLBACK TO a", "SET LOCAL ROLE outsider"]
            called = [*before, *function.plain(), *then]
            for query in function.plain():
                expected = outcome(fresh, function, [query])
                refused.update([function.signature] if expected == "42501" else [])
                if wrong := unlike(outcome(db, function, [query], called), expected):
                    return wrong
            return None

        check_each(functions, "main", different)
    assert {"flake_seal(bigint,text)", "flake_unseal(uuid,text)", "flake_sequences.nextval(regclass)"} <= refused


TREES = """DO $$ BEGIN FOR n IN 1 .. 150 LOOP EXECUTE format('CREATE VIEW tree%s AS SELECT flake_decode(%s) AS x, %s AS y', n, n,
    (SELECT string_agg(format('(%s + length(%L))', i, repeat('x', 20)), ' + ') FROM generate_series(1, 60) i));
    END LOOP; END $$"""
# How much memory of its own a session may need for a call beside large trees, and for many calls, in MB.
ONCE, MANY = 12, 0.7


@pytest.mark.matrix
@both
def test_memory(server, functions, edition):
    """One call beside large trees, and then many."""
    server.sql("DROP DATABASE IF EXISTS large")
    server.sql(f"CREATE DATABASE large TEMPLATE {edition} OWNER keeper")
    server.connect(dbname="large").execute(TREES)

    def grows(function):
        if function.kind == "p" or isinstance(functions[edition][function], str):
            return None
        with server.connect(dbname="large", autocommit=False, options="-c jit=off") as db:
            db.execute("SELECT flake_next('twitter'), flake_decode(1)")
            first = peak_memory(db)
            began = time.monotonic()
            outcome(db, function, function.plain()[:1])
            once, seconds = peak_memory(db) - first, time.monotonic() - began
            if function.row.state or function.row.who == "superuser" or seconds > 0.1:
                return once if once > ONCE else None
            if function.row.before:
                db.execute(function.row.before)
            source = f"FROM ({function.values(with_nulls=False)}) v({', '.join(['n', *function.columns])})"
            called = f"SELECT {function.call(function.columns)} AS r {source}, generate_series(1, %s) g OFFSET 0"
            call = f"SELECT count(r) FROM ({called}) s"
            began = time.monotonic()
            db.execute(call % 100)
            calls, before = min(10_000, int(50 / (time.monotonic() - began))), peak_memory(db)
            db.execute(call % calls)
            many = peak_memory(db) - before
            return (once, many, calls) if once > ONCE or many > MANY else None

    check_each(functions, edition, grows)


@pytest.mark.matrix
@pytest.mark.parametrize("timeline", [9, 10, 16, 2**31])
def test_timelines(server, functions, timeline):
    """As after so many promotions."""
    def begin():
        command = [bindir() / "pg_resetwal", "-l", f"{timeline:08X}0000000A00000009", server.dir / "data"]
        subprocess.run(as_server(*map(str, command)), check=True, stdout=subprocess.DEVNULL)

    server.restart(while_stopped=begin)
    # Nothing says which turns the timelines before had.
    server.connect(dbname="main").execute("SELECT flake_accept_turn()")
    assert server.value("SELECT timeline_id FROM pg_control_checkpoint()") % 2**32 == timeline
    for edition in EDITIONS:
        with server.connect(dbname=edition, autocommit=False) as db:

            def different(function, db=db, edition=edition):
                # These have changed the server.
                if function.row.who == "superuser":
                    return None
                found, expected = outcome(db, function, function.plain()), functions[edition][function]
                return unlike(found, expected)

            check_each(functions, edition, different)
