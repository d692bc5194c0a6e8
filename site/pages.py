#!/usr/bin/env python3
"""Lays out the pages for mdBook: `pages.py REPOSITORY PGLITE WASM BOOK`.

The pages lie as they do in the repository, so links between them, and to examples, lead there.
"""

import base64
import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import server
from cells import in_browser

SITE = Path(__file__).parent
SECTION = re.compile(r"^## (.*)\n\n((?:- .*\n?)+)", re.M)
ITEM = re.compile(r"^- \[([^]]+)\]\(([^)]+)\)", re.M)
ALONE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Read an ID</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 900px; margin: 1em auto; padding: 0 1em; font: 16px/1.5 system-ui, sans-serif; }}
{css}</style>
</head>
<body>
<h1>Read an ID</h1>
{page}
<script>{core}</script>
<script>{js}</script>
</body>
</html>
"""


def title(page):
    return re.search(r"^# (.*)$", page.read_text(), re.M)[1]


def summary(source):
    """The chapters: the index of docs/ in its order, what this site adds, and the pages of the project."""
    index = (source / "docs/index.md").read_text()
    lines, listed = ["# Summary", "", "[flake](index.md)", ""], {source / "index.md"}

    def chapter(name, path, indent=""):
        lines.append(f"{indent}- [{name}]({path})")
        listed.add(source / path)

    for heading, items in SECTION.findall(index):
        lines += [f"# {heading}", ""]
        if heading == "Start":
            chapter("All pages", "docs/index.md")
        for name, path in ITEM.findall(items):
            chapter(name, os.path.normpath(f"docs/{path}"))
        lines.append("")
    lines += ["# Project", ""]
    left = [page.relative_to(source) for page in set(source.rglob("*.md")) - listed]
    for path in sorted(left, key=lambda path: str(path).upper()):
        # These lie below the page before them, which the menu can fold.
        lies_below = path.match("clients/*/*") or path.match("contributing/*")
        name = f"{title(source / path)} ({path.parts[1]})" if path.match("clients/*/*") else title(source / path)
        chapter(name, path, "    " * lies_below)
    return "\n".join(lines) + "\n"


def without_front_matter(source):
    """mdBook would show it as a heading."""
    for page in (source / "skills").rglob("*.md"):
        page.write_text(re.sub(r"\A---\n.*?\n---\n+", "", page.read_text(), flags=re.S))


def link_own_pages(index):
    """The README names pages that only this site has."""
    index.write_text(re.sub(r"`(playground|read-an-id)\.html`", r"[\g<0>](\1.md)", index.read_text()))


def rename_readmes(source):
    """A web server shows index.html for a directory."""
    for page in source.rglob("*.md"):
        page.write_text(re.sub(r"(\]\([^)\s]*)\bREADME\.md", r"\1index.md", page.read_text()))
    for page in source.rglob("README.md"):
        page.rename(page.with_name("index.md"))


def add_below(page, place, text):
    """Adds what only the site has, below the first such place of a page."""
    if place not in page.read_text():
        raise SystemExit(f"site: {page} has no {place!r}")
    page.write_text(page.read_text().replace(place, place + text, 1))


def add_links(source):
    """Links to the pages that only the site has."""
    index = source / "docs/index.md"
    tutorial = re.search(r"^- \[[^]]+\]\(tutorial\.md\).*\n", index.read_text(), re.M)[0]
    pages = (("playground", "PostgreSQL in the page"), ("read-an-id", "what an ID contains, of any platform"))
    add_below(index, tutorial, "".join(f"- [{title(source / f'{name}.md')}](../{name}.md): {what}\n" for name, what in pages))
    add_below(source / "docs/reference/layouts.md", "\n\n", "[Read an ID](../../read-an-id.md) shows an ID in all of them.\n\n")


def add_playground(source, root, pglite):
    """The tutorial, whose steps run in the page."""
    ignored = shutil.ignore_patterns("*.md", "*.toml", "*.mjs")
    shutil.copytree(SITE / "playground", source / "playground", ignore=ignored)
    server.copy(pglite, root / "managed/flake.sql", source / "playground/pglite")
    (source / "playground.md").write_text(in_browser(root / "docs/tutorial.md", SITE / "playground"))
    add_below(source / "docs/tutorial.md", "\n\n", "[It also runs in the browser](../playground.md).\n\n")


def add_reader(source, wasm):
    """The reader is a page of the book, and one file that needs no other."""
    css, page, js = ((SITE / "reader" / name).read_text() for name in ("page.css", "page.html", "page.js"))
    core = f'globalThis.flakeCore = "{base64.b64encode(gzip.compress(wasm.read_bytes(), mtime=0)).decode()}"'
    folder = source / "reader"
    folder.mkdir()
    for name, text in ("page.css", css), ("page.js", js), ("core.js", core):
        (folder / name).write_text(text)
    (source / "flake-reader.html").write_text(ALONE.format(css=css, page=page, core=core, js=js))
    text = (SITE / "reader/page.md").read_text()
    (source / "read-an-id.md").write_text(text.replace("<!-- the page -->\n", page))


def main(root, pglite, wasm, book):
    source = book / "source"
    shutil.rmtree(book, ignore_errors=True)
    subprocess.run([root / "scripts/documentation", source], check=True)
    without_front_matter(source)
    rename_readmes(source)
    link_own_pages(source / "index.md")
    add_playground(source, root, pglite)
    add_reader(source, wasm)
    add_links(source)
    (source / "SUMMARY.md").write_text(summary(source))
    for name in ("book.toml", "book.css"):
        shutil.copy(SITE / name, book)
    # The visitor's own fonts: mdBook's are half of what a first page loads.
    (book / "theme/fonts").mkdir(parents=True)
    (book / "theme/fonts/fonts.css").touch()


if __name__ == "__main__":
    main(*(Path(os.path.abspath(argument)) for argument in sys.argv[1:]))
