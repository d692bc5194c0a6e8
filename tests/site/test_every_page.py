"""Every page has links to the tools and past the contents, contrast, and drawings and tables that a phone shows."""

import re

import pytest

from conftest import HTML

PAGES = ["index.html", "docs/index.html", "docs/how-to/convert.html", "read-an-id.html"]
DRAWN = ["docs/explanation/benchmarks.html", "docs/explanation/how-it-works.html"]
LUMINANCE = """(color => {
    const [red, green, blue] = color.match(/[\\d.]+/g).map(Number)
        .map(value => value / 255).map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
})"""


def of_the_book():
    return [page for page in HTML.rglob("*.html") if 'id="mdbook-content"' in page.read_text()]


def test_every_page_leads_to_the_tools():
    assert len(of_the_book()) > 50
    for page in of_the_book():
        menu = re.search(r'<nav class="tools".*?</nav>', page.read_text())[0]
        targets = [(page.parent / link).resolve() for link in re.findall(r'href="([^"]+)"', menu)]
        assert targets == [HTML / "playground.html", HTML / "read-an-id.html"], page


@pytest.mark.parametrize(("page", "links"), [
    ("docs/index.html", {"../playground.html", "../read-an-id.html"}),
    ("docs/reference/layouts.html", {"../../read-an-id.html"}),
    ("docs/tutorial.html", {"../playground.html"}),
])  # fmt: skip
def test_pages_on_the_way_lead_there(page, links):
    main = re.search(r"<main>.*</main>", (HTML / page).read_text(), re.S)[0]
    assert links <= set(re.findall(r'href="([^"]+)"', main))


@pytest.mark.parametrize("page", PAGES)
def test_the_first_tab_skips_the_contents(browser, address, page):
    browser.open(f"{address}/{page}")
    browser.run("document.body.focus()")
    for kind in "keyDown", "keyUp":
        browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.run("document.activeElement.className") == "skip"
    assert browser.run("document.activeElement.getBoundingClientRect().left") >= 0
    browser.run("document.activeElement.click()")
    browser.until("document.activeElement.id === 'mdbook-content'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_menu_has_contrast(browser, address, scheme):
    browser.prefer(scheme)
    browser.open(f"{address}/index.html")
    for selector in ".menu-title", ".tools a":
        light = [browser.run(f"{LUMINANCE}(getComputedStyle(document.querySelector('{of}')).{what})")
                 for of, what in ((selector, "color"), ("html", "backgroundColor"))]  # fmt: skip
        assert (max(light) + 0.05) / (min(light) + 0.05) >= 4.5, (selector, light)


@pytest.fixture
def phone(browser):
    browser.size(390, 844)
    yield browser
    browser.size(1200, 900)


@pytest.mark.parametrize("page", [*PAGES, "playground.html", *DRAWN])
def test_no_page_is_wider_than_a_phone(phone, address, page):
    phone.open(f"{address}/{page}")
    assert phone.run("document.documentElement.scrollWidth") <= 390


def test_drawings_can_be_read_on_a_phone(phone, address):
    """A drawing is as wide as it was made, and scrolls; one is made for phones."""
    drawings = "[...document.querySelectorAll('main .checkbox-label > img:not([src$=\"timed.svg\"])')]"
    for page in *DRAWN, "index.html":
        phone.open(f"{address}/{page}")
        widths = phone.run(f"{drawings}.map(image => image.getBoundingClientRect().width)")
        assert widths and min(widths) >= 760
        assert phone.run(f"{drawings}.every(({{ parentNode: {{ scrollWidth, clientWidth }} }}) => scrollWidth > clientWidth)")


def test_tables_scroll_with_their_first_column(phone, address):
    phone.open(f"{address}/docs/explanation/benchmarks.html")
    wide = "[...document.querySelectorAll('.table-wrapper')].find(table => table.scrollWidth > table.clientWidth + 50)"
    assert phone.run(f"{wide} !== undefined")
    left = f"{wide}.querySelector('tbody td').getBoundingClientRect().left"
    before = phone.run(left)
    assert abs(phone.run(f"(({wide}).scrollLeft = 50, {left})") - before) < 1
    other = f"{wide}.querySelector('tbody td + td').getBoundingClientRect().left"
    assert abs(phone.run(f"({other})") - phone.run(f"(({wide}).scrollLeft = 0, {other})")) > 49
