#!/usr/bin/env python3
"""Finds habits that make a sentence hard to read, in pages and comments; tests/prose.toml has them, and the exceptions."""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Where comments are read; pages are read everywhere.
COMMENTS = ["scripts", "sql", "bench", "site", "src", "tests"]
MARKS = {".md": "", ".rs": "//[/!]?", ".sql": "--", ".py": "#", ".sh": "#", ".js": "//", ".mjs": "//", "": "#"}
BEGINS = re.compile(r"\s*(?:\||#|\d+\. |[*-] )")


def files():
    """The pages and the sources, without what is built."""
    below = (path for top in ["docs", "skills", "contributing", *COMMENTS] for path in (ROOT / top).rglob("*"))
    found = [*ROOT.glob("*.md"), *(path for path in below if path.is_file())]
    for path in sorted(found):
        is_text = path.suffix in MARKS and (path.suffix or path.read_bytes().startswith(b"#!"))
        if is_text and not {"target", "node_modules"} & set(path.relative_to(ROOT).parts):
            yield path


def prose(path):
    """Of each line the part that is prose: outside of code on pages, in comments and docstrings elsewhere."""
    is_page, is_inside = path.suffix == ".md", path.suffix == ".md"
    for line in path.read_text().splitlines():
        quotes = line.startswith("```") if is_page else path.suffix == ".py" and line.count('"""')
        comment = re.match(rf"\s*{MARKS[path.suffix]}(?!!)(.*)", line)
        if is_page:
            yield line if is_inside and not quotes else ""
        else:
            yield line.replace('"""', "") if is_inside or quotes else comment[1] if comment else ""
        if quotes == 1:
            is_inside = not is_inside


def paragraphs(path):
    """Sentences continue from line to line; each paragraph with the number of its first line."""
    begin, text = 0, ""
    for number, line in enumerate([*prose(path), ""], 1):
        if not line.strip() or BEGINS.match(line):
            yield begin, text
            begin, text = number, line.strip()
        else:
            begin, text = (begin, f"{text} {line.strip()}") if text else (number, line.strip())


def places(habits, path, text):
    """Where a paragraph has which habit."""
    for habit in habits:
        for found in re.finditer(habit["pattern"], text):
            yield f"{path}: …{text[max(found.start() - 40, 0) : found.end() + 40]}…\n    {habit['instead']}"


def main():
    """Prints each place, and what to write instead."""
    rules = tomllib.loads((ROOT / "tests/prose.toml").read_text())
    found, unused = [], {right["text"] for right in rules.get("right", [])}
    for path in files():
        for number, text in paragraphs(path):
            right = {quoted for quoted in (right["text"] for right in rules.get("right", [])) if quoted in text}
            unused -= right
            for quoted in right:
                text = text.replace(quoted, "")
            found += places(rules["habit"], f"{path.relative_to(ROOT)}:{number}", text)
    found += [f"tests/prose.toml: not found any more: {text}" for text in sorted(unused)]
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
