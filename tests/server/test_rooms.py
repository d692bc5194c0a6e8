"""The rooms of src/: imports go down one list, and no file imports, by way of others, itself."""

import re

from conftest import ROOT

SRC = ROOT / "src"
# A room may import those behind it.
ROOMS = ["lib", "functions", "sno", "session", "layouts", "ledger", "error", "postgres", "clock"]
# Crates of their own, which import nothing of the extension.
CRATES = {"core", "sno_simd"}


def module(path):
    parts = path.relative_to(SRC).with_suffix("").parts
    return parts[:-1] if parts[-1] == "mod" else parts


FILES = {module(path): path for path in SRC.rglob("*.rs") if path.relative_to(SRC).parts[0] not in CRATES}


def paths(tree, prefix=()):
    """The paths of a use declaration, such as a::{b, c::d}."""
    depth, start, items = 0, 0, []
    for n, char in enumerate(tree + ","):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            items.append(tree[start:n].strip())
            start = n + 1
    for item in filter(None, items):
        head, brace, rest = item.partition("{")
        here = (*prefix, *(part for part in head.split(" as ")[0].split("::") if part.strip()))
        if brace:
            yield from paths(rest.rstrip()[:-1], here)
        else:
            yield tuple(part.strip() for part in here)


def imports(name):
    """The files that a file imports from, also by the paths in its macros. A file does not import its own children's names for
    itself when it only passes them on."""
    source = re.sub(r"//.*", "", FILES[name].read_text())
    source = re.sub(r"^pub(\(crate\))? use .*?;", "", source, flags=re.M | re.S)
    found = [path for tree in re.findall(r"^\s*use ([^;]*);", source, flags=re.M) for path in paths(" ".join(tree.split()))]
    found += [("crate", *path.split("::")) for path in re.findall(r"\$crate::([\w:]+)", source)]
    for path in found:
        if path[0] == "crate":
            path = path[1:]
        elif path[0] == "super":
            path = (*name[:-1], *path[1:])
        elif path[0] == "self":
            path = (*name, *path[1:])
        else:
            continue
        while path and path not in FILES:
            path = path[:-1]
        if path and path != name:
            yield path


ARROWS = {(name, path) for name in FILES for path in imports(name)}


def test_imports_go_down_the_list():
    rooms = {(name[0], path[0]) for name, path in ARROWS if name[0] != path[0]}
    assert len(rooms) > 10, "the imports were not understood"
    assert not [arrow for arrow in sorted(rooms) if ROOMS.index(arrow[0]) > ROOMS.index(arrow[1])]


def test_no_circle():
    remaining = set(ARROWS)
    # Arrows to files that import nothing any more belong to no circle.
    while ends := {arrow for arrow in remaining if arrow[1] not in {name for name, _ in remaining}}:
        remaining -= ends
    assert not remaining
