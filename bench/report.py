"""The results as tables in docs and README.md, between marks that are comments there."""

import re

# README.md and the page's plots and tables are of this version of PostgreSQL; the page's last part is of another one.
MAIN = "19"


def table(heads, rows):
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(value, form="{:,.0f}"):
    return "–" if value is None else form.format(value)


def times(values, key, base, form="{:.2f}"):
    return number(values[key] / values[base], form + " ×") if key in values and base in values else "–"


def costs(results):
    calls, counted = results["calls"], results["instructions"] or {}
    rows = [
        [results["labels"][key], number(calls[key]), times(calls, key, "bigserial"), number(counted.get(key))]
        for key in sorted((key for key in calls if key in results["labels"]), key=calls.get)
    ]
    return table(["one ID", "ns", "of nextval()", "instructions"], rows)


def beside(results):
    calls, rows = results["calls"], results["rows"]
    shown = [
        ["`clock_timestamp()`", number(calls["clock_timestamp()"]), ""],
        ["`flake_timestamp(id)`", number(calls["flake_timestamp(n)"]),
         times(calls, "flake_timestamp(n)", "abs(n)") + " `abs(bigint)`"],
        ["`flake_timestamp(id, 'si')`", number(calls["flake_timestamp(n, 'si')"]), ""],
        ["`to_timestamp(id::double precision)`", number(calls["to_timestamp(n::float8)"]), ""],
        ["`flake_decode(id)`", number(calls["flake_decode(n)"]), ""],
        ["a row of `flake_batch` in FROM", number(rows["flake_batch"]),
         times(rows, "flake_batch", "generate_series") + " `generate_series`"],
        ["a row of `flake_batch` in SELECT", number(rows["flake_batch in SELECT"]),
         times(rows, "flake_batch in SELECT", "generate_series in SELECT") + " `generate_series`"],
    ]  # fmt: skip
    ids = results["twitter"] / 1000
    return table(["what", "ns", "compared"], shown) + (
        f"\n\nA server has {ids:,.0f} IDs of `twitter` per millisecond, one in {1e6 / ids:.0f} ns, so a session that "
        "makes one after the other does not have to wait."
    )


def tables(results):
    fill, copied, wal, sizes = results["fill"], results["copy"], results["wal"], results["sizes"]
    (points, ranges) = results["reads"]
    size = {key: megabytes for key, (megabytes, _) in sizes.items()}
    rows = [
        [
            results["labels"][key], number(fill[key], "{:.2f} s"), times(fill, key, "bigserial"),
            number(copied.get(key), "{:.2f} s"), times(copied, key, "bigserial"), number(wal[key]),
            number(results["on disk"][key], "{:.1f} MB"), number(size.get(key), "{:.1f} MB"), times(size, key, "bigserial"),
            number(sizes.get(key, (None, None))[1], "{:.0f} %"), number(points.get(key)), number(ranges.get(key)),
        ]
        for key in sorted(fill, key=fill.get)
    ]  # fmt: skip
    heads = ["a million rows", "INSERT", "of bigserial", "COPY", "of bigserial", "WAL bytes a row", "on disk", "index",
             "of bigserial", "leaves full", "ns to find a row", "µs to read 1,000 rows"]  # fmt: skip
    text = table(heads, rows)
    for key in results["repeated"]:
        text += f"\n\n{results['labels'][key]} made an ID twice within the statement, so it has no row here."
    return text


def loads(found):
    """COPY beside bigserial: time, WAL and index, in each way."""
    columns = [(way, what) for way, values in found.items() if way != "labels" for what in values]
    shown = {"seconds": "{:.2f} s", "WAL": "{:.0f} bytes", "index": "{:.1f} MB"}
    names = {"seconds": "time", "WAL": "WAL", "index": "index"}
    rows = [
        [label, *(number(found[way][what]["of bigserial"][key], "{:.2f} ×") for way, what in columns)]
        for key, label in found["labels"].items() if key != "load_bigserial"
    ]  # fmt: skip
    of_bigserial = (number(found[way][what]["bigserial"], shown[what]) for way, what in columns)
    rows.append([found["labels"]["load_bigserial"], *of_bigserial])
    return table(["COPY of a million rows", *(f"{way}: {names[what]}" for way, what in columns)], rows)


def timed(results):
    """A table whose key holds the time beside one that has a column for it."""
    copied, fill = results["copy"], results["fill"]
    hour, disk = results["last hour"]["ms"], results["last hour"]["MB"]
    labels = {"flake": "`flake_next('twitter')`, and a view", "timed": results["labels"]["timed"]}
    rows = [
        [label, number(fill[key], "{:.2f} s"), number(copied[key], "{:.2f} s"),
         number(disk[key], "{:.1f} MB"), number(hour[key], "{:.2f} ms")]
        for key, label in labels.items()
    ]  # fmt: skip
    rows.append(["of the other", *(times(found, "flake", "timed") for found in (fill, copied, disk, hour))])
    heads = ["a million rows and their times", "INSERT … SELECT", "COPY", "on disk", "the last hour"]
    return table(heads, rows)


def rate(found, key, place, form):
    rates, ratios = found
    return f"{number(rates[key][place], form)} ({ratios[key][place]:.2f} ×)"


def clients(results, found, form):
    heads = ["", *(f"{n} client{'s' if n > 1 else ''}" for n in results["clients"])]
    keys = sorted(found[0], key=lambda key: -found[0][key][-1])
    return table(heads, [[results["labels"][key], *(rate(found, key, n, form) for n in range(len(heads) - 1))] for key in keys])


def tight(found):
    """Index and rows per second, of bigserial's, by rows of a statement; and how much is not in order."""
    heads = ["rows per statement"]
    # A plot shows the index after 20.
    shown = {count: each for count, each in found["indexes"].items() if count != "20"}
    for count in shown:
        heads += [f"{count}: index", f"{count}: rows per second"]
    first = next(iter(shown.values()))["sizes"]
    rows = [
        [found["labels"][key], *(number(each[of][key], "{:.2f} ×")
                                 for each in shown.values() for of in ("of sizes", "of rates")),
         number(found["disorder"][key], "{:.2f} %")]
        for key in sorted(first, key=first.get)
    ]  # fmt: skip
    return table([*heads, "not in order"], rows)


def consumers(found):
    """How long a row takes to a reader, in milliseconds, and what the table costs."""
    heads = ["rows below", "lag, median", "99 %", "beside long transactions, median", "99 %", "bytes a row", "INSERTs per second"]
    rows = [
        [label, *(number(value, "{:,.1f} ms") for name in ("lag", "lag beside long transactions") for value in found[name][way]),
         number(found["bytes"][way]), f"{number(found['rates'][way])} ({found['of rates'][way]:.2f} ×)"]
        for way, label in found["labels"].items()
    ]  # fmt: skip
    return table(heads, rows)


def standby(found):
    median, late, most = (number(1000 * value) for value in found["more"])
    return (
        f"The watermark is {median} ms older than the last commit that the standby has replayed (median), {late} ms (99 %), and "
        f"{most} ms at most; one was published every {1000 * found['interval']:.0f} ms, the longest time between two was "
        f"{1000 * found['longest']:.0f} ms."
    )


def filters(results):
    """A filter by time, in each way, and what that takes."""
    # Numbers are text in JSON, where they are keys.
    times = {int(found): each for found, each in results["ms"].items()}
    labels = [("scan", "plain", "a filter of each row"), ("column", "generated", "a generated column with an index"),
              ("view", "plain", "`created_at` of a view"), ("by hand", "plain", "`id >= flake_min(…)`")]  # fmt: skip
    rows = [
        [label, *(number(times[found][way], "{:,.2f} ms") for found in times),
         number(results[table]["bytes a row"], "{:.1f}"), number(results[table]["indexes"], "{:,.0f} MB")]
        for way, table, label in labels
    ]  # fmt: skip
    heads = [f"{results['rows']:,} rows", *(f"{found:,} of them" for found in times), "bytes a row", "indexes"]
    ratios = " and ".join(f"{each['view']:.3f} ×" for each in results["of by hand"].values())
    return table(heads, rows) + (
        f"\n\nThe view takes {ratios} the time of the range that is written by hand, and where each row is found "
        f"{results['of scan, everything']:.2f} × the filter's."
    )


def others(results):
    memory, waiting, loaded, counted = results["memory"], results["waiting"], results["loaded"], results["instructions"]
    profile = results["profile"]
    lines = [
        f"* A new session uses {memory['new']:,} kB of its own. Its first ID adds {memory['first ID']:,} kB (the library's "
        f"data and what PostgreSQL keeps for a call), and generators of ten layouts add {memory['ten layouts']:,} kB.",
        f"* With `flake.node_count = 32`, a server has {waiting['ids']} IDs of `si` per millisecond. A lone session gets "
        f"{waiting['rate']:.1%} of them and uses {waiting['cpu']:.0%} of a core.",
        "* Sessions that make no IDs run, with the library loaded, "
        + " and ".join(f"{ratio:.3f} × as many transactions of `{name}`" for name, ratio in loaded.items())
        + " as without it"
        + (
            f"; a row takes {counted['bare, library loaded']:,.0f} instructions with it and {counted['bare']:,.0f} without."
            if counted
            else "."
        ),
    ]
    if results["writers"] is not None:
        before, published, _ = (results["writers"][when] for when in ("before", "while", "after"))
        lines.append(
            f"* A row that is inserted and committed takes {before:,.0f} instructions; {published / before:.3f} × as many while "
            "another session publishes watermarks, every 50 ms."
        )
    if profile is not None:
        lines.append(f"* Eight sessions inserting single rows spend {profile:.2f} % of their time in flake's library.")
    return "\n".join(lines)


def short(results):
    """The table of README.md."""
    fill, copied, calls, rates = results["fill"], results["copy"], results["calls"], results["inserts"][1]
    shown = ["flake", "bigserial", "timed", "pgedge", "uuid7", "uuid4", "instagram"]
    rows = [
        [results["labels"][key], number(calls.get(key), "{:,.0f} ns"), number(fill[key], "{:.2f} s"),
         number(copied[key], "{:.2f} s"), number(results["on disk"][key], "{:.1f} MB"), number(rates[key][1], "{:.2f} ×")]
        for key in shown if key in fill
    ]  # fmt: skip
    return table(["", "one ID", "INSERT of a million rows", "COPY", "on disk", "single-row INSERTs, 8 clients"], rows)


def reconnecting(results):
    """The cost of a session's first ID, where each transaction has a session of its own."""
    rows = []
    for label, part in [("loaded by the first ID", "loaded"), ("`shared_preload_libraries = flake`", "preloaded")]:
        # Numbers are text in JSON, where they are keys.
        found = dict(results[f"reconnecting, {part}"])
        processor = found.pop("processor")
        found = {int(clients): each for clients, each in found.items()}
        rows.append([
            label, *(f"{found[n]['ratio']:.2f} ×" for n in found),
            number(found[1]["longer"], "{:+,.0f} µs"), f"{processor:.2f} ×",
        ])  # fmt: skip
    clients = [f"{n} client{'s' if n > 1 else ''}" for n in found]
    heads = ["the library is", *clients, "a transaction takes", "processor time"]
    return table(heads, rows) + "\n\n" + first(results["first ID"])


def first(counted):
    if counted is None:
        return "Instructions were not counted."
    beside, alone = counted["beside"], counted["alone"]
    return (
        f"The first `flake_next` of a session and its exit take {beside['flake_next']:,} instructions in a server that has "
        f"preloaded the library, with `nextval` {beside['nextval']:,}; in a session that is alone, "
        f"{alone['flake_next']:,} and {alone['nextval']:,}."
    )


def put(page, name, text):
    """Replaces what is between two marks of a page."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    old = page.read_text()
    new, count = re.subn(f"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", old, flags=re.S)
    assert count == 1, f"{page} has no place for {name}"
    page.write_text(new)


def write(root, results):
    page = root / "docs/explanation/benchmarks.md"
    put(page, "machine", results["machine"])
    put(page, "costs", costs(results))
    put(page, "beside", beside(results))
    put(page, "tables", tables(results))
    put(page, "loads", loads(results["loads"]))
    put(page, "timed", timed(results))
    put(page, "inserts", clients(results, results["inserts"], "{:,.0f}"))
    put(page, "reconnecting", reconnecting(results))
    put(page, "generating", clients(results, results["generating"], "{:.1f}"))
    put(page, "tight", tight(results["tight"]))
    put(page, "tight_of_32", tight(results["tight of 32"]))
    put(page, "consumers", consumers(results["consumers"]))
    put(page, "standby", standby(results["standby"]))
    put(page, "filters", filters(results["filters"]))
    put(page, "others", others(results))
    put(root / "README.md", "benchmark", short(results))


def version(results):
    """The major version of PostgreSQL on which the results were measured."""
    return re.match(r"PostgreSQL (\d+)", results["machine"])[1]


def write_other(root, results):
    """The part of the page that shows another version of PostgreSQL."""
    parts = [
        f"## On PostgreSQL {version(results)}",
        results["machine"],
        "Calls, a million rows, and INSERTs per second, as above:",
        costs(results),
        tables(results),
        "COPY beside bigserial:",
        loads(results["loads"]),
        "A key that holds its time:",
        timed(results),
        clients(results, results["inserts"], "{:,.0f}"),
        "A connection for each transaction:",
        reconnecting(results),
        "Filters by time:",
        filters(results["filters"]),
    ]
    put(root / "docs/explanation/benchmarks.md", "other", "\n\n".join(parts))
