#!/usr/bin/env python3
"""Looks whether each link of the built pages leads to a file and an anchor, and whether a page loads anything from elsewhere:
`links.py DIRECTORY`."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

ELSEWHERE = re.compile(r"(?:\w+:)?//")
LOADING = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}
IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loads = {""}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif (tag, name) in LOADING:
                self.loads.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


def faults(root):
    """Yields a line for each link that leads nowhere, and each load from elsewhere."""
    pages = {path: Page(path.read_text()) for path in sorted(root.rglob("*.html"))}
    for path, page in pages.items():
        for link in page.loads + page.links:
            if ELSEWHERE.match(link):
                if link in page.loads:
                    yield f"{path}: loads {link}"
                continue
            if re.match(r"\w+:", link):
                continue
            target, anchor = urldefrag(link)
            file = (path.parent / unquote(target)).resolve() if target else path
            if not file.is_relative_to(root) or not file.exists():
                yield f"{path}: no file {link}"
            elif file in pages and unquote(anchor) not in pages[file].anchors:
                yield f"{path}: no anchor {link}"
    for path in sorted(root.rglob("*.css")):
        for found in IN_CSS.findall(path.read_text()):
            if ELSEWHERE.match("".join(found)):
                yield f"{path}: loads {''.join(found)}"
    if len(pages) < 40:
        yield f"{root}: only {len(pages)} pages"


if __name__ == "__main__":
    lines = list(faults(Path(sys.argv[1]).resolve()))
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(bool(lines))
