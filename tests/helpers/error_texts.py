"""The extension's error messages from its sources, with … for the parts that vary, and their entries in docs/faq.md, with words
in capitals for these parts."""

import re

from conftest import ROOT

FAQ = ROOT / "docs" / "faq.md"
# The enumerations whose texts are primary messages: src/error/variants.rs defines them or includes them.
ENUMERATIONS = [
    ("src/error/variants.rs", None),
    ("src/error/define.rs", None),
    ("src/core/error.rs", "Error"),
    ("src/core/horizon/host.rs", "Refusal"),
    ("src/core/ledger/host.rs", "Fault"),
]


def messages():
    found = []
    for file, name in ENUMERATIONS:
        source = (ROOT / file).read_text()
        body = re.search(rf"^pub enum {name} \{{\n(.*?)^\}}$", source, re.M | re.S)[1] if name else source
        texts = re.findall(r'#\[error\("((?:[^"\\]|\\.)*)"', body)
        found += [re.sub(r"\{[^}]*\}", "…", text.replace('\\"', '"')) for text in texts]
    return sorted(set(found))


def entries():
    """Returns the heading of each text: its own one, or the heading of the entry that has it in its line "Also"."""
    found = {}
    for entry in re.split(r"^### ", FAQ.read_text(), flags=re.M)[1:]:
        heading, _, text = entry.partition("\n")
        also = "".join(re.findall(r"^Also:.*?\n\n", text, re.M | re.S))
        found |= dict.fromkeys([heading, *re.findall(r"`([^`]+)`", also)], heading)
    return found


def pattern(message, changing):
    return changing.join(map(re.escape, message.split("…")))


def entry(message):
    """Returns the heading of a message's entry, if it has one."""
    return next((heading for text, heading in entries().items() if re.fullmatch(pattern(message, "[A-Z]*"), text)), None)


def of(primary):
    """Returns the message of the sources that a session has got: the most specific one that matches."""
    fitting = [text for text in messages() if re.fullmatch(pattern(text, ".*"), primary, re.S)]
    return max(fitting, key=lambda text: len(text.replace("…", "")))


def anchor(heading):
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
