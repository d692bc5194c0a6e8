"""Links of the pages lead somewhere: in the repository, on a web page, and in packages."""

import os
import re
import subprocess
from urllib.parse import urldefrag, urljoin

import pytest

from conftest import ROOT
from pages import PAGES, named

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)
INDEX = ROOT / "docs/index.md"


def links(page):
    """Returns the relative links that are not in code."""
    return [target for target in LINK.findall(FENCED.sub("", page.read_text())) if not re.match(r"\w+:", target)]


def headings(page):
    return re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.M)


def anchor(heading):
    """Returns the anchor that GitHub makes."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def broken(page, root):
    """Returns the links of a page that lead nowhere below a directory."""
    for target in links(page):
        path, fragment = urldefrag(target)
        file = (page.parent / path).resolve() if path else page
        is_there = file.exists() and file.is_relative_to(root)
        if not is_there or (fragment and fragment not in map(anchor, headings(file))):
            yield target


@pytest.mark.parametrize("page", sorted({*PAGES, *ROOT.glob("*.md"), *ROOT.glob("contributing/*.md")}), ids=named)
def test_links_lead_somewhere_in_the_repository(page):
    assert list(broken(page, ROOT)) == []


def test_links_lead_somewhere_on_a_web_page():
    """Each page becomes an HTML document beside the other files. Links are relative to its address."""
    pages = [page for page in PAGES if page.parent != ROOT]
    tops = [ROOT / top for top in ("docs", "skills", "examples", "clients")]
    files = {f"/{named(file)}" for top in tops for file in top.rglob("*") if file.is_file()}
    site = {re.sub(r"\.md$", ".html", file) for file in files}
    lost = [
        (named(page), target) for page in pages for target in links(page)
        if re.sub(r"\.md$", ".html", urljoin(f"/{named(page)}", urldefrag(target)[0])) not in site
    ]  # fmt: skip
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_anchors_are_the_same_everywhere(page):
    """Other makers of HTML merge several hyphens, and number repeated anchors in their own ways."""
    anchors = [anchor(heading) for heading in headings(page)]
    assert len(set(anchors)) == len(anchors)
    assert [name for name in anchors if "--" in name] == []


def test_links_lead_somewhere_in_packages(tmp_path):
    subprocess.run(["scripts/documentation", tmp_path], cwd=ROOT, check=True)
    pages = [page for glob in ("*.md", "contributing/*.md", "docs/**/*.md", "skills/**/*.md") for page in tmp_path.glob(glob)]
    assert {str(page.relative_to(tmp_path)) for page in pages} >= {named(page) for page in PAGES}
    assert {str(page.relative_to(tmp_path)): found for page in pages if (found := list(broken(page, tmp_path)))} == {}


def test_the_index_leads_to_every_page():
    listed = {(INDEX.parent / urldefrag(target)[0]).resolve() for target in links(INDEX)}
    pages = {page for page in PAGES if page.parent != ROOT}
    assert sorted(map(named, pages - listed)) == [named(INDEX)]


def test_llms_txt_lists_every_page():
    """The index follows llmstxt.org: a title, a quotation, and sections of links with notes. FLAKE_ACCEPT writes it."""
    index, file = INDEX.read_text(), ROOT / "llms.txt"
    title, quotation, *sections = re.split(r"\n\n(?=> |## )", index.strip())
    assert title.startswith("# ") and quotation.startswith("> ")
    for section in sections:
        heading, items = section.split("\n\n")
        assert re.fullmatch(r"## .+", heading)
        assert all(re.fullmatch(r"- \[[^]]+\]\([^)]+\.md\): .+", item) for item in items.split("\n"))
    wanted = index.replace("](", "](docs/").replace("](docs/../", "](")
    if os.environ.get("FLAKE_ACCEPT"):
        file.write_text(wanted)
    assert file.read_text() == wanted
