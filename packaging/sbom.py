"""What the library is made of: `sbom.py bom MAJOR` prints its crates as CycloneDX, `sbom.py licenses MAJOR` their licenses."""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parent.parent


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


class Crates:
    def __init__(self, major):
        target = re.search("^host: (.*)$", subprocess.check_output(["rustc", "-vV"], cwd=ROOT, text=True), re.M)[1]
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


def license_file(package):
    """The text of the crate's license; MIT's, where it is one of several."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [file for glob in ("LICEN[CS]E*", "LICENSES/*") for file in sorted(folder.glob(glob)) if file.is_file()]
    return next((file for file in files if "MIT" in file.name), files[0] if files else None)


def licenses(crates):
    """Each text once, with the crates that it is for."""
    texts = {}
    for crate in crates.linked:
        package = crates.packages[crate]
        if package["source"]:
            file = license_file(package)
            text = file.read_text().strip() if file else f"{package['license']}, by {', '.join(package['authors'])}"
            texts.setdefault(text, []).append(f"{package['name']} {package['version']} ({package['license']})")
    parts = sorted((sorted(names), text) for text, names in texts.items())
    return "".join(f"{chr(10).join(names)}\n\n{text}\n\n{'-' * 79}\n\n" for names, text in parts)


if __name__ == "__main__":
    what, major = sys.argv[1:]
    crates = Crates(major)
    print(json.dumps(bom(crates), indent=1) if what == "bom" else licenses(crates))
