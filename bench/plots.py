"""Plots of the results, as SVG: each with a title that fits, axes that name their units, and colors for dark pages."""

import itertools

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "flake", "font.family": "sans-serif", "font.size": 11}
import matplotlib.pyplot as plt

OURS, OTHERS, INK, FAINT, GRID, PAPER = "#1a6fb5", "#b9c0c8", "#20262d", "#6b7580", "#e3e7eb", "#ffffff"
# The colors of dark pages.
DARK = {OURS: "#58a6e6", OTHERS: "#5c6670", INK: "#e6e9ec", FAINT: "#a5aeb8", GRID: "#2b323a", PAPER: "#0d1117"}
WIDTH = 7.6
# Characters of the title that fit into this width, in the widest of the fonts.
LONGEST = 72


def bars(path, title, unit, values, labels, ours, form):
    """One bar for each value, the shortest on top, its number at its end."""
    keys = sorted(values, key=values.get, reverse=True)
    figure, axes = plt.subplots(figsize=(WIDTH, 1.4 + 0.42 * len(keys)))
    colors = [OURS if key in ours else OTHERS for key in keys]
    axes.barh(range(len(keys)), [values[key] for key in keys], color=colors, height=0.68)
    axes.set_yticks(range(len(keys)), [labels[key] for key in keys])
    most = max(values.values())
    for place, key in enumerate(keys):
        axes.text(values[key] + most * 0.01, place, form.format(values[key]), va="center", color=INK)
    axes.set_xlim(0, most * 1.14)
    axes.set_xlabel(unit, color=INK)
    axes.xaxis.set_major_formatter("{x:,g}")
    finish(figure, [axes], title)
    for key, label in zip(keys, axes.get_yticklabels(), strict=True):
        label.set_color(OURS if key in ours else INK)
    save(figure, path)


def lines(path, title, unit, values, labels, ours, numbers, form):
    """One line for each contestant, over numbers of clients."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.9))
    ends = []
    for key, found in values.items():
        style = {"color": OURS, "linewidth": 2.4, "zorder": 3} if key in ours else {"color": OTHERS, "linewidth": 1.6}
        axes.plot(range(len(numbers)), found, marker="o", **style)
        ends.append([found[-1], f"{labels[key]}  {form.format(found[-1])}", OURS if key in ours else FAINT])
    top = max(max(found) for found in values.values())
    # Labels at the ends of lines, moved apart where they would overlap.
    ends.sort()
    for one, other in itertools.pairwise(ends):
        other[0] = max(other[0], one[0] + top * 0.075)
    for height, text, color in ends:
        axes.text(len(numbers) - 0.93, height, text, va="center", color=color)
    axes.set_xticks(range(len(numbers)), numbers)
    axes.set_xlabel("clients", color=INK)
    axes.set_ylabel(unit, color=INK)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlim(-0.15, len(numbers) + 0.75)
    axes.set_ylim(0, max(top, ends[-1][0]) * 1.08)
    finish(figure, [axes], title, "yaxis")
    save(figure, path)


def finish(figure, panels, title, measured="xaxis"):
    """Titles begin at the left edge of the plot, whatever the width of the labels. A grid shows the axis that measures."""
    assert len(title) <= LONGEST, title
    figure.suptitle(title, x=0.012, ha="left", color=INK, fontsize=12)
    for axes in panels:
        for side in axes.spines:
            axes.spines[side].set_visible(False)
        axes.tick_params(which="both", length=0, colors=INK)
        axes.set_axisbelow(True)
        getattr(axes, measured).grid(True, color=GRID, linewidth=0.8)
    figure.tight_layout()


def save(figure, path):
    figure.savefig(path, metadata={"Date": None}, facecolor=PAPER)
    plt.close(figure)
    path.write_text(with_dark_colors(path.read_text()))


def with_dark_colors(drawing):
    """Each color stands in the style of an element, where only a rule that is important is stronger."""
    rule = '[style*="{0}: {1}"] {{ {0}: {2} !important }}'
    rules = [rule.format(what, light, dark) for light, dark in DARK.items() for what in ("fill", "stroke")]
    style = "<style>@media (prefers-color-scheme: dark) {{ {} }}</style>\n </defs>"
    return drawing.replace("</defs>", style.format(" ".join(rules)), 1)


def draw(folder, results):
    labels, ours, numbers = results["labels"], set(results["ours"]), results["clients"]
    calls = {key: ns for key, ns in results["calls"].items() if key in labels}
    sizes = {key: size for key, (size, _) in results["sizes"].items()}
    inserts = {key: tps for key, tps in results["inserts"][0].items() if key in ("flake", "bigserial", "uuid4", "uuid7")}
    tight = results["tight"]
    folder.mkdir(exist_ok=True)
    sizes_of_20 = tight["indexes"]["20"]["sizes"]
    title = "Index after eight sessions inserted 480,000 rows, 20 at a time"
    bars(folder / "tight.svg", title, "megabytes", sizes_of_20, tight["labels"], set(tight["ours"]), "{:.1f}")
    draw_timed(folder / "timed.svg", results)
    draw_consumers(folder, results["consumers"])
    draw_standby(folder / "standby.svg", results["standby"])
    for name, title, unit, values, form in (
        ("cost", "One ID inside a query, on top of the row it is in", "nanoseconds", calls, "{:,.0f}"),
        ("insert", "INSERT of a million rows", "seconds", results["fill"], "{:.2f}"),
        ("index", "Index of a million IDs", "megabytes", sizes, "{:.1f}"),
    ):
        bars(folder / f"{name}.svg", title, unit, values, labels, ours, form)
    for name, title, unit, values, form in (
        ("clients", "Single-row INSERTs, synchronous_commit off", "INSERTs per second", inserts, "{:,.0f}"),
        ("generating", "IDs that are not stored", "millions of IDs per second", results["generating"][0], "{:.1f}"),
    ):
        lines(folder / f"{name}.svg", title, unit, values, labels, ours, numbers, form)


def draw_timed(path, results):
    """The cost of a key and a time: seconds above megabytes, and one bar for each way. It is as narrow as a phone, because README
    begins with it."""
    names = {"flake": "flake_next('twitter')", "timed": results["labels"]["timed"]}
    parts = [("INSERT", "seconds", results["fill"], "{:.2f}"), ("On disk", "megabytes", results["on disk"], "{:.1f}")]
    figure, panels = plt.subplots(2, 1, figsize=(3.6, 4.4))
    places = [1, 0]
    for axes, (what, unit, values, form) in zip(panels, parts, strict=True):
        found = [values[key] for key in names]
        axes.barh(places, found, color=[OURS, OTHERS], height=0.36)
        for place, value, name in zip(places, found, names.values(), strict=True):
            axes.text(value + max(found) * 0.02, place, form.format(value), va="center", color=INK)
            axes.text(0, place + 0.24, name, va="bottom", color=INK)
        axes.set_xlim(0, max(found) * 1.2)
        axes.set_ylim(-0.3, 1.7)
        axes.set_title(what, loc="left", color=FAINT, fontsize=11)
        axes.set_xlabel(unit, color=INK)
        axes.set_yticks([])
        axes.set_xticks([])
    finish(figure, panels, "A million rows with key and time")
    save(figure, path)


def draw_consumers(folder, found):
    names = {"watermark": "flake_watermark()", "xid": "pg_snapshot_xmin()"}
    values, labels = {}, {}
    for name, when in ("lag", "alone"), ("lag beside long transactions", "beside long transactions"):
        for way, (_, late) in found[name].items():
            values[f"{way} {when}"], labels[f"{way} {when}"] = late, f"{names[way]}, {when}"
    ours = {key for key in values if key.startswith("watermark")}
    title = "Until a consumer that loses no row has read 99 of 100 new ones"
    bars(folder / "consumers.svg", title, "milliseconds", values, labels, ours, "{:,.1f}")


def draw_standby(path, found):
    """How old the watermark and what was replayed are, over the seconds of the run."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.4))
    seconds, watermark, replay = zip(*found["samples"], strict=True)
    most = [age + found["interval"] for age in replay]
    for ages, label, style in (
        (most, f"what was replayed, and {1000 * found['interval']:.0f} ms", {"color": OTHERS, "linewidth": 3}),
        (watermark, "flake_watermark()", {"color": OURS, "linewidth": 1}),
    ):
        axes.plot(seconds, [1000 * age for age in ages], label=label, **style)
    axes.set_yscale("log")
    axes.set_xlabel("seconds", color=INK)
    axes.set_ylabel("milliseconds", color=INK)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, loc="upper left", labelcolor=INK)
    finish(figure, [axes], "Age of rows and of the watermark on a standby whose replay is paused", "yaxis")
    save(figure, path)
