"""The modules of src/ and of the core: imports go down one list, and no file imports itself through others."""

import re

import pytest

from conftest import ROOT

SRC = ROOT / "src"
# A module may import the modules after it.
MODULES = {
    SRC: [
        "lib", "sequences", "functions", "sno", "seal", "session", "layouts", "ledger", "settings", "error", "postgres",
        "clock",
    ],
    SRC / "core": [
        "lib", "seal", "sno", "generator", "watermark", "ledger", "id", "cursors", "lane", "part", "turn", "node", "layout",
        "error", "code", "key", "sync", "instant",
    ],
}
# A separate crate, and programs of a crate.
OTHERS = {SRC: {"core"}, SRC / "core": {"tests", "fuzz", "benches"}}


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


class Crate:
    """The files of a crate by module, and the files that each imports from."""

    def __init__(self, root):
        self.root = root
        sources = {path.relative_to(root): path.read_text() for path in root.rglob("*.rs")}
        inside = {path: text for path, text in sources.items() if path.parts[0] not in OTHERS[root]}
        self.files = {module(path): re.sub(r"//.*", "", text) for path, text in inside.items()}
        # The names that lib.rs re-exports, by the file that they come from.
        passed = re.findall(r"^pub use ([^;]*);", self.files["lib",], flags=re.M)
        self.names = {path[-1]: path[:-1] for tree in passed for path in paths(" ".join(tree.split()))}
        self.arrows = {(name, path) for name in self.files for path in self.imports(name)}

    def imports(self, name):
        """Returns the files that a file imports from, also by paths in its expressions and macros. Names of its own children
        that it only re-exports do not count."""
        source = re.sub(r"^pub(\(crate\))? use .*?;", "", self.files[name], flags=re.M | re.S)
        found = [path for tree in re.findall(r"^\s*use ([^;]*);", source, flags=re.M) for path in paths(" ".join(tree.split()))]
        found += [tuple(path.split("::")) for path in re.findall(r"\b((?:crate|super|self)(?:::\w+)+)", source)]
        for path in found:
            if path[0] == "crate":
                path = (*self.names.get(path[1], ()), *path[1:])
            elif path[0] in ("self", "super"):
                up = path.count("super")
                path = (*name[: len(name) - up], *(part for part in path if part not in ("self", "super")))
            else:
                continue
            while path and path not in self.files:
                path = path[:-1]
            if path and path != name:
                yield path


def module(path):
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "mod" else parts


@pytest.fixture(scope="module", params=MODULES, ids=lambda root: root.name)
def crate(request):
    return Crate(request.param)


def test_imports_go_down_the_list(crate):
    modules = {(name[0], path[0]) for name, path in crate.arrows if name[0] != path[0]}
    assert len(modules) > 10, "the imports were not understood"
    order = MODULES[crate.root]
    assert not [arrow for arrow in sorted(modules) if order.index(arrow[0]) > order.index(arrow[1])]


def test_no_files_import_each_other_in_a_circle(crate):
    remaining = set(crate.arrows)
    # An import of a file that imports nothing, or by a file that nothing imports, is not part of a circle.
    while kept := {a for a in remaining if a[1] in {name for name, _ in remaining} and a[0] in {name for _, name in remaining}}:
        if kept == remaining:
            break
        remaining = kept
    assert not kept
