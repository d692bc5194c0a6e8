"""The library's parts: `sbom.py bom MAJOR` prints its crates as CycloneDX, `sbom.py copyright MAJOR` their licenses."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parent.parent


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


class Crates:
    def __init__(self, major, target=None):
        target = target or re.search("^host: (.*)$", subprocess.check_output(["rustc", "-vV"], cwd=ROOT, text=True), re.M)[1]
        features = ["--no-default-features", "--features", f"pg{major}", "--filter-platform", target]
        metadata = json.loads(cargo("metadata", "--locked", "--format-version=1", *features))
        self.packages = {package["id"]: package for package in metadata["packages"]}
        self.nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
        self.root = metadata["resolve"]["root"]
        self.linked = self.reached(lambda package: all("proc-macro" not in made["kind"] for made in package["targets"]), {None})
        self.used = self.reached(lambda _: True, {None, "build"})

    def uses(self, crate, kinds):
        dependencies = self.nodes[crate]["deps"]
        return sorted(used["pkg"] for used in dependencies if any(kind["kind"] in kinds for kind in used["dep_kinds"]))

    def reached(self, counts, kinds):
        found, new = set(), [self.root]
        while new:
            crate = new.pop()
            if crate not in found and counts(self.packages[crate]):
                found.add(crate)
                new += self.uses(crate, kinds)
        return found


def component(package, scope, checksums):
    name, version = package["name"], package["version"]
    made = {
        "type": "library",
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "name": name,
        "version": version,
        "scope": scope,
        "purl": f"pkg:cargo/{name}@{version}",
    }
    if package["license"]:
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums.get((name, version)):
        made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return made


def bom(crates):
    """Crates that are not linked, but run when it is built, have the scope "excluded"."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    toolchain = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    made = {
        crate: component(crates.packages[crate], "required" if crate in crates.linked else "excluded", checksums)
        for crate in crates.used
    }
    root = made[crates.root]
    del root["scope"]
    std = {
        "type": "library",
        "bom-ref": f"pkg:generic/rust@{toolchain}",
        "name": "rust",
        "description": "Rust's standard library",
        "version": toolchain,
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
        "purl": f"pkg:generic/rust@{toolchain}",
    }
    uses = [
        {"ref": made[crate]["bom-ref"], "dependsOn": [made[used]["bom-ref"] for used in crates.uses(crate, {None, "build"})]}
        for crate in crates.used
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root},
        "components": sorted([std, *(part for part in made.values() if part is not root)], key=lambda part: part["bom-ref"]),
        "dependencies": sorted(uses, key=lambda use: use["ref"]),
    }


def chosen(expression):
    """Of each part of a license's expression the license that is made use of: MIT's, where there is a choice."""
    parts = [part.strip(" ()").split(" OR ") for part in expression.replace("/", " OR ").split(" AND ")]
    return ["MIT" if "MIT" in part else part[0] for part in parts]


def text_of(package, name):
    """The text of one of the crate's licenses; none if it comes without."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [file for glob in ("LICEN[CS]E*", "LICENSES/*") for file in sorted(folder.glob(glob)) if file.is_file()]
    named = [file for file in files if name.split("-")[0].upper() in file.name.upper()]
    return next((file.read_text().strip() for file in named or files[:1]), None)


COMMON = "On Debian systems, /usr/share/common-licenses/{} has its text."
HOLDER = re.compile(r"^ *copyright (?:\(c\) )?(\d{4}.*[a-z]{3}.*|the .*)$", re.I | re.M)


def holders(package, texts):
    """Who has the copyright of a crate, as its licenses say, or else its authors."""
    return HOLDER.findall("\n".join(texts)) or package["authors"] or [f"the authors of {package['name']}"]


def says_only(text, terms):
    """Whether a license has the words of these terms, after nothing but its title and the holders of the copyright."""
    start = text.find(terms.split(",")[0])
    before = [line for line in text[: max(start, 0)].splitlines() if line.strip()]
    named = all(HOLDER.match(line) or re.fullmatch(r"(The )?MIT License( \(MIT\))?", line.strip()) for line in before)
    return start >= 0 and named and text[start:].split() == terms.split()


def field(name, first, lines):
    """A field of several lines, as Debian's control files have them."""
    return "\n".join([f"{name}: {first}".rstrip(), *(f" {line.rstrip() or '.'}" for line in lines)])


def of_mit(text):
    """MIT's part of a file that has Apache's license before it."""
    start = text.find("Permission is hereby granted")
    before, apache, _ = text[: max(start, 0)].partition("Apache License")
    return f"{before.rstrip()}\n\n{text[start:]}" if apache else text


def copyright(packages, comment, common=()):
    """In Debian's machine-readable format, version 1.0. Each text is there once, with the crates that it is for. Debian has the
    texts of common licenses."""
    groups, known = {}, {}
    for package in packages:
        if package["source"]:
            names = chosen(package["license"])
            texts = [COMMON.format(name) if name in common else text_of(package, name) for name in names]
            if names == ["MIT"] and texts[0]:
                texts = [of_mit(texts[0])]
            if names == ["MIT"] and texts[0] and texts[0].startswith("Permission"):
                known["MIT"] = texts[0]
            groups.setdefault((tuple(names), tuple(texts)), []).append(package)
    _, holder, terms = (ROOT / "LICENSE").read_text().strip().split("\n\n", 2)
    holder = holder.removeprefix("Copyright (c) ")
    paragraphs = [
        field("Format", "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/", [])
        + "\nUpstream-Name: flake\n"
        + "".join(f"Source: {homepage}\n" for homepage in [os.environ.get("FLAKE_HOMEPAGE")] if homepage)
        + field("Comment", "", [comment]),
        "\n".join(["Files: *", f"Copyright: {holder}", field("License", "PostgreSQL", terms.splitlines())]),
    ]
    for (names, texts), packages in groups.items():
        files = [f"vendor/{package['name']}-{package['version']}/*" for package in packages]
        said = sorted({holder for package in packages for holder in holders(package, filter(None, texts))})
        # Another license without its text is an error here.
        text = "\n\n".join(text or known[name] for name, text in zip(names, texts, strict=True))
        # MIT's terms are at the end, for all whose license has nothing else.
        terms = [] if names == ("MIT",) and says_only(text, known["MIT"]) else text.splitlines()
        paragraphs.append("\n".join([
            field("Files", "", files), field("Copyright", "", said), field("License", " and ".join(names), terms),
        ]))  # fmt: skip
    paragraphs.append(field("License", "MIT", known["MIT"].splitlines()))
    return "\n\n".join(paragraphs) + "\n"


if __name__ == "__main__":
    what, major = sys.argv[1:]
    crates = Crates(major)
    if what == "bom":
        print(json.dumps(bom(crates), indent=1), end="")
    else:
        linked = [crates.packages[crate] for crate in sorted(crates.linked)]
        print(copyright(linked, "vendor has the crates that the library is linked with."), end="")
