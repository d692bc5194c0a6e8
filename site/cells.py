"""The tutorial as a page whose steps run in a browser, with a note where a step needs what is not there."""

import re
import tomllib

SQL = re.compile(r"^```sql\n(.*?)^```\n(```text\n.*?^```\n)?", re.M | re.S)


def printed(output):
    return f"```text\n{output.strip(chr(10))}\n```\n"


def in_browser(tutorial, folder):
    """Returns the page. It begins at the tutorial's first heading, because what is above it is about a server."""
    notes = tomllib.loads((folder / "notes.toml").read_text())["note"]
    used = set()

    def cell(block):
        step, sql, output = block[0], block[1], block[2] or ""
        found = [note for note in notes if note["step"] in sql]
        used.update(note["step"] for note in found)
        says = "".join(f"> {note['says'].strip()}\n\n" for note in found if "says" in note)
        if any(note.get("reads") for note in found):
            return f"{says}{step.replace('```sql', '```sql,reading', 1)}"
        added = ""
        for note in found:
            sql = sql.replace(note.get("without", ""), "")
            output = printed(note["prints"]) if "prints" in note else output
            if "adds" in note:
                added += f"\n```sql\n{note['adds'].strip()}\n```\n{printed(note['added_prints'])}"
        return f"{says}```sql\n{sql}```\n{output}{added}"

    text = tutorial.read_text()
    text = SQL.sub(cell, text[text.index("\n## ") + 1 : text.index("\n## Next")])
    if unused := [note["step"] for note in notes if note["step"] not in used]:
        raise SystemExit(f"site: the tutorial has no step {unused}")
    begin, end = ((folder / name).read_text() for name in ("begin.md", "end.md"))
    return begin + re.sub(r"(\]\()(?!\w+:|#)", r"\1docs/", text) + "\n" + end
