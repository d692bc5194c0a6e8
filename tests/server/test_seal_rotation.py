"""Secrets of keys of public IDs: from which ID on each is used, what a restored database lacks, and how a secret comes back."""

from datetime import timedelta

import psycopg
import pytest

SEALING = {
    "flake_seal": "SELECT flake_seal(id, 'gone') FROM t",
    "flake_seal_uuid": "SELECT flake_seal_uuid(id, 'gone') FROM t",
    "flake_unseal": "SELECT flake_unseal(sealed, 'gone') FROM t",
    "flake_unseal of a uuid": "SELECT flake_unseal(uuid, 'gone') FROM t",
    "flake_unseal_or_error": "SELECT flake_unseal_or_error(sealed, 'gone') FROM t",
    "flake_unseal_or_error of a uuid": "SELECT flake_unseal_or_error(uuid, 'gone') FROM t",
}


@pytest.fixture
def db(server):
    with server.connect(autocommit=False) as db:
        yield db
        db.rollback()


def refused(db, query):
    db.execute("SAVEPOINT before")
    error = pytest.raises(psycopg.Error, db.execute, query).value
    db.execute("ROLLBACK TO before")
    return error


def check(db, name="keys"):
    return db.execute("SELECT ok, detail, hint FROM flake_check() WHERE name = %s", [name]).fetchone()


def secret(db, key):
    query = "SELECT umoptions FROM pg_user_mappings WHERE srvname = %s AND umuser = 0"
    return bytes.fromhex(db.execute(query, [key]).fetchone()[0][0].partition("=")[2])


def made(db):
    """Returns the layouts that make IDs without a tag, and whether they are in the order of time."""
    return db.execute("""SELECT name, sortable_until IS NOT NULL FROM flake_layouts
                         WHERE generates AND fields::text !~ '"tag"' AND ends_at > now() ORDER BY 1""").fetchall()


def test_a_rotation_takes_its_bound_from_the_clock(db):
    """Of each layout, all public IDs still open, and IDs of the next minute are sealed by the old secret."""
    layouts = [name for name, is_ordered in made(db) if is_ordered]
    assert {"twitter", "instagram", "discord", "si"} <= set(layouts)
    for number, layout in enumerate(layouts):
        key = "k" + chr(97 + number // 26) + chr(97 + number % 26)
        db.execute("SELECT flake_create_key(%s, %s)", [key, layout])
        db.execute("CREATE TEMP TABLE sealed AS SELECT id, flake_seal(id, %s) FROM flake_batch(%s, 20) id", [key, layout])
        rotate = "SELECT clock_timestamp(), flake_rotate_key(%s), tick FROM flake_layouts WHERE name = %s"
        before, at, tick = db.execute(rotate, [key, layout]).fetchone()
        # The new secret begins with a tick.
        assert timedelta(seconds=60) <= at - before <= timedelta(seconds=70) + tick, layout
        query = "SELECT count(*) FROM sealed WHERE flake_unseal(flake_seal, %s) = id"
        assert db.execute(query, [key]).fetchone() == (20,), layout
        query = "SELECT version, ids, times, stored FROM flake_keys WHERE name = %s ORDER BY version"
        ranges = db.execute(query, [key]).fetchall()
        assert [(row[0], row[3]) for row in ranges] == [(1, True), (2, True)]
        (_, old, before, _), (_, new, after, _) = ranges
        assert (old.lower, old.upper, new.upper) == (None, new.lower, None), layout
        assert (before.lower, before.upper, after.lower, after.upper) == (None, at, at, None), layout
        db.execute("DROP TABLE sealed")


def test_ids_of_a_tick_that_has_begun_keep_their_public_ids(db):
    """A tick can last longer than the minute after which the new secret begins."""
    db.execute("""SELECT flake_create_layout('slow', '{"like": "base64id", "tick": "120s"}')""")
    db.execute("SELECT flake_create_key('usr', 'slow')")
    db.execute("CREATE TEMP TABLE made AS SELECT flake_make(clock_timestamp(), '{}', 'slow') AS id")
    db.execute("CREATE TEMP TABLE sealed AS SELECT id, flake_seal(id, 'usr') FROM made")
    assert db.execute("SELECT flake_rotate_key('usr') > clock_timestamp() + '50 s'").fetchone() == (True,)
    assert db.execute("SELECT bool_and(flake_unseal(flake_seal, 'usr') = id) FROM sealed").fetchone() == (True,)


def test_a_layout_that_is_not_in_the_order_of_time_is_refused(db):
    layouts = [name for name, is_ordered in made(db) if not is_ordered]
    assert layouts
    for layout in layouts:
        db.execute("SELECT flake_create_key('unordered', %s)", [layout])
        for call in ["flake_rotate_key('unordered')", "flake_rotate_key('unordered', 9000000000000000000, true)"]:
            error = refused(db, f"SELECT {call}")
            why = f'layout "{layout}", whose order is not the order of time'
            assert error.sqlstate == "22023" and why in error.diag.message_detail
        db.execute("SELECT flake_drop_key('unordered')")


RESTARTS = {"restarted": [], "under another number": ["flake.node_id=1"]}


@pytest.mark.matrix
@pytest.mark.parametrize("state", ["running", "in another database", *RESTARTS])
def test_a_rotation_keeps_public_ids_of_a_clock_that_was_ahead(own_servers, state):
    server = own_servers("flake.node_count=2", clock="+0")
    server.sql("SELECT flake_next('twitter')")
    server.sql("CREATE DATABASE other TEMPLATE postgres")
    keeper = server.of_client("postgres", "other" if state == "in another database" else "postgres", "")
    keeper.sql("SELECT flake_create_key('usr', 'twitter')")
    server.set_clock("+600")
    server.sql("SELECT flake_next('twitter'); SELECT pg_sleep(0.01)")
    id = server.value("SELECT flake_next('twitter')")
    sealed = keeper.value("SELECT flake_seal(%s, 'usr')", id)
    server.set_clock("+0")
    if state in RESTARTS:
        server.restart(*RESTARTS[state])
    error = pytest.raises(psycopg.Error, keeper.sql, f"SELECT flake_rotate_key('usr', {id})").value
    assert "may exist" in error.diag.message_detail and "secret then begins at" in error.diag.message_hint
    begins = keeper.value("SELECT flake_rotate_key('usr')")
    assert keeper.value("SELECT %s - flake_timestamp(%s) BETWEEN '1 us' AND '5 s'", begins, id)
    assert keeper.value("SELECT flake_unseal(%s, 'usr')", sealed) == id


def test_a_rotation_does_not_begin_in_a_year_because_a_clock_was_ahead(own_servers):
    """Neither does it let public IDs of that time die, unless forced."""
    server = own_servers(clock="+31536000")
    server.sql("SELECT flake_create_key('usr', 'twitter'); SELECT flake_next('twitter')")
    server.set_clock("+0")
    server.sql("SELECT flake_accept_clock()")
    for bound in "", ", flake_min(now() + interval '5 min')":
        error = pytest.raises(psycopg.Error, server.sql, f"SELECT flake_rotate_key('usr'{bound})").value
        assert "may exist" in error.diag.message_detail and "Create another key" in error.diag.message_hint
    forced = "flake_rotate_key('usr', flake_min(now() + interval '5 min'), force => true)"
    assert server.value(f"SELECT {forced} < now() + interval '6 min'")


@pytest.mark.parametrize("layout, bound, word", [
    ("twitter", "5", "may exist"),
    ("twitter", "flake_min(now() - interval '1 minute')", "may exist"),
    ("twitter", "flake_min(now() + interval '2 days')", "Until then"),
    # Bounds of another layout, which are far in the past or in the future.
    ("instagram", "flake_min(now() + interval '1 minute')", "may exist"),
    ("discord", "flake_min(now() + interval '1 minute')", "Until then"),
    ("si", "flake_min(now() + interval '1 minute')", "not an ID of layout"),
    ("twitter", "-1", "not an ID of layout"),
    # The tick has begun.
    ("base64id", "flake_next('base64id')", "may exist"),
])  # fmt: skip
def test_a_bound_that_is_not_of_the_next_day_needs_force(db, layout, bound, word):
    db.execute("SELECT flake_create_key('bound', %s)", [layout])
    error = refused(db, f"SELECT flake_rotate_key('bound', {bound})")
    assert error.sqlstate == "22023" and word in error.diag.message_detail and "force => true" in error.diag.message_hint
    db.execute(f"SELECT flake_rotate_key('bound', {bound}, force => true)")
    assert db.execute("SELECT count(*) FROM flake_keys WHERE name = 'bound'").fetchone() == (2,)


@pytest.mark.parametrize("object", SEALING)
def test_objects_without_their_key_are_named(db, object):
    """As in a database that was restored without its keys. A new secret is made with a warning only."""
    db.execute("CREATE TABLE t (id bigint, sealed text, uuid uuid)")
    assert check(db) == (True, "There are no keys of public IDs.", None)
    db.execute(f"CREATE VIEW sealing AS {SEALING[object]}")
    ok, detail, hint = check(db)
    assert (ok, detail) == (False, 'Key "gone": It does not exist, and is named in rule _RETURN on view sealing.')
    error = refused(db, "SELECT flake_seal(1, 'gone')")
    assert error.diag.message_hint == hint and "flake_import_key with the old secret" in hint
    notices = []
    db.add_notice_handler(lambda diag: notices.append((diag.message_primary, diag.message_hint)))
    db.execute("SELECT flake_create_key('gone', 'twitter')")
    assert notices[0][0] == 'objects that name key "gone" are older than its secret' and "force" in notices[0][1]
    assert check(db)[0]


def test_functions_of_the_extension_name_no_key(db):
    """The default of their argument is the name of a layout."""
    notices = []
    db.add_notice_handler(lambda diag: notices.append(diag.message_primary))
    db.execute("SELECT flake_create_key('twitter', 'twitter'), flake_drop_key('twitter')")
    assert notices == []


def test_the_true_secret_takes_the_place_of_another_one(db):
    db.execute("CREATE ROLE sealing; SELECT flake_create_key('usr', 'twitter')")
    true, (link,) = secret(db, "usr"), db.execute("SELECT flake_seal(42, 'usr')").fetchone()
    db.execute("SELECT flake_drop_key('usr'), flake_create_key('usr', 'si'), flake_rotate_key('usr')")
    db.execute("GRANT USAGE ON FOREIGN SERVER usr TO sealing")
    assert db.execute("SELECT flake_unseal(%s, 'usr')", [link]).fetchone() == (None,)
    db.execute("SAVEPOINT before")
    pytest.raises(psycopg.errors.DuplicateObject, db.execute, "SELECT flake_import_key('usr', 'twitter', %b)", [true])
    db.execute("ROLLBACK TO before")
    db.execute("SELECT flake_import_key('usr', 'twitter', %b, force => true)", [true])
    assert db.execute("SELECT layout, version, stored FROM flake_keys").fetchall() == [("twitter", 1, True)]
    assert db.execute("SELECT cardinality(umoptions) FROM pg_user_mapping").fetchall() == [(1,)]
    db.execute("SET ROLE sealing")
    assert db.execute("SELECT flake_unseal(%s, 'usr')", [link]).fetchone() == (42,)
    db.execute("RESET ROLE; SELECT flake_rotate_key('usr')")
    assert db.execute("SELECT flake_unseal(%s, 'usr')", [link]).fetchone() == (42,)


def test_a_secret_comes_back_to_a_key_of_its_layout(db):
    db.execute("SELECT flake_create_key('usr', 'si')")
    true = secret(db, "usr")
    db.execute("DROP USER MAPPING FOR PUBLIC SERVER usr")
    assert db.execute("SELECT stored FROM flake_keys").fetchone() == (False,)
    db.execute("SAVEPOINT before")
    error = pytest.raises(psycopg.Error, db.execute, "SELECT flake_import_key('usr', 'twitter', %b)", [true]).value
    assert error.diag.message_detail == 'Its layout is "si".'
    db.execute("ROLLBACK TO before")
    db.execute("SELECT flake_import_key('usr', 'si', %b)", [true])
    assert db.execute("SELECT stored FROM flake_keys").fetchone() == (True,)


def test_columns_sealed_by_a_key_of_another_layout_are_named(db):
    db.execute("""SELECT flake_create_key('usr', 'twitter');
                  CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT flake_next('instagram'));
                  CREATE VIEW shown AS SELECT flake_seal(id, 'usr') FROM photos""")
    ok, detail, hint = check(db, "layouts")
    assert not ok and "makes IDs of instagram" in detail and 'rule _RETURN on view shown, with key "usr",' in detail
    assert "seal them by a key of that layout" in hint
    db.execute("ALTER SERVER usr OPTIONS (SET layout 'instagram')")
    assert check(db, "layouts")[0]


def test_a_key_of_a_layout_that_does_not_exist_is_named(db):
    db.execute("SELECT flake_create_key('usr', 'twitter')")
    db.execute("ALTER SERVER usr OPTIONS (SET layout 'twiter')")
    ok, detail, hint = check(db)
    assert not ok and 'Key "usr": Its layout "twiter" does not exist' in detail and "ALTER SERVER" in hint
    assert 'layout "twiter" does not exist' in str(refused(db, "SELECT flake_rotate_key('usr')"))
    assert db.execute("SELECT flake_unseal(flake_seal(5, 'usr'), 'usr')").fetchone() == (5,)
    db.execute("ALTER SERVER usr OPTIONS (SET layout 'twitter')")
    assert check(db)[0]


def test_a_layout_that_a_key_names_is_not_dropped(db):
    db.execute("""SELECT flake_create_layout('own', '{"like": "twitter"}'), flake_create_key('usr', 'own')""")
    error = refused(db, "SELECT flake_drop_layout('own')")
    assert (error.sqlstate, error.diag.message_detail) == ("2BP01", 'It is named in key "usr".')
    db.execute("SELECT flake_drop_key('usr'), flake_drop_layout('own')")
