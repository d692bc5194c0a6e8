"""Custom layouts in catalogs that others have changed: by hand, in another transaction, or in a hostile schema."""

import hashlib
import json

import psycopg
import psycopg.types.json
import pytest

WRAPPER = "FOREIGN DATA WRAPPER flake_layout OPTIONS (definition '{\"like\": \"si\"}')"


def create(db, name, **definition):
    db.execute("SELECT flake_create_layout(%s, %s)", (name, psycopg.types.json.Jsonb(definition)))


def by_hand(name, definition):
    """A layout as flake_create_layout stored it in another version."""
    text = json.dumps(definition)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"CREATE SERVER {name} VERSION '{fingerprint}' FOREIGN DATA WRAPPER flake_layout OPTIONS (definition '{text}')"


@pytest.fixture
def database(server, request):
    """A database of its own."""
    name = f"catalog_{abs(hash(request.node.name))}"
    options = getattr(request, "param", "")
    server.sql(f"CREATE DATABASE {name} TEMPLATE template0 {options}")
    with server.connect(dbname=name) as db:
        db.execute("CREATE EXTENSION flake")
    return name


def notices(db):
    found = []
    db.add_notice_handler(lambda notice: found.append((notice.severity, notice.message_primary)))
    return found


def test_a_layout_is_found_by_an_older_snapshot(server, database):
    """Layouts are read from the newest catalog, even if the transaction sees older tables."""
    with server.connect(dbname=database) as db, server.connect(dbname=database) as other:
        create(other, "gone", like="si")
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_foreign_server")
        other.execute("SELECT flake_drop_layout('gone')")
        create(other, "new", like="si")
        assert db.execute("SELECT array_agg(name) FROM flake_layouts WHERE source = 'custom'").fetchone() == (["new"],)
        hint = pytest.raises(psycopg.Error, db.execute, "SELECT flake_next('gone')").value.diag.message_hint
        assert "gone" not in hint and "new" in hint


@pytest.mark.parametrize("database", ["", "ENCODING LATIN1 LC_COLLATE 'C' LC_CTYPE 'C'"], indirect=True)
def test_servers_that_are_not_layouts_do_not_hide_others(server, database):
    """One server has a wrong VERSION, one has none, and one has a name that is not ASCII. The others are shown and used."""
    with server.connect(dbname=database) as db:
        seen = notices(db)
        create(db, "mine", like="si")
        db.execute(f"CREATE SERVER wrong VERSION 'x' {WRAPPER}")
        db.execute(f"CREATE SERVER without {WRAPPER}")
        db.execute(f'CREATE SERVER "größe" {WRAPPER}')
        db.execute(f'CREATE SERVER twitter {WRAPPER}')
        rows = db.execute("SELECT name, source FROM flake_layouts WHERE source = 'custom' OR name = 'twitter'").fetchall()
        assert len(rows) == 2 and rows[1] == ("mine", "custom") and rows[0][1] != "custom"
        changed = ["without", "wrong"]
        assert seen == [("WARNING", f'definition of layout "{name}" has been changed') for name in changed]
        error = pytest.raises(psycopg.Error, db.execute, "SELECT flake_next('min')").value
        assert error.sqlstate == "22023" and 'Perhaps you mean "mine".' in error.diag.message_hint
        for name in ["wrong", "without"]:
            error = pytest.raises(psycopg.Error, db.execute, f"SELECT flake_next('{name}')").value
            assert error.sqlstate == "55000"
            db.execute(f"SELECT flake_drop_layout('{name}')")
        # A foreign server that is not a layout made by flake does not take the place of a built-in one.
        assert db.execute("SELECT flake_timestamp(0, 'twitter')").fetchone()[0].year == 2010
        assert db.execute("SELECT count(*) FROM flake_check() WHERE ok IS NULL").fetchone() is not None


def test_a_custom_layout_with_a_built_in_name_is_not_used(server, database):
    """All built-in layouts have existed since the first release, so such a custom one was renamed or made by hand.
    tests/libraries has a library that treats all of them as later ones."""
    with server.connect(dbname=database) as db:
        seen = notices(db)
        db.execute(by_hand("tsid", {"like": "twitter", "epoch": "2015-01-01T00:00:00Z"}))
        assert db.execute("SELECT flake_timestamp(0, 'tsid')").fetchone()[0].year == 2020
        rows = db.execute("SELECT source FROM flake_layouts WHERE name = 'tsid'").fetchall()
        assert len(rows) == 1 and rows[0][0] != "custom"
        db.execute("SELECT flake_internal.flake_record_mark()")
        assert seen == []
        db.execute("SELECT flake_drop_layout('tsid')")
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            db.execute("SELECT flake_drop_layout('tsid')")
        with pytest.raises(psycopg.errors.DuplicateObject):
            create(db, "tsid", like="twitter")


def test_definitions_are_stored_whole(server, database):
    """The layout that `like` names is resolved, so that a definition keeps its meaning. Definitions of older versions can be
    read."""
    with server.connect(dbname=database) as db:
        names = [name for name, in db.execute("SELECT name FROM flake_layouts").fetchall()]
        unresolved = set()
        for name in names:
            create(db, f"like_{name}", like=name)
            query = "SELECT substr(srvoptions[1], length('definition=') + 1)::jsonb FROM pg_foreign_server WHERE srvname = %s"
            definition, = db.execute(query, (f"like_{name}",)).fetchone()
            assert definition.keys() >= {"epoch", "tick", "text"}
            if "like" in definition:
                unresolved.add(name)
            else:
                assert "fields" in definition
            columns = "epoch, tick, bits, fields, ids_per_tick, ends_at, sortable_until, text_form"
            query = f"SELECT ROW({columns})::text FROM flake_layouts WHERE name = %s"
            assert db.execute(query, (name,)).fetchone() == db.execute(query, (f"like_{name}",)).fetchone()
        # A definition cannot have a flag, or two fields with one name.
        assert unresolved == {"uniqueid_v3"}
        db.execute(by_hand("older", {"like": "si", "text": "base62"}))
        assert db.execute("SELECT length(flake_to_text(1, 'older'))").fetchone() == (9,)


@pytest.mark.parametrize(("type", "column", "call"), [
    ("flake_parts", "worker", "flake_decode(1)"), ("sno_parts", "metabyte", "sno_fields('2222222222222222')"),
])  # fmt: skip
def test_an_altered_row_type_is_an_error(server, database, type, column, call):
    with server.connect(dbname=database) as db:
        for alter in [f"ALTER ATTRIBUTE {column} TYPE text", "ADD ATTRIBUTE more text", f"DROP ATTRIBUTE {column}",
                      f"DROP ATTRIBUTE {column}, ADD ATTRIBUTE {column} bigint"]:  # fmt: skip
            db.execute(f"BEGIN; SELECT {call}; ALTER TYPE {type} {alter}")
            error = pytest.raises(psycopg.Error, db.execute, f"SELECT {call}").value
            assert (error.sqlstate, error.diag.message_primary) == ("55000", f"type {type} has been altered")
            db.execute("ROLLBACK")
        assert db.execute(f"SELECT ({call}).created_at IS NULL").fetchone() == (False,)


SHADOWS = """
    CREATE SCHEMA evil;
    CREATE FUNCTION evil.fail() RETURNS boolean LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'evil' USING ERRCODE = 'P6666'; END $$;
    DO $do$
    DECLARE o record;
    BEGIN
        FOR o IN SELECT typname, oid FROM pg_type
                 WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typcategory <> 'A' LOOP
            EXECUTE format('CREATE DOMAIN evil.%I AS pg_catalog.%I CHECK (evil.fail())', o.typname, o.typname);
        END LOOP;
        FOR o IN SELECT DISTINCT proname, pg_get_function_identity_arguments(oid) AS arguments, proargtypes::oid[] AS types
                 FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND provariadic = 0
                 AND proargmodes IS NULL AND NOT EXISTS (
                    SELECT FROM unnest(proargtypes) a JOIN pg_type t ON t.oid = a WHERE t.typtype = 'p') LOOP
            EXECUTE format('CREATE FUNCTION evil.%I(%s) RETURNS boolean LANGUAGE sql AS $$ SELECT evil.fail() $$', o.proname,
                (SELECT string_agg('pg_catalog.' || quote_ident(t.typname), ', ' ORDER BY n)
                 FROM unnest(o.types) WITH ORDINALITY u(type, n) JOIN pg_type t ON t.oid = u.type));
        END LOOP;
        FOR o IN SELECT DISTINCT oprname, l.typname AS l, r.typname AS r
                 FROM pg_operator JOIN pg_type l ON l.oid = oprleft JOIN pg_type r ON r.oid = oprright
                 WHERE oprnamespace = 'pg_catalog'::regnamespace AND l.typtype = 'b' AND r.typtype = 'b' LOOP
            EXECUTE format('CREATE OR REPLACE FUNCTION evil.fail(pg_catalog.%I, pg_catalog.%I) RETURNS boolean
                            LANGUAGE sql AS $$ SELECT evil.fail() $$', o.l, o.r);
            EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = pg_catalog.%I, RIGHTARG = pg_catalog.%I,
                            FUNCTION = evil.fail)', o.oprname, o.l, o.r);
        END LOOP;
        FOR o IN SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') LOOP
            EXECUTE format('CREATE VIEW evil.%I AS SELECT evil.fail() AS oid', o.relname);
        END LOOP;
    END $do$;
    GRANT USAGE ON SCHEMA evil TO PUBLIC"""

# Statements that run a query internally, and similar ones.
SHADOWED = [
    "SELECT FROM public.flake_layouts", "SELECT FROM flake_internal.flake_layouts()",
    "SELECT FROM public.flake_stat", "SELECT FROM public.flake_check()",
    "SELECT public.flake_create_layout('made', '{\"like\": \"si\"}')", "SELECT public.flake_next('made'), public.sno_next()",
    "SELECT public.flake_drop_layout('made')", "SELECT public.flake_accept_clock()", "SELECT public.flake_accept_turn()",
    "SELECT flake_internal.flake_record_mark()", "SELECT public.flake_decode(1)", "SELECT public.flake_explain(1)",
    "SELECT public.flake_publish_watermark()", "SELECT public.flake_watermark()",
    "SELECT public.flake_node(1)", "SELECT public.sno_node('2222222222222222')",
    "SELECT public.flake_make('2024-01-01Z', '{\"worker\": 1}')", "SELECT public.flake_during(1, '[2024-01-01Z,)')",
    "SELECT public.sno_during('2222222222222222', '[2024-01-01Z,)')",
]  # fmt: skip


def test_names_on_the_callers_search_path_are_not_called(server, database):
    """Functions and operators before pg_catalog in the caller's search_path are not called."""
    with server.connect(dbname=database) as db:
        db.execute(SHADOWS)
        create(db, "mine", like="si")
        db.execute("CREATE TABLE used (id bigint DEFAULT flake_next('mine'))")
        db.execute("SELECT flake_next('twitter'); SET search_path = evil, public, pg_catalog")
        for shadow in ["SELECT 1 + 1", "SELECT lower('A'::pg_catalog.text)", "SELECT 'a'::text"]:
            assert pytest.raises(psycopg.Error, db.execute, shadow).value.sqlstate == "P6666"
        for call in SHADOWED:
            db.execute(call)
        for call in ["SELECT public.flake_next('unknown')", "SELECT public.flake_drop_layout('mine')"]:
            assert pytest.raises(psycopg.Error, db.execute, call).value.sqlstate in ("22023", "2BP01")


@pytest.mark.matrix
def test_thousands_of_layouts_are_found_and_take_little_memory(server, database):
    """Everything that grows with the number of layouts stays small, and each layout is found."""
    with server.connect(dbname=database) as db:
        db.execute("""
            SELECT flake_create_layout('l' || n, jsonb_build_object('like', 'twitter', 'epoch',
                                                                    '2015-01-01Z'::timestamptz + n * interval '1 h'))
            FROM generate_series(1, 2000) n""")
        hint = pytest.raises(psycopg.Error, db.execute, "SELECT flake_timestamp(1, 'nothing')").value.diag.message_hint
        assert len(hint) < 2000 and hint.endswith("others, which the view flake_layouts shows.")
        epochs = "SELECT count(DISTINCT flake_timestamp(0, 'l' || n)) FROM generate_series(1, 2000) n"
        assert db.execute(epochs).fetchone() == (2000,)
        # Each layout has its own generator, and every ID lies in its layout's time. A server has lanes for a hundred of these.
        made = """SELECT count(DISTINCT (n, id)), bool_and(abs(extract(epoch FROM flake_timestamp(id, 'l' || n) - now())) < 100)
                  FROM (SELECT n, flake_next('l' || n) AS id FROM generate_series(1, 100) n, generate_series(1, 3) OFFSET 0) s"""
        assert db.execute(made).fetchone() == (300, True)
