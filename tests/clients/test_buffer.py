"""The clients in all languages: whatever happens to their server, their connection or their process, they use no ID twice and
none that is too old, and they say what is wrong."""

import contextlib
import random
import re
import signal
import subprocess
import time

import pytest

import managed
from bouncer import bouncer
from buffer_programs import LANGUAGES, Programs, Talking
from conftest import ROOT, signalled
from database import Database, database, server_of_clients
from waiting import wait_until
from wire import Wire

__all__ = ["database", "server_of_clients"]
SEALED = (ROOT / "tests/vectors/seal.csv").read_text().partition("\n")[2]
# A function that is found before the extension's, and does what a test says.
WRONG = """
    CREATE SCHEMA wrong;
    CREATE TABLE wrong.now AS SELECT NULL::text AS code;
    CREATE FUNCTION wrong.flake_batch(layout text, count integer) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
        DECLARE code text := (SELECT code FROM wrong.now);
        BEGIN
            IF code = 'sleep' THEN PERFORM pg_sleep(60);
            ELSIF code IS NOT NULL THEN RAISE EXCEPTION 'wrong' USING ERRCODE = code;
            END IF;
            RETURN QUERY SELECT public.flake_batch(layout, count);
        END $$;"""
every_language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory)


@pytest.fixture
def talking(programs, language):
    with contextlib.ExitStack() as ends:
        yield Talking(programs, language, ends)


def requests(database):
    """How many times the server was asked."""
    pattern = rf"^{database.name} LOG:  execute [^:]*: SELECT flake_batch\("
    return len(re.findall(pattern, (database.server.dir / "server.log").read_text(), re.M))


def asked_for(database):
    """How many IDs each request wanted."""
    pattern = rf"^{database.name} LOG:  execute [^:]*: SELECT flake_batch\(.*\n{database.name} DETAIL: .*\$2 = '(\d+)'"
    return [int(count) for count in re.findall(pattern, (database.server.dir / "server.log").read_text(), re.M)]


def wrong(database, code):
    # A test may have set a time limit for statements of its program.
    with database.server.connect(dbname=database.name, options="-c statement_timeout=0") as db:
        if not db.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'wrong'").fetchone():
            db.execute(WRONG)
            db.execute(f"ALTER DATABASE {database.name} SET search_path = wrong, public")
        db.execute("UPDATE wrong.now SET code = %s", [code])


def distinct(*lists):
    """All IDs of the lists, in which there is no error and no ID twice."""
    ids = [one for ids in lists for one in ids]
    assert [one for one in ids if not isinstance(one, int)] == []
    assert len(ids) == len(set(ids))
    return ids


@every_language
def test_an_id_takes_no_longer_than_its_limit(programs, language):
    done = subprocess.run([*programs[language], "time"], capture_output=True, text=True, check=True)
    print(language, done.stdout)
    # Right after a compiler has started, or on another processor, an ID may take several times as long.
    assert 0 < int(done.stdout) < 10 * LANGUAGES[language]


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language not in ("asyncio", "rust")])
def test_a_key_seals_and_opens_the_vectors(programs, language):
    done = subprocess.run([*programs[language], "seal"], input=SEALED, capture_output=True, text=True, check=True)
    assert done.stdout == SEALED


@every_language
def test_a_million_ids_of_eight_threads_are_different(talking, database):
    made = talking.run(database, "many").split()
    assert len(set(made)) == len(made) == 1_000_000


@every_language
def test_ids_go_on_after_a_restart(talking, own_servers, tmp_path):
    database = Database(own_servers(), tmp_path)
    talk = talking.to(database)
    made = [talk.next(100)]
    for mode in "fast", "immediate":
        database.server.restart(mode=mode)
        made += talk.next(20, 1), talk("take", 500)
    distinct(*made)


@every_language
def test_a_server_that_stands_still(talking, own_servers, tmp_path):
    """A program uses what it has, then waits for its patience, and has IDs again when the server answers."""
    database = Database(own_servers(), tmp_path)
    keeping, talk = talking.to(database, MAX_AGE="3600"), talking.to(database, PATIENCE="1")
    # The second batch is as large as the first one, and one of its IDs is used.
    made = [keeping("take", 100), keeping.next(), retried(talk, 10)]
    stopped = database.server.freeze()
    try:
        made.append(keeping.next(50))
        time.sleep(1)  # what the other one has is too old by now
        assert talk.next() == [("error", "Unavailable", "-")]
    finally:
        signalled(stopped, signal.SIGCONT)
    made += retried(talk, 10), keeping.next(100)
    distinct(*made)


def retried(talk, count):
    """So many IDs, however often the patience of the program has ended before the server answers."""
    ids, deadline = [], time.monotonic() + 60
    while len(ids) < count:
        ids += [one for one in talk.next(count - len(ids)) if isinstance(one, int)]
        assert time.monotonic() < deadline
    return ids


@every_language
def test_a_standby_is_asked_until_it_is_promoted(talking, own_servers, tmp_path):
    primary = own_servers("log_line_prefix=%d ", "log_statement=all")
    database = Database(primary, tmp_path)
    made = [talking.to(database).next(10)]
    standby = own_servers(standby_of=primary)
    standby.wait_for_replay(primary)
    database.server = standby
    talk = talking.to(database)
    talk.tell("next", 10, 0)
    wait_until(lambda: requests(database) > 2)
    standby.promote()
    made.append([line[0] for line in talk.hear()])
    distinct(*made)
    # Without patience, it is an error that trying again can mend.
    database.server = own_servers(standby_of=standby)
    database.server.wait_for_replay(standby)
    assert answered(talking.to(database, PATIENCE="0.5")) == [("error", "Unavailable", "25006")]


def answered(talk):
    """The ID or the error of a program whose server has answered within the patience."""
    deadline = time.monotonic() + 60
    while (lines := talk.next()) == [("error", "Unavailable", "-")]:
        assert time.monotonic() < deadline
    return lines


@every_language
def test_an_answer_that_is_cut_is_dropped_as_a_whole(talking, database):
    with Wire(database.server) as wire:
        talk = talking.to(database, **wire.environment())
        made = [talk.next(5)]
        wire.cut = 3000
        made.append(talk("take", 1000))
        assert len(wire.kept) > 50 and wire.connections > 1
        distinct(*made, wire.kept)


@every_language
def test_an_answer_that_comes_after_the_patience_is_dropped_as_a_whole(talking, database):
    """It comes after two seconds, when its connection is given up, and it comes when it is too old."""
    with Wire(database.server) as wire:
        talk = talking.to(database, **wire.environment(), MAX_AGE="0.3", PATIENCE="0.5")
        made = [retried(talk, 5)]
        for seconds in 2, 0.3:
            kept = len(wire.kept)

            def is_held(kept=kept):
                # The buffer has no more than were used so far. Another request may be on its way.
                assert talk("take", 1000) == [("error", "Unavailable", "-")]
                return len(wire.kept) > kept + 200

            wire.hold()
            wait_until(is_held)
            time.sleep(seconds)
            wire.release.set()
            made.append(retried(talk, 100))
        assert len(wire.kept) > 400
        distinct(*made, wire.kept)


@every_language
def test_a_connection_that_is_silent_is_given_up(talking, database):
    with Wire(database.server) as wire:
        talk = talking.to(database, **wire.environment(), MAX_AGE="0.1")
        made = [talk.next(5)]
        time.sleep(0.1)
        wire.silence()
        made.append(talk("take", 100))
        assert wire.connections > 1
        distinct(*made)


@every_language
def test_who_waits_gets_ids_of_a_slow_server(talking, database):
    """An answer takes longer than IDs may be kept."""
    with Wire(database.server) as wire:
        wire.pause = 0.2
        talk = talking.to(database, **wire.environment(), MAX_AGE="0.05")
        distinct(talk.next(3), talk("take", 5))


@every_language
@pytest.mark.parametrize("code", ["42501", "42883", "22023", "2200H"])
def test_an_error_that_waiting_cannot_mend_is_raised_at_once(talking, database, code):
    wrong(database, code)
    talk = talking.to(database, PATIENCE="3600")
    assert [talk.next() for _ in range(20)] == [[("error", "Refused", code)]] * 20
    # For a second, it asks no more.
    assert requests(database) < 20
    wrong(database, None)
    time.sleep(1)
    distinct(talk.next(10))


@every_language
def test_a_login_that_is_refused_is_an_error_at_once(talking, database):
    (found,) = talking.to(database, PGUSER="nobody", PATIENCE="3600").next()
    assert found[:2] == ("error", "Refused") and found[2] in ("28000", "-")


@every_language
@pytest.mark.parametrize("code", ["25006", "55000", "40001", "53300"])
def test_other_errors_are_asked_about_again(talking, database, code):
    wrong(database, code)
    assert answered(talking.to(database, PATIENCE="0.5")) == [("error", "Unavailable", code)]
    talk = talking.to(database)
    asked = requests(database)
    talk.tell("take", 3)
    wait_until(lambda: requests(database) > asked + 1)
    wrong(database, None)
    distinct(talk.hear())


@every_language
def test_a_statement_that_takes_too_long_is_repeated(talking, database):
    wrong(database, "sleep")
    database.sql(f"ALTER DATABASE {database.name} SET statement_timeout = '200ms'")
    assert answered(talking.to(database, PATIENCE="0.5")) == [("error", "Unavailable", "57014")]
    talk = talking.to(database)
    asked = requests(database)
    talk.tell("take", 3)
    wait_until(lambda: requests(database) > asked)
    wrong(database, None)
    distinct(talk.hear())


@every_language
def test_a_pool_in_transaction_mode(talking, own_servers, tmp_path):
    """Two programs share one session."""
    database = Database(own_servers(), tmp_path, extension=False)
    with bouncer(database.server, "transaction", clients=2, sessions=1) as directory:
        environment = {"PGHOST": str(directory), "PGPORT": "6432", "PGDATABASE": "postgres"}
        programs, made = [talking.to(database, **environment) for _ in range(2)], []
        for count in 1, 20, 3, 100:
            for talk in programs:
                talk.tell("next", count, 2)
            made += [[line[0] for line in talk.hear()] for talk in programs]
        distinct(*made)


@every_language
def test_how_often_the_database_is_asked(talking, database):
    """At 1,000 IDs a second, it is asked three times a second after the start, and at one a second, once for each."""
    talk = talking.to(database)
    distinct(talk.next(500, 1))

    def is_seldom():
        before, began = requests(database), time.monotonic()
        distinct(talk.next(2500, 1))
        return requests(database) - before <= 3 * (time.monotonic() - began) + 1

    # Where the machine stands still now and then, the rate is another one each time.
    assert any(is_seldom() for _ in range(5))
    slow = talking.to(database)
    before = requests(database)
    distinct(slow.next(6, 1000))
    assert requests(database) - before <= 6


@every_language
def test_a_single_id_is_not_fetched_ahead(talking, database):
    """A program that has become slow uses what it has. Only then it asks for more."""
    talk = talking.to(database, MAX_AGE="")
    made = [talk("take", 4), talk.next()]
    while (left := asked_for(database)[-1] - 1) == 0:  # the machine stood still for a second
        made += talk("take", 4), talk.next()
    # Fewer than one ID a second is used from here on, so that a request would want one.
    time.sleep(5)
    asked = requests(database)
    for _ in range(left):
        made.append(talk.next())
        time.sleep(0.2)
    assert requests(database) == asked
    distinct(*made)


@every_language
def test_a_batch_is_followed_before_it_is_empty(talking, database):
    talk = talking.to(database, MAX_AGE="3600")
    made = [talk("take", 100), talk.next()]  # of the second batch, 99 are left
    assert requests(database) == 2
    made.append(talk.next(60))
    assert requests(database) == 2
    made.append(talk.next(20))
    wait_until(lambda: requests(database) == 3)
    made.append(talk.next(19))
    assert requests(database) == 3
    distinct(*made)


@every_language
def test_no_id_is_used_when_it_is_too_old(talking, database):
    """None is older than max_age and a round trip, at any rate."""
    age = 300_000
    talk, choose, made = talking.to(database, MAX_AGE=str(age / 1e6)), random.Random(86), []
    while len(made) < 10_000:
        count, pause = choose.choice([(1, 0), (5, 1), (300, 0), (2000, 0), (200, 1), (20, 20), (3, 200)])
        made += talk("next", count, pause)
        time.sleep(choose.choice([0, 0, 0.1, 0.5]))
    ((_, longest),) = talk("longest")
    distinct([id for id, _ in made])
    times = "SELECT extract(epoch FROM flake_timestamp(unnest(%s::bigint[]))) * 1000000"
    made_at = [int(at) for at, in database.sql(times, [id for id, _ in made])]
    ages = [before - at for (_, before), at in zip(made, made_at, strict=True)]
    # The program may have stood still between its own measuring and the client's.
    assert max(ages) <= age + longest + 100_000
    # Buffered IDs were among them.
    assert max(ages) > 1000


@every_language
def test_the_edition_in_plain_sql_serves_the_same_clients(talking, own_servers, tmp_path):
    """Also over a crash, after which the clock is behind, while a buffer is in use."""
    server = own_servers(extension=False, clock="+0")
    managed.install(server)
    database = Database(server, tmp_path, extension=False)
    talk = talking.to(database, PGDATABASE="postgres", MAX_AGE="3600")
    made = [talk("take", 100), talk.next()]
    server.restart(mode="immediate", while_stopped=lambda: server.set_clock("-0.4"))
    made += talk.next(50), talk("take", 500)
    distinct(*made)


@every_language
def test_a_program_that_uses_no_ids_has_no_connection(talking, database):
    def sessions():
        return database.server.value("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", database.name)

    talk = talking.to(database, MAX_AGE="0.1")
    made = [talk.next(100)]
    asked = requests(database)
    assert sessions() == 1
    wait_until(lambda: sessions() == 0)
    assert requests(database) <= asked + 1
    made.append(talk.next(10))
    assert sessions() == 1
    assert talk("close") == []
    wait_until(lambda: sessions() == 0)
    assert talk.next() == [("error", "Closed", "-")]
    assert talk("take", 2) == [("error", "Closed", "-")]
    distinct(*made)


@every_language
def test_what_is_taken_is_exactly_what_was_wanted(talking, database):
    talk = talking.to(database, MOST="100", MAX_AGE="")
    assert talk("try") == ["none"]
    made = [talk("take", 1000), talk.next(), talk("try")]
    assert len(made[0]) == 1000
    # One statement has at most 100.
    assert requests(database) in (11, 12)
    assert len(distinct(*made)) == 1002
    assert talk("take", 0) == []


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "asyncio"])
def test_an_application_inserts_a_row_with_its_id(programs, database, tmp_path, language):
    database.sql("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)")
    made = int(programs.application(language, database, tmp_path))
    assert database.sql("SELECT id, item FROM orders") == [(made, "tea")]
    assert database.sql("SELECT now() - flake_timestamp(id) < '1 hour' FROM orders") == [(True,)]
