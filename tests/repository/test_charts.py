"""The plots and drawings of the pages: titles fit, axes have units, and each color has another one on dark pages."""

import re

import pytest

from conftest import ROOT

FOLDER = ROOT / "docs/explanation"
PLOTS = sorted((FOLDER / "benchmarks").glob("*.svg"))
DRAWINGS = sorted((FOLDER / "drawings").glob("*.svg"))
UNITS = {"nanoseconds", "milliseconds", "seconds", "megabytes", "INSERTs per second", "millions of IDs per second"}
TEXT = re.compile(
    r'<text style="[^"]*font(?:-size)?: (\d+)px[^"]*text-anchor: (\w+)[^"]*" x="([\d.]+)" y="[\d.]+" '
    r'transform="rotate\(-(\d+)[^>]*>([^<]*)<'
)
# The width of a letter in Verdana, the widest of the fonts, as a part of its height.
WIDE = 0.61


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.stem)
def test_plots_have_titles_that_fit_and_axes_with_units(plot):
    drawing = plot.read_text()
    width = float(re.search(r'viewBox="0 0 ([\d.]+) ', drawing)[1])
    texts = TEXT.findall(drawing)
    assert len(texts) == drawing.count("<text")
    assert UNITS & {text for *_, text in texts}
    (title,) = [(float(x), text) for size, _, x, _, text in texts if size == "12"]
    assert title[0] < 10 and title[0] + WIDE * 12 * len(title[1]) < width
    for size, anchor, x, turned, text in texts:
        if turned == "0" and anchor == "start":
            assert float(x) + WIDE * int(size) * len(text) < width + 6, text


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.stem)
def test_each_color_of_a_plot_has_one_for_dark_pages(plot):
    """Also the background, because a page can be light in a dark browser."""
    drawing = plot.read_text()
    rules = re.search(r"<style>@media \(prefers-color-scheme: dark\) (.*?)</style>", drawing, re.S)[1]
    used = set(re.findall(r"((?:fill|stroke): #\w{6})", drawing.replace(rules, "")))
    assert "fill: #ffffff" in used and len(used) >= 4
    assert used <= set(re.findall(r'\[style\*="([^"]*)"\]', rules))


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.stem)
def test_drawings_are_described_and_have_dark_colors(drawing):
    text = drawing.read_text()
    assert all(part in text for part in ('role="img"', "<title", "<desc", "prefers-color-scheme: dark"))


def test_all_plots_are_shown():
    pages = "".join((ROOT / page).read_text() for page in ("README.md", "docs/explanation/benchmarks.md"))
    shown = set(re.findall(r"benchmarks/(\w+)\.svg\)", pages))
    assert {plot.stem for plot in PLOTS} == shown and DRAWINGS
