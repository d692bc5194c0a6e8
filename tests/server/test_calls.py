"""Many calls of every function with random and hostile arguments. A call may only raise errors of its function, with a DETAIL,
and one function reads what another one writes. FLAKE_CALLS is the number of calls; `make soak` makes ten million."""

import collections
import concurrent.futures
import os
import random
import re
import struct
import time

import psycopg
import pytest

import arguments
import databases
from templates import UNCALLED, templates_of

CALLS = int(os.environ.get("FLAKE_CALLS", "40000"))
# How many calls a statement makes.
BATCH = 10_000
DIGITS = "23456789abcdefghijklmnopqrstuvwx"

# Runs a template, with new arguments for each call.
PLAYER = """
    CREATE FUNCTION fuzz.play(calls int, OUT state text, OUT example text) RETURNS SETOF record LANGUAGE plpgsql AS $play$
    DECLARE {variables} result text; ok boolean; why text; more text;
    BEGIN
        FOR i IN 1..calls LOOP
            {draws}
            example := NULL;
            BEGIN
                {body}
                state := '00000';
                IF NOT ok THEN state := 'wrong'; END IF;
            EXCEPTION WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, why = MESSAGE_TEXT, more = PG_EXCEPTION_DETAIL;
                ok := state = ANY ({allowed}) AND more <> '';
            END;
            IF NOT ok THEN example := concat_ws(E'\\n', why, more, {shown}); END IF;
            RETURN NEXT;
        END LOOP;
    END$play$"""


class Player:
    """A session that plays templates, in a database of its own."""

    def __init__(self, server, encoding, chance):
        self.encoding, self.chance = encoding, chance
        self.counts = collections.Counter()
        self.wrong, self.tasks, self.copies = [], [], 0
        self.db = databases.connect(server, encoding)
        self.db.execute("SET timezone = 'UTC'; SET statement_timeout = '1h'")
        self.db.execute(arguments.helpers())
        self.db.execute(arguments.SPAN)
        self.make_layouts()
        layouts = [name for name, in self.db.execute("SELECT name FROM flake_layouts")]
        self.pools = arguments.pools(encoding, layouts)
        self.db.execute("CREATE TABLE fuzz.ids (id bigint PRIMARY KEY)")
        self.db.execute(f"INSERT INTO fuzz.ids SELECT {self.pools['bigint']} FROM generate_series(1, 300) ON CONFLICT DO NOTHING")
        self.db.execute("CREATE TABLE fuzz.snos (id sno PRIMARY KEY)")
        self.db.execute(f"INSERT INTO fuzz.snos SELECT {self.pools['sno']} FROM generate_series(1, 300) ON CONFLICT DO NOTHING")
        self.db.execute("ANALYZE fuzz.ids, fuzz.snos")

    def make_layouts(self):
        """Creates layouts by random definitions. Most definitions are refused."""
        self.db.execute(f"SELECT setseed({self.chance.random()})")
        definition = arguments.pools(self.encoding, ["twitter"])["definition"]
        self.db.execute(f"""
            CREATE FUNCTION fuzz.make_layouts(wanted int) RETURNS int LANGUAGE plpgsql AS $$
            DECLARE made int := 0;
            BEGIN
                FOR n IN 1..100 * wanted LOOP
                    EXIT WHEN made = wanted;
                    BEGIN
                        PERFORM flake_create_layout('custom' || made, {definition});
                        made := made + 1;
                    EXCEPTION WHEN SQLSTATE '22023' OR SQLSTATE '54000' THEN NULL;
                    END;
                END LOOP;
                RETURN made;
            END$$""")
        assert self.db.execute("SELECT fuzz.make_layouts(20)").fetchone() == (20,)

    def play(self, template, calls):
        """Makes calls of a template, and counts them by their results."""
        self.db.execute(self.function(template))
        while calls > 0:
            batch = min(calls, BATCH)
            # Planning each call again takes long, and matters only if there is something to plan.
            is_planned = self.chance.random() < (0.5 if " FROM fuzz." in template.text else 0.02)
            mode = "force_custom_plan" if is_planned else "force_generic_plan"
            self.db.execute(f"SET plan_cache_mode = {mode}; SELECT setseed({self.chance.uniform(-1, 1)})")
            rows = self.db.execute("SELECT state, count(*), min(example) FROM fuzz.play(%s) GROUP BY state", (batch,)).fetchall()
            for state, count, example in rows:
                self.counts[template.text, state] += count
                if example is not None:
                    self.wrong.append(f"{self.encoding}: {state} of {template.text} ({mode}): {example}")
            calls -= batch

    def function(self, template):
        """A function that runs the template."""
        names, text = [], template.text
        while place := re.search(r"\{([a-z[\]]+)\}", text):
            names.append(place.group(1))
            text = text.replace(place.group(0), f"a{len(names)}", 1)
        types = {"layout": "text", "known": "text", "definition": "jsonb"}
        variables = " ".join(f"a{n} {types.get(name, name)};" for n, name in enumerate(names, 1))
        given = "true" if template.kind == "property" else "fuzz.below(40) > 0"
        draws = " ".join(f"a{n} := CASE WHEN {given} THEN {self.pools[name]} END;" for n, name in enumerate(names, 1))
        body = {
            "call": f"result := ({text})::text; ok := true;",
            # No argument is NULL, so the condition is true or false.
            "property": f"ok := ({text}) IS TRUE;",
            "statement": f"{text}; ok := true;",
        }[template.kind]
        shown = ", ".join(f"left(quote_nullable(a{n}), 300)" for n in range(1, len(names) + 1)) or "''"
        allowed = "ARRAY[" + ", ".join(f"'{state}'" for state in template.states) + "]::text[]"
        made = PLAYER.format(variables=variables, draws=draws, body=body, allowed=allowed, shown=shown)
        return made.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1)

    def copy(self, rows):
        """Copies snos in the binary and the text format, and sorts them. The results must agree with Python's reading of their
        bytes."""
        snos = [self.chance.randbytes(10) for _ in range(rows)]
        snos += [sno[:8] + self.chance.randbytes(2) for sno in snos[: rows // 10]]
        stream = b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"".join(struct.pack(">hi", 1, 10) + sno for sno in snos) + b"\xff\xff"
        self.db.execute("CREATE TEMP TABLE copied (id sno)")
        with self.db.cursor().copy("COPY copied FROM STDIN (FORMAT binary)") as copy:
            copy.write(stream)
        with self.db.cursor().copy("COPY copied TO STDOUT (FORMAT binary)") as copy:
            assert b"".join(copy) == stream
        with self.db.cursor().copy("COPY (SELECT id FROM copied ORDER BY id) TO STDOUT") as copy:
            lines = b"".join(copy).decode().splitlines()
        assert lines == [written(sno) for sno in sorted(snos)]
        self.db.execute("CREATE INDEX ON copied USING hash (id); CREATE INDEX ON copied USING brin (id)")
        joined = "SELECT count(*) FROM copied a JOIN copied b USING (id)"
        assert self.db.execute(joined).fetchone()[0] == sum(n * n for n in collections.Counter(snos).values())
        with self.db.cursor().copy("COPY copied FROM STDIN") as copy:
            copy.write("".join(f"{line}\n" for line in lines))
        assert self.db.execute("SELECT count(*), count(DISTINCT id) FROM copied").fetchone() == (2 * len(snos), len(set(snos)))
        self.db.execute("DROP TABLE copied")
        self.counts["sno_in, sno_out, sno_recv, sno_send by COPY", "00000"] += 5 * len(snos)

    def copy_malformed(self, times):
        """A value that is not ten bytes is not a sno."""
        self.db.execute("CREATE TEMP TABLE copied (id sno)")
        for _ in range(times):
            sno = self.chance.randbytes(self.chance.choice([0, 1, 8, 9, 11, 12, 16, 17, 1000]))
            stream = b"PGCOPY\n\xff\r\n\0" + bytes(8) + struct.pack(">hi", 1, len(sno)) + sno + b"\xff\xff"
            refused = pytest.raises(psycopg.errors.InvalidBinaryRepresentation)
            with refused as error, self.db.cursor().copy("COPY copied FROM STDIN (FORMAT binary)") as copy:
                copy.write(stream)
            assert error.value.diag.message_detail
        self.db.execute("DROP TABLE copied")
        self.counts["sno_recv of another length", "22P03"] += times

    def play_all(self):
        """Runs everything that it was given."""
        for template, calls in self.tasks:
            self.play(template, calls)
        copied = self.copies
        while copied > 0:
            self.copy(min(copied, 250_000) // 5)
            copied -= 250_000
        self.copy_malformed(9 + self.copies // 10_000)


def distribute(players, calls, chance):
    """Distributes templates among players: all calls of a rare template to one, parts of the others to each."""
    copied = calls // 10
    templates = templates_of(soft_errors=players[0].db.info.server_version >= 160000)
    whole = sum(template.weight for template in templates)
    for template in templates:
        count = int((calls - copied) * template.weight / whole) + 1
        chosen = chance.sample(players, min(len(players), 1 + count // BATCH))
        for player in chosen:
            player.tasks.append((template, -(-count // len(chosen))))
    for player in players:
        player.copies = copied // len(players)


def written(sno):
    """The text of a sno."""
    number = int.from_bytes(sno, "big")
    return "".join(DIGITS[number >> shift & 31] for shift in range(75, -1, -5))


@pytest.fixture(scope="module")
def server(servers):
    server = servers("log_min_error_statement=panic", extension=False)
    databases.create(server)
    return server


@pytest.mark.matrix
def test_random_calls_return_or_raise_the_errors_of_their_function(server):
    seed = int(os.environ.get("FLAKE_SEED", time.time_ns()))
    print("FLAKE_SEED =", seed)
    chance = random.Random(seed)
    players = [Player(server, encoding, random.Random(chance.random())) for encoding in databases.ENCODINGS]
    distribute(players, CALLS, chance)
    try:
        with concurrent.futures.ThreadPoolExecutor(len(players)) as pool:
            list(pool.map(Player.play_all, players))
    finally:
        counts = sum((player.counts for player in players), collections.Counter())
        show(counts)
    wrong = [example for player in players for example in player.wrong]
    assert not wrong, "\n".join(wrong[:20])
    assert b"was terminated by signal" not in (server.dir / "server.log").read_bytes()
    assert counts.total() >= CALLS


def show(counts):
    states = collections.Counter()
    by_template = collections.defaultdict(dict)
    for (text, state), count in counts.items():
        states[state] += count
        by_template[text][state] = count
    for text, found in by_template.items():
        print(f"{sum(found.values()):9,}  {' '.join(text.split())[:110]}  {found}")
    print(f"{counts.total():,} calls: {dict(states.most_common())}")


def test_every_function_is_called(server):
    texts = " ".join(template.text for template in templates_of(soft_errors=True))
    with databases.connect(server, "UTF8") as db:
        functions = {name.rpartition(".")[2] for name, *_ in db.execute(databases.OBJECTS)}
    called = {name for name in functions if re.search(rf"\b{name}\b", texts)}
    uncalled = functions - called
    assert uncalled - UNCALLED == set(), "add them to tests/helpers/templates.py"
    assert uncalled == UNCALLED, "tests/helpers/templates.py names what is called, or what is not there"
