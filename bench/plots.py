"""Plots of the results, as SVG."""

import itertools

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "flake", "font.family": "sans-serif", "font.size": 11}
import matplotlib.pyplot as plt

OURS, OTHERS, INK, FAINT = "#1a6fb5", "#b9c0c8", "#20262d", "#6b7580"
# Their colors on dark pages, and the ones of the white and black that matplotlib adds.
DARK = {
    OURS: "#58a6e6", OTHERS: "#5d6771", INK: "#e6e9ec", FAINT: "#a5aeb8", "#ffffff": "transparent", "#000000": "#77818c",
}  # fmt: skip


def bars(path, title, values, labels, ours, form):
    """One bar for each value, the shortest on top, its number at its end."""
    keys = sorted(values, key=values.get, reverse=True)
    figure, axes = plt.subplots(figsize=(7.6, 0.9 + 0.42 * len(keys)))
    colors = [OURS if key in ours else OTHERS for key in keys]
    axes.barh(range(len(keys)), [values[key] for key in keys], color=colors, height=0.68)
    axes.set_yticks(range(len(keys)), [labels[key] for key in keys])
    most = max(values.values())
    for place, key in enumerate(keys):
        axes.text(values[key] + most * 0.01, place, form.format(values[key]), va="center", color=INK)
    axes.set_xlim(0, most * 1.14)
    finish(figure, axes, title)
    for key, label in zip(keys, axes.get_yticklabels(), strict=True):
        label.set_color(OURS if key in ours else INK)
    save(figure, path)


def lines(path, title, values, labels, ours, numbers, form):
    """One line for each contestant, over numbers of clients."""
    figure, axes = plt.subplots(figsize=(7.6, 3.9))
    ends = []
    for key, found in values.items():
        style = {"color": OURS, "linewidth": 2.4, "zorder": 3} if key in ours else {"color": OTHERS, "linewidth": 1.6}
        axes.plot(range(len(numbers)), found, marker="o", **style)
        ends.append([found[-1], f"{labels[key]}  {form.format(found[-1])}", OURS if key in ours else FAINT])
    top = max(max(found) for found in values.values())
    # Labels at the ends of lines, moved apart where they would overlap.
    ends.sort()
    for one, other in itertools.pairwise(ends):
        other[0] = max(other[0], one[0] + top * 0.062)
    for height, text, color in ends:
        axes.text(len(numbers) - 0.93, height, text, va="center", color=color)
    axes.set_xticks(range(len(numbers)), [f"{n} client{'s' if n > 1 else ''}" for n in numbers])
    axes.set_xlim(-0.15, len(numbers) + 0.75)
    axes.set_ylim(0, max(top, ends[-1][0]) * 1.08)
    finish(figure, axes, title, x_axis=True)
    save(figure, path)


def finish(figure, axes, title, x_axis=False):
    axes.set_title(title, loc="left", color=INK, fontsize=12, pad=12)
    for side in "top", "right", "bottom" if not x_axis else "left":
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, colors=INK)
    (axes.yaxis if x_axis else axes.xaxis).set_visible(False)
    figure.tight_layout()


def save(figure, path):
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)
    path.write_text(adapted(path.read_text()))


def adapted(plot):
    """Adds the colors for dark pages. Elements name their colors in styles, which only an important rule overrides."""
    colors = itertools.product(("fill", "stroke"), DARK.items())
    rules = "\n".join(f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important }}' for kind, (light, dark) in colors)
    return plot.replace("</style>", f"\n@media (prefers-color-scheme: dark) {{\n{rules}\n}}</style>", 1)


def draw(folder, results):
    labels, ours, numbers = results["labels"], set(results["ours"]), results["clients"]
    calls = {key: ns for key, ns in results["calls"].items() if key in labels}
    sizes = {key: size for key, (size, _) in results["sizes"].items()}
    inserts = {key: tps for key, tps in results["inserts"][0].items() if key in ("flake", "bigserial", "uuid4", "uuid7")}
    tight = results["tight"]
    folder.mkdir(exist_ok=True)
    sizes_of_20 = tight["indexes"]["20"]["sizes"]
    title = "Index after eight sessions inserted 480,000 rows, 20 at a time: megabytes"
    bars(folder / "tight.svg", title, sizes_of_20, tight["labels"], set(tight["ours"]), "{:.1f}")
    draw_consumers(folder, results["consumers"])
    draw_standby(folder / "standby.svg", results["standby"])
    for name, title, values, form in (
        ("cost", "One ID inside a query: nanoseconds on top of the row it is in", calls, "{:,.0f}"),
        ("insert", "INSERT of a million rows: seconds", results["fill"], "{:.2f}"),
        ("index", "Index of a million IDs: megabytes", sizes, "{:.1f}"),
    ):
        bars(folder / f"{name}.svg", title, values, labels, ours, form)
    for name, title, values, form in (
        ("clients", "Single-row INSERTs per second, synchronous_commit off", inserts, "{:,.0f}"),
        ("generating", "Millions of IDs made per second, not stored", results["generating"][0], "{:.1f}"),
    ):
        lines(folder / f"{name}.svg", title, values, labels, ours, numbers, form)


def draw_consumers(folder, found):
    names = {"horizon": "flake_horizon()", "xid": "pg_snapshot_xmin()"}
    values, labels = {}, {}
    for name, when in ("lag", "alone"), ("lag beside long transactions", "beside long transactions"):
        for way, (_, late) in found[name].items():
            values[f"{way} {when}"], labels[f"{way} {when}"] = late, f"{names[way]}, {when}"
    ours = {key for key in values if key.startswith("horizon")}
    bars(folder / "consumers.svg", "Lag of new rows, 99 %: milliseconds", values, labels, ours, "{:,.1f}")


def draw_standby(path, found):
    """How old the horizon and what was replayed are, over the seconds of the run."""
    figure, axes = plt.subplots(figsize=(7.6, 3.2))
    seconds, horizon, replay = zip(*found["samples"], strict=True)
    most = [age + found["interval"] for age in replay]
    for ages, label, style in (
        (most, f"what was replayed, and {1000 * found['interval']:.0f} ms", {"color": OTHERS, "linewidth": 3}),
        (horizon, "flake_horizon()", {"color": OURS, "linewidth": 1}),
    ):
        axes.plot(seconds, [1000 * age for age in ages], label=label, **style)
    axes.set_yscale("log")
    axes.set_xlabel("seconds", color=INK)
    finish(figure, axes, "Age on a standby, whose replay is paused for a while: milliseconds", x_axis=True)
    axes.yaxis.set_visible(True)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, loc="upper left", labelcolor=INK)
    figure.tight_layout()
    save(figure, path)
