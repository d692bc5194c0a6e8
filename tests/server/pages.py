"""The blocks of code on a page of the documentation."""

import re

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(page):
    """All of them, each with its language."""
    return BLOCK.findall(page.read_text())


def recipe(page, heading, language="sql"):
    """The blocks of a language below a heading."""
    below, = (text for text in re.split(r"^#+ ", page.read_text(), flags=re.M) if text.startswith(f"{heading}\n"))
    return [code for found, code in BLOCK.findall(below) if found == language]
