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

from cells import in_browser

SITE = Path(__file__).parent
SECTION = re.compile(r"^## (.*)\n\n((?:- .*\n?)+)", re.M)
ITEM = re.compile(r"^- \[([^]]+)\]\(([^)]+)\)", re.M)
IMPORT = re.compile(r"""(?:from|import)\s*\(?["'](\./[\w.-]+\.js)["']""")
ALONE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Read an ID</title>
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

    def chapter(name, path):
        lines.append(f"- [{name}]({path})")
        listed.add(source / path)

    for heading, items in SECTION.findall(index):
        lines += [f"# {heading}", ""]
        if heading == "Start":
            chapter("All pages", "docs/index.md")
        for name, path in ITEM.findall(items):
            chapter(name, f"docs/{path}")
            if path == "tutorial.md":
                chapter(title(source / "playground.md"), "playground.md")
                chapter(title(source / "read-an-id.md"), "read-an-id.md")
        lines.append("")
    lines += ["# Project", ""]
    for page in sorted(set(source.rglob("*.md")) - listed):
        path = page.relative_to(source)
        chapter(f"{title(page)} ({path.parts[1]})" if path.match("clients/*/*") else title(page), path)
    return "\n".join(lines) + "\n"


def rename_readmes(source):
    """A web server shows index.html for a directory."""
    for page in source.rglob("*.md"):
        page.write_text(re.sub(r"(\]\([^)\s]*)\bREADME\.md", r"\1index.md", page.read_text()))
    for page in source.rglob("README.md"):
        page.rename(page.with_name("index.md"))


def add_playground(source, root, pglite):
    """PGlite is modules that import each other, and the files that they load."""
    shutil.copytree(SITE / "playground", source / "playground", ignore=shutil.ignore_patterns("*.md", "*.toml"))
    target = source / "playground/pglite"
    target.mkdir()
    wanted = ["./index.js"]
    for name in wanted:
        text = (pglite / "dist" / name).read_text()
        wanted += [found for found in IMPORT.findall(text) if found not in wanted]
        (target / name).write_text(re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.M))
    for name in ("dist/pglite.wasm", "dist/pglite.data", "dist/initdb.wasm", "LICENSE"):
        shutil.copy(pglite / name, target)
    shutil.copy(root / "managed/flake.sql", source / "playground")
    (source / "playground.md").write_text(in_browser(root / "docs/tutorial.md", SITE / "playground"))
    tutorial = source / "docs/tutorial.md"
    tutorial.write_text(tutorial.read_text().replace("\n\n", "\n\n[It also runs in the browser](../playground.md).\n\n", 1))


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
    rename_readmes(source)
    add_playground(source, root, pglite)
    add_reader(source, wasm)
    (source / "SUMMARY.md").write_text(summary(source))
    for name in ("book.toml", "book.css"):
        shutil.copy(SITE / name, book)


if __name__ == "__main__":
    main(*(Path(os.path.abspath(argument)) for argument in sys.argv[1:]))
