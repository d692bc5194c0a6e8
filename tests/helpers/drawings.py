"""Draws a step, a share, used time and a horizon for docs/explanation, in numbers that test_drawings.py compares with a server's.
The colors are those of the reader's light or dark mode. FLAKE_ACCEPT writes the files."""

import html
import os

from conftest import ROOT

FOLDER = ROOT / "docs" / "explanation" / "drawings"
WIDTH, LEFT, RIGHT = 760, 20, 740

# A tick of twitter, in microseconds and IDs, on a PostgreSQL 15 with max_connections = 100: so many server processes divide it.
TICK, IDS, SLOTS = 1000, 1024 * 4096, 122
STEP = 16
MINE = 7

# In seconds: how far ahead time is granted, and how much is left when more is. The server crashes, and starts again.
AHEAD, RESERVE, CRASH, START, END = 3, 1, 4.5, 5, 9

# In milliseconds: the first ID of each transaction and its end, and when a horizon is asked for.
TRANSACTIONS = {"A": (2, 9), "B": (4, 6), "C": (7, 11)}
QUESTIONS = [5, 8, 10, 12]

STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #20262d } .small { font-size: 11px; fill: #5b6570 }
    .line { stroke: #8a939d; fill: none } .part { fill: #dfe4e9; stroke: #fff } .used { fill: #b9d4ea }
    .ours { fill: #1a6fb5 } .edge { stroke: #1a6fb5; fill: none } .bad { stroke: #b3261e; fill: none }
    text.ours { fill: #14588f } text.bad { fill: #b3261e; stroke: none }
    @media (prefers-color-scheme: dark) {
        text { fill: #e6e9ec } .small { fill: #a5aeb8 } .line { stroke: #77818c } .part { fill: #39424c; stroke: #0d1117 }
        .ours { fill: #58a6e6 } .edge { stroke: #58a6e6 } .used { fill: #23455f } .bad { stroke: #ff8a80 }
        text.ours { fill: #8cc4f2 } text.bad { fill: #ff8a80 }
    }"""


def share(ids, slots, tick):
    """The steps of a tick, and how many IDs of each belong to a slot, as src/core/share.rs divides them."""
    most = -(-tick // STEP)
    per_step = max(ids // (slots * most), 1)
    return ids // (slots * per_step), per_step


def untils():
    """When time is granted, and up to when, until the crash."""
    at, until = 0, AHEAD
    while at <= CRASH:
        yield at, until
        at, until = until - RESERVE, until - RESERVE + AHEAD


def horizon(at):
    """Where the earliest of the transactions that are open then has made its first ID."""
    return min([at, *(first for first, end in TRANSACTIONS.values() if first <= at < end)])


def tag(name, content="", **attributes):
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x, y, words, class_="", anchor="start"):
    return tag("text", html.escape(words), x=f"{x:.1f}", y=y, class_=class_, text_anchor=anchor)


def box(x, y, width, height, class_):
    return tag("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{height:.1f}", class_=class_)


def line(class_, *points, dashed=False):
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return tag("path", d=path, class_=class_, **({"stroke_dasharray": "4 3"} if dashed else {}))


def svg(height, title, description, *parts):
    head = tag("title", html.escape(title), id="title") + "\n" + tag("desc", html.escape(description), id="desc")
    body = "\n".join([head, tag("style", STYLE), *parts])
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title desc">'
    return f"{opening}\n{body}\n</svg>\n"


def step_drawing():
    steps, per_step = share(IDS, SLOTS, TICK)
    cell, now = (RIGHT - LEFT) / steps, 400
    at = now * steps // TICK
    cells = [box(LEFT + n * cell, 40, cell, 34, "ours" if n == at else "part") for n in range(steps)]
    x = LEFT + at * cell
    return svg(
        150, "The steps of a tick",
        f"A millisecond is divided into {steps} steps. {now} microseconds into it, all sessions make IDs of step {at}.",
        text(LEFT, 24, f"a tick of twitter: 1 ms, {IDS:,} IDs from the lowest to the highest"), *cells,
        line("edge", (x + cell / 2, 74), (x + cell / 2, 96)),
        text(x + cell / 2, 112, f"the clock is {now} µs into the tick: step {at} of {steps}", "ours", "middle"),
        text(x + cell / 2, 132, f"it lasts {TICK / steps:.1f} µs and has {per_step * SLOTS:,} IDs", "small", "middle"),
    )  # fmt: skip


def share_drawing():
    steps, per_step = share(IDS, SLOTS, TICK)
    width, gap, parts = 220, 30, []
    for place, step in enumerate([0, 1, steps - 1]):
        x, slice_ = LEFT + place * (width + gap), width / SLOTS
        parts.append(box(x, 40, width, 44, "part"))
        parts += [line("line", (x + slot * slice_, 40), (x + slot * slice_, 84)) for slot in range(0, SLOTS, 10)]
        parts.append(box(x + MINE * slice_, 34, slice_, 56, "ours"))
        parts.append(text(x + MINE * slice_ + 1, 106, f"slot {MINE}: {per_step} IDs", "ours"))
        parts.append(text(x + width / 2, 24, f"step {step}: slots 0 to {SLOTS - 1}", anchor="middle"))
        if step == 1:
            parts.append(text(x + width + gap / 2, 66, "…", anchor="middle"))
    total = f"the share of slot {MINE}: {steps} steps × {per_step} IDs = {steps * per_step:,} IDs in each millisecond"
    return svg(140, "A share", f"Each step is divided among {SLOTS} slots; {total}.", *parts, text(LEFT, 130, total))


def used_drawing():
    def x(second):
        return 60 + second * (RIGHT - 60) / END

    def y(second):
        return 240 - second * 210 / END

    granted, parts = list(untils()), []
    last = granted[-1][1]
    for (at, until), following in zip(granted, [*(at for at, _ in granted[1:]), CRASH], strict=True):
        parts.append(box(x(at), y(until), x(following) - x(at), y(0) - y(until), "used"))
        parts.append(text(x(at) + 4, y(until) - 5, f"granted to {until} s", "small"))
    parts.append(box(x(CRASH), y(last), x(last) - x(CRASH), y(0) - y(last), "used"))
    parts += [
        line("line", (x(0), y(0)), (x(END), y(0))), text(x(END), y(0) + 30, "the clock, in seconds", "small", "end"),
        *(text(x(second), y(0) + 15, str(second), "small", "middle") for second in range(END + 1)),
        text(14, y(END) - 8, "times of IDs", "small"),
        line("edge", (x(0), y(0)), (x(CRASH), y(CRASH))), line("edge", (x(last), y(last)), (x(END), y(END))),
        text(x(2.4), y(1.6), "IDs", "ours"),
        line("bad", (x(CRASH), y(0)), (x(CRASH), y(last))), text(x(CRASH) + 5, y(CRASH) + 60, "crash", "bad"),
        line("bad", (x(START), y(last)), (x(last), y(last)), dashed=True),
        text(x(START) + 4, y(last) + 16, f"starts at {START} s, waits until {last} s", "bad"),
    ]  # fmt: skip
    return svg(
        280, "Used time",
        f"Time counts as used {AHEAD} seconds ahead, and more is granted when {RESERVE} second is left. After a crash at {CRASH} "
        f"seconds, the server starts at {START} and makes no ID until {last}, where used time ends.", *parts,
    )  # fmt: skip


def horizon_drawing():
    end = 14

    def x(millisecond):
        return 40 + millisecond * (RIGHT - 40) / end

    parts = [line("line", (x(0), 150), (x(end), 150)), text(x(end), 180, "milliseconds", "small", "end")]
    parts += [text(x(n), 165, str(n), "small", "middle") for n in range(end)]
    for asked in QUESTIONS:
        parts.append(line("edge", (x(asked), 30), (x(asked), 150), dashed=True))
        parts.append(text(x(asked), 20, f"at {asked}: {horizon(asked)}", "ours", "middle"))
    for lane, (name, (first, ended)) in enumerate(TRANSACTIONS.items()):
        height = 40 + lane * 36
        parts += [
            box(x(first), height, x(ended) - x(first), 22, "used"), box(x(first), height, 4, 22, "ours"),
            text(x(first) + 10, height + 15, f"{name}: {first} to {ended}"),
        ]  # fmt: skip
    answers = ", ".join(f"at {asked} it is {horizon(asked)}" for asked in QUESTIONS)
    return svg(
        190, "A horizon",
        f"Three transactions make IDs. The horizon is the first ID of the earliest that is open, or the present: {answers}.",
        *parts,
    )  # fmt: skip


DRAWINGS = {"step": step_drawing, "share": share_drawing, "used-time": used_drawing, "horizon": horizon_drawing}


def check(name):
    """Compares a file with what is drawn, or writes it."""
    file, drawn = FOLDER / f"{name}.svg", DRAWINGS[name]()
    if os.environ.get("FLAKE_ACCEPT"):
        file.write_text(drawn)
    else:
        assert file.read_text() == drawn, "scripts/test accept draws it"
