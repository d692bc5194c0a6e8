"""The tutorial as a page whose steps run in a browser, with a note where a step needs what is not there."""

import re
import tomllib

SQL = re.compile(r"^```sql\n(.*?)^```\n(?:```text\n.*?^```\n)?", re.M | re.S)


def in_browser(tutorial, folder):
    """Returns the page. It begins at the tutorial's first heading, because what is above it is about a server."""
    notes = tomllib.loads((folder / "notes.toml").read_text())["note"]
    used = set()

    def cell(block):
        step, without_output = block[0], block[1]
        found = [note for note in notes if note["step"] in without_output]
        used.update(note["step"] for note in found)
        says = "".join(f"\n\n> {note['says'].strip()}\n" for note in found if "says" in note)
        if any(note.get("reads") for note in found):
            return f"{says.strip()}\n\n{step.replace('```sql', '```sql,reading', 1)}"
        for note in found:
            without_output = without_output.replace(note.get("without", ""), "")
        added = "".join(f"\n```sql\n{note['adds'].strip()}\n```\n" for note in found if "adds" in note)
        return f"```sql\n{without_output}```\n{says}{added}"

    text = tutorial.read_text()
    text = SQL.sub(cell, text[text.index("\n## ") + 1 : text.index("\n## Next")])
    if unused := [note["step"] for note in notes if note["step"] not in used]:
        raise SystemExit(f"site: the tutorial has no step {unused}")
    begin, end = ((folder / name).read_text() for name in ("begin.md", "end.md"))
    return begin + re.sub(r"(\]\()(?!\w+:|#)", r"\1docs/", text) + "\n" + end
