"""managed/flake.sql reads IDs as the extension does, in a database without it."""

import csv
import shutil
import subprocess

import psycopg
import pytest

import managed
from conftest import ROOT, pg_config

READERS = [
    "(flake_decode(%s::bigint, %s))::text", "flake_timestamp(%s::bigint, %s)::text", "flake_to_text(%s::bigint, %s)",
    "flake_explain(%s::bigint, %s)",
]  # fmt: skip


# The ends of spans, by the names that the extension has for them.
ENDS = "CREATE SCHEMA flake_plan" + "".join(
    f"; CREATE FUNCTION flake_plan.{end}(span tstzrange, layout text) RETURNS bigint LANGUAGE sql "
    f"RETURN flake.{end}(span, layout)"
    for end in ("first", "last")
)


@pytest.fixture(scope="module")
def both(servers):
    """One server with two databases: one has the extension, and one has the file."""
    server = servers()
    server.sql("CREATE DATABASE plain")
    managed.install(server, "plain")
    managed.create_pgcrypto(server, "plain")
    with server.connect() as extension, server.connect(dbname="plain") as plain:
        for db in (extension, plain):
            db.execute("SET timezone = 'Europe/Lisbon'")
        plain.execute(ENDS)
        yield extension, plain


def answer(db, call, *arguments):
    """Returns the result, or the error."""
    try:
        return db.execute(f"SELECT {call}", arguments).fetchone()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, error.diag.message_detail


def same(both, call, *arguments):
    one, other = (answer(db, call, *arguments) for db in both)
    # Messages of the extension name layouts that are similar, and more.
    assert one == other, (call, arguments)
    return one


def test_its_table_is_the_extensions(server):
    managed.check(server)


def test_its_view_is_the_extensions(both):
    columns = """name, epoch, tick, bits, fields, ids_per_tick, ends_at, sortable_until, increasing, text_form,
        generates, source"""
    one, other = (db.execute(f"SELECT ({columns})::text FROM flake_layouts ORDER BY name").fetchall() for db in both)
    assert len(one) > 20 and one == other


def test_a_client_that_reads_backslashes_otherwise_makes_the_same_ids(both):
    if both[1].info.server_version >= 190000:
        pytest.skip("from PostgreSQL 19 on, no client can read them otherwise")
    with both[1].transaction(force_rollback=True):
        both[1].execute("SET LOCAL standard_conforming_strings = off; SET LOCAL escape_string_warning = off")
        assert same(both, "flake_make('2026-01-01Z', %s, 'twitter')", '{"worker": 1}')[0] > 0


@pytest.mark.parametrize("zone", ["UTC+5", "<UTC>-3"])
def test_a_time_zone_whose_abbreviation_is_utc_makes_and_reads_the_same_ids(both, zone):
    """PostgreSQL 18 looks for abbreviations in the session's time zone first."""
    for db in both:
        db.execute(f"SET timezone = '{zone}'")
    for call in (*READERS, "extract(epoch FROM flake_timestamp(%s::bigint, %s))"):
        assert same(both, call, 4194304000, "twitter") and same(both, call, 4194304000, "si")
    for call in ("flake_min", "flake_max"):
        same(both, f"{call}('2026-01-01Z')")
    for db in both:
        db.execute("SET timezone = 'Europe/Lisbon'")


def vectors():
    for file in ("twitter", "si", "uniqueid", "base64id", "relatives", "presets", "published"):
        with (ROOT / f"tests/vectors/{file}.csv").open() as rows:
            yield from csv.DictReader(rows)


@pytest.mark.matrix
def test_ids_of_the_originals_are_read_and_made_alike(both):
    """The vectors of the core, as far as they are of built-in layouts with their epochs."""
    _, plain = both
    epochs = dict(plain.execute("SELECT name, (extract(epoch FROM epoch) * 1000)::bigint FROM flake_layouts").fetchall())
    seen = 0
    for vector in vectors():
        name, id = vector["layout"], int(vector["id"])
        if epochs.get(name) != int(vector["epoch_ms"]):
            continue
        fields = "{" + ", ".join('"{}": {}'.format(*pair.split("=")) for pair in vector["fields"].split(" ")) + "}"
        read = plain.execute(
            """SELECT (extract(epoch FROM created_at) * 1000000)::bigint, flake_to_text(%(id)s, layout),
                      flake_from_text(%(text)s, layout), flake_make(created_at, fields, layout),
                      flake_make(created_at, %(fields)s, layout),
                      created_at = flake_timestamp(%(id)s, layout), fields - 'timestamp' = %(fields)s
               FROM flake_decode(%(id)s::bigint, %(name)s)""",
            {"id": id, "name": name, "text": vector["text"], "fields": fields},
        ).fetchone()  # fmt: skip
        assert read == (int(vector["unix_us"]), vector["text"], id, id, id, True, True), vector
        seen += 1
    assert seen > 1000


def test_public_ids_are_those_of_the_vectors(both):
    _, plain = both
    with (ROOT / "tests/vectors/seal.csv").open() as rows:
        by_secret = {}
        for vector in csv.DictReader(rows):
            by_secret.setdefault(vector["secret"], []).append(vector)
    for number, (secret, some) in enumerate(by_secret.items()):
        key = f"key_{chr(97 + number // 26)}{chr(97 + number % 26)}"
        plain.execute("SELECT flake_import_key(%s, 'twitter', decode(%s, 'hex'))", (key, secret))
        for vector in some[:20]:
            id, text = int(vector["id"]), f"{key}_{vector['text']}"
            found = plain.execute(
                """SELECT flake_seal(%(id)s, %(key)s), flake_seal_uuid(%(id)s, %(key)s)::text, flake_unseal(%(text)s, %(key)s),
                          flake_unseal(%(uuid)s::uuid, %(key)s), flake_unseal(%(uuid)s::text, %(key)s)""",
                {"id": id, "key": key, "text": text, "uuid": vector["uuid"]},
            ).fetchone()  # fmt: skip
            assert found == (text, vector["uuid"], id, id, id)


def test_only_what_was_sealed_by_a_key_opens(both):
    _, plain = both
    plain.execute("SELECT flake_create_key('shop', 'twitter')")
    for id in (999, 1000, -(2**63), 2**63 - 1):
        (sealed,) = plain.execute("SELECT flake_seal(%s, 'shop')", (id,)).fetchone()
        other = sealed[:-1] + ("0" if sealed[-1] != "0" else "1")
        texts = [sealed, other, sealed.upper(), sealed + "0", sealed[5:], "shop_", "", "order" + sealed[4:]]
        opened = [plain.execute("SELECT flake_unseal(%s::text, 'shop')", (text,)).fetchone()[0] for text in texts]
        assert opened == [id] + [None] * 7
    for call in ["flake_seal(1, 'none')", "flake_unseal('none_', 'none')", "flake_drop_key('none')"]:
        assert answer(plain, call)[0] == "42704"


def test_keys_are_created_as_in_the_extension(both):
    secret = "decode(repeat('0f', 16), 'hex')"
    for call in [
        "flake_create_key('made', 'twitter')", "flake_create_key('made', 'si')", "flake_create_key('other', 'none')",
        "flake_create_key('Not a name', 'si')", "flake_import_key('given', 'si', 'short')",
        f"flake_import_key('given', 'si', {secret})", f"flake_import_key('twice', 'si', {secret})",
        "flake_import_key('made', 'twitter', decode(repeat('01', 16), 'hex'))", "flake_drop_key('given')",
        f"flake_import_key('made', 'discord', {secret}, true)",
    ]:  # fmt: skip
        # Details name what keys are stored as.
        of_extension, of_plain = (answer(db, call)[:2] for db in both)
        assert of_plain == of_extension or (of_plain[0], of_extension[0]) == (None, ""), call
    assert answer(both[0], "flake_seal(42, 'made')") == answer(both[1], "flake_seal(42, 'made')")


def test_null_and_unknown_layouts_give_null_or_an_error(both):
    for call in [
        "flake_timestamp(NULL)", "flake_decode(1, NULL)", "flake_during(NULL, '(,)')", "flake_during(1, NULL)",
        "flake_next(NULL)",
        "flake_during(1, '(,)', NULL)", "flake_min(NULL)", "flake_timestamp(1, 'nonsense')", "flake_timestamp(1, NULL)",
        "flake_timestamp(1541815603606036480)", "flake_during(1541815603606036480, '[2022-06-28Z,2022-06-29Z)')",
        "flake_next('nonsense')", "flake_next('yitter')", "flake_next('baidu')", "flake_batch('twitter', -1)",
        "(SELECT count(*) FROM flake_batch('Twitter', 0))", "(SELECT count(*) FROM flake_batch('Twitter', -1))",
        "(SELECT count(*) FROM flake_batch('yitter', 0))", "(SELECT count(*) FROM flake_batch('twitter', 0))",
    ]:  # fmt: skip
        same(both, call)


def test_ranges_use_the_index(both):
    _, plain = both
    plain.execute("CREATE TABLE orders (id bigint PRIMARY KEY); SET enable_seqscan = off")
    query = "SELECT * FROM orders WHERE flake_during(id, '[2026-01-01Z,2026-01-02Z)')"
    plan = plain.execute(f"EXPLAIN (COSTS OFF) {query}").fetchall()
    assert any("Index Cond: ((id >= '2006515713438646272'::bigint)" in line for line, in plan), plan


def test_it_serves_generated_columns_indexes_and_partitions(both):
    """The search_path is empty while a dump is restored, and PostgreSQL 17 and later empty it to make an index."""
    _, plain = both
    plain.execute("CREATE TABLE t (id bigint, at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED)")
    plain.execute("SET search_path = ''; INSERT INTO public.t VALUES (1541815603606036480)")
    plain.execute("CREATE INDEX ON public.t (public.flake_timestamp(id, 'leaf'))")
    plain.execute("CREATE INDEX ON public.t (((public.flake_decode(id)).worker)) WHERE public.flake_during(id, '[2022-06-28Z,)')")
    plain.execute("""CREATE TABLE public.u (
        id bigint CHECK (id BETWEEN public.flake_min('2022-01-01Z') AND public.flake_max('2023-01-01Z')))""")
    plain.execute("INSERT INTO public.u SELECT id FROM public.t")
    plain.execute("CREATE TABLE public.p (id bigint) PARTITION BY RANGE (public.flake_timestamp(id))")
    plain.execute("CREATE TABLE public.p1 PARTITION OF public.p FOR VALUES FROM ('2022-06-28Z') TO ('2022-06-29Z')")
    plain.execute("INSERT INTO public.p SELECT id FROM public.t; RESET search_path")
    assert plain.execute("SELECT at = '2022-06-28 16:07:40.105Z' FROM t").fetchone() == (True,)
    assert plain.execute("SELECT count(*) FROM p1").fetchone() == (1,)


def test_its_package_is_an_extension(own_servers):
    """`scripts/package trusted` makes the files that database.dev and pg_tle take. PostgreSQL takes them too."""
    subprocess.run([ROOT / "scripts/package", "trusted"], check=True, capture_output=True)
    server = own_servers(extension=False)
    directory = server.dir / "stage" / (pg_config("--sharedir") / "extension").relative_to("/")
    if not directory.exists():
        pytest.skip("this PostgreSQL looks for extensions in its own directory only")
    for file in (ROOT / "target/dist/flake_sql").glob("flake_sql*"):
        shutil.copy(file, directory)
    server.sql("CREATE EXTENSION flake_sql")
    assert server.value("SELECT flake_next('twitter')") > 0
