"""Search, dark mode and links of the built pages."""

import shutil
import zlib

import pytest

import links
from conftest import HTML, ROOT


def test_each_page_of_docs_has_a_page():
    wanted = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert len(wanted) > 30
    assert wanted <= {path.relative_to(HTML) for path in HTML.rglob("*.html")}


def test_front_matter_is_no_heading(browser, address):
    browser.open(f"{address}/skills/flake/SKILL.html")
    assert browser.run("document.querySelector('main h1, main h2').textContent") == "Code that uses flake"


def test_the_first_page_leads_to_the_playground_and_the_reader(browser, address):
    for page in "playground", "read-an-id":
        browser.open(f"{address}/index.html")
        browser.click(f"main a[href='{page}.html']")
        browser.until(f"location.pathname === '/{page}.html'")


def search(browser, address, text):
    """Searches on the first page, and returns the links that are found."""
    browser.open(f"{address}/index.html")
    browser.click("#mdbook-search-toggle")
    browser.until("document.activeElement.id === 'mdbook-searchbar'")
    browser.type(text)
    links_of_results = "[...document.querySelectorAll('#mdbook-searchresults a')].map(link => link.href)"
    return browser.until(f"(links => links.length && links)({links_of_results})")


@pytest.mark.parametrize(("text", "page"), [
    ("flake_take", "docs/how-to/tail.html"),
    ("ahead of the clock", "docs/faq.html"),
    ("promotion", "docs/how-to/runbook.html"),
])  # fmt: skip
def test_search_finds_a_page_and_leads_there(browser, address, text, page):
    found = search(browser, address, text)
    assert any(f"/{page}" in link for link in found), found
    browser.click("#mdbook-searchresults a")
    browser.until("document.querySelector('main mark') && location.pathname !== '/index.html'")


@pytest.mark.parametrize(("text", "pages"), [
    ("node_id", ["reference/settings.html", "how-to/several-servers.html"]),
    ("performance", ["explanation/benchmarks.html"]),
    ("uninstall", ["how-to/install.html", "how-to/leave.html"]),
    ("duplicate key", ["faq.html"]),
    ("collision", ["faq.html", "explanation/guarantee.html"]),
    ("supabase", ["how-to/managed.html"]),
    ("rds", ["how-to/managed.html"]),
    ("neon", ["how-to/managed.html"]),
    ("kubernetes", ["how-to/high-availability.html"]),
    ("migrate", ["how-to/convert.html"]),
    ("migration", ["how-to/convert.html"]),
    ("convert", ["how-to/convert.html"]),
])  # fmt: skip
def test_words_that_newcomers_search_for_lead_to_their_pages(browser, address, text, pages):
    """Pages are different ones; a page can have several sections among the results."""
    found = list(dict.fromkeys(link.split("?")[0].split("/docs/")[-1] for link in search(browser, address, text)))
    assert set(pages) <= set(found[:3]), found


def brightness(png):
    """Returns the mean of all samples of a PNG of 8 bits, whose lines are filtered in one of five ways."""
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    channels = {2: 3, 6: 4}[png[25]]
    data, at = b"", 8
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        data += png[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    raw, size = zlib.decompress(data), width * channels
    before, total = bytes(size), 0
    for row in range(height):
        begin = row * (size + 1)
        line = unfiltered(raw[begin], bytearray(raw[begin + 1 : begin + 1 + size]), before, channels)
        total += sum(sum(line[channel::channels]) for channel in range(3))
        before = line
    return total / (width * height * 3)


def unfiltered(kind, line, above, channels):
    for place in range(len(line)):
        left = line[place - channels] if place >= channels else 0
        corner = above[place - channels] if place >= channels else 0
        guess = left + above[place] - corner
        nearest = min((left, above[place], corner), key=lambda value: abs(guess - value))
        line[place] = (line[place] + (0, left, above[place], (left + above[place]) // 2, nearest)[kind]) % 256
    return line


PICTURES = {
    "docs/explanation/how-it-works.html": "main img[src$='used-time.svg']",
    "docs/explanation/benchmarks.html": "main img[src$='cost.svg']",
}


@pytest.mark.parametrize("page", PICTURES)
@pytest.mark.parametrize("chosen", ["by the system", "by the visitor"])
def test_pictures_are_dark_on_dark_pages(browser, address, page, chosen):
    """Also where the visitor has chosen a dark theme on a light system, as a picture asks its page, not the system."""
    light = shown(browser, address, page, "light", None)
    dark = shown(browser, address, page, *(("dark", None) if chosen == "by the system" else ("light", "navy")))
    assert light > 200 and dark < 100, (light, dark)


def shown(browser, address, page, system, theme):
    """How bright a picture is."""
    browser.prefer(system)
    browser.open(f"{address}/{page}")
    browser.run(f"localStorage.setItem('mdbook-theme', '{theme}')" if theme else "localStorage.clear()")
    browser.open(f"{address}/{page}")
    browser.run("Promise.all([...document.images].map(image => (image.loading = 'eager', image.decode())))")
    found = brightness(browser.picture(PICTURES[page]))
    browser.run("localStorage.clear()")
    return found


@pytest.mark.parametrize(("added", "said"), [
    ('<a href="nowhere.html">x</a>', "no file nowhere.html"),
    ('<a href="docs/tutorial.html#nothing">x</a>', "no anchor docs/tutorial.html#nothing"),
    ('<script src="https://example.com/x.js"></script>', "loads https://example.com/x.js"),
    ('<img src="//example.com/x.png">', "loads //example.com/x.png"),
])  # fmt: skip
def test_faults_of_links_are_noticed(tmp_path, added, said):
    copy = tmp_path / "html"
    shutil.copytree(HTML, copy, ignore=shutil.ignore_patterns("pglite"))
    assert list(links.faults(copy)) == []
    index = copy / "index.html"
    index.write_text(index.read_text().replace("</main>", f"{added}</main>"))
    assert [line.removeprefix(f"{index}: ") for line in links.faults(copy)] == [said]
