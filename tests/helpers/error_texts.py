"""The extension's error messages from its sources, with … for the parts that vary, and their entries in docs/faq.md, with words
in capitals for these parts."""

import re

from conftest import ROOT

FAQ = ROOT / "docs" / "faq.md"
# The enumerations of the core whose texts are primary messages; src/error/core.rs has the rest of them.
ENUMERATIONS = {"src/core/error.rs": "Error", "src/core/watermark/host.rs": "Refusal", "src/core/ledger/host.rs": "Fault"}
LITERAL = r'"((?:[^"\\]|\\.)*)"'
# Where PostgreSQL's interfaces raise one by themselves.
RAISED = re.compile(rf"\bereport!\(ERROR, [\w:]+, {LITERAL}")
# Where an error is made: its message is a text in the same call, or in the variable that the call names.
MADE = re.compile(r"\bError::(?:not_ready|invalid|of)\((.*?)\)\s*(?:\.detail\(|\}$)", re.S | re.M)


def made():
    """Returns the file of each error that the extension makes, and its possible messages."""
    for file in sorted((ROOT / "src").rglob("*.rs")):
        source = file.read_text()
        if file.relative_to(ROOT / "src").parts[0] != "core":
            for call in MADE.finditer(source):
                named = re.search(r"\bmessage$", call[1].strip())
                before = source[: call.start()].rpartition("let message = ")[2].partition(";")[0] if named else call[1]
                yield file, re.findall(LITERAL, before)


def messages():
    found = [text for _, texts in made() for text in texts]
    found += [text for file in (ROOT / "src/postgres").rglob("*.rs") for text in RAISED.findall(file.read_text())]
    for file, name in ENUMERATIONS.items():
        body = re.search(rf"^pub enum {name} \{{\n(.*?)^\}}$", (ROOT / file).read_text(), re.M | re.S)[1]
        found += re.findall(rf"#\[error\({LITERAL}", body)
    return sorted({re.sub(r"\{[^}]*\}", "…", text.replace('\\"', '"')) for text in found})


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
