#!/usr/bin/env python3
"""Adds to mdBook's pages what its templates lack, and takes out what no page needs: `finish.py HTML`."""

import re
import sys
from pathlib import Path

# mdBook copies no font where the list of them is empty, and links to it.
FONTS = re.compile(r'\s*<link rel="stylesheet" href="[^"]*fonts/fonts\.css">')
SKIP = '<a class="skip" href="#mdbook-content">Skip to the text</a>'
TOOLS = '<a href="{root}playground.html">Try it</a><a href="{root}read-an-id.html">Read an ID</a>'
MENU = f'<nav class="tools" aria-label="Tools">{TOOLS}</nav>'
CODE = re.compile(r'class="language-(\w+)')
LANGUAGE = re.compile(r'hljs\.registerLanguage\("([\w-]+)"')
# Other names of languages, and the languages that are kept in any case.
ALIASES = {"sh": "bash", "js": "javascript", "toml": "ini", "conf": "ini"}
ALWAYS = {"plaintext", "json", "xml"}


def replaced(page, text, old, new):
    if text.count(old) != 1:
        raise SystemExit(f"site: {page} has {text.count(old)} of {old}")
    return text.replace(old, new)


def finish(html):
    used = set(ALWAYS)
    for page in sorted(html.rglob("*.html")):
        text = page.read_text()
        used.update(ALIASES.get(name, name) for name in CODE.findall(text))
        text = FONTS.sub("", text)
        if 'id="mdbook-content"' in text:
            text = with_links(page, text, html)
        page.write_text(text)
    slim(html, used)


def with_links(page, text, html):
    """A page of the book, with a link past the contents, and links to the tools."""
    root = "../" * len(page.relative_to(html).parent.parts)
    text = replaced(page, text, "<body>", f"<body>\n{SKIP}")
    text = replaced(page, text, 'id="mdbook-content"', 'id="mdbook-content" tabindex="-1"')
    return replaced(page, text, '<div class="right-buttons">', f'<div class="right-buttons">{MENU.format(root=root)}')


def slim(html, used):
    """Takes out the languages that no page has: two thirds of the script that colors code."""
    for script in html.glob("highlight-*.js"):
        lines = script.read_text().splitlines(keepends=True)
        kept = [line for line in lines if not (found := LANGUAGE.match(line)) or found[1] in used]
        if len(kept) == len(lines):
            raise SystemExit(f"site: {script} has no language of its own on a line")
        script.write_text("".join(kept))


if __name__ == "__main__":
    finish(Path(sys.argv[1]))
