"""The crates that a build without a network needs: `vendor.py crates DIRECTORY` puts their sources there, `vendor.py copyright`
prints debian/copyright.

Cargo.lock also names crates that are for tests or for other systems. cargo wants only a manifest of these, which is generated
here."""

import json
import pathlib
import shutil
import sys
import tomllib

from sbom import ROOT, Crates, cargo, copyright

# Compiled files, which some crates have for their tests, and manifests as their authors wrote them, which dh_clean would delete.
LEFT_OUT = {".a", ".dll", ".exe", ".lib", ".orig", ".so", ".wasm"}
COMMENT = "vendor has the crates that the library is built of. Some directories have only a manifest, which flake has generated."


def used():
    """The crates that a build compiles, for any PostgreSQL and processor."""
    majors = [name[2:] for name in tomllib.loads((ROOT / "Cargo.toml").read_text())["features"] if name.startswith("pg")]
    targets = tomllib.loads((ROOT / "deny.toml").read_text())["graph"]["targets"]
    builds = [Crates(major, target) for major in majors for target in targets]
    return {crate: crates.packages[crate] for crates in builds for crate in crates.used}


def write_checksums(folder, checksums):
    (folder / ".cargo-checksum.json").write_text(json.dumps(checksums, sort_keys=True) + "\n")


def leave_out(folder):
    checksums = json.loads((folder / ".cargo-checksum.json").read_text())
    for name in [name for name in checksums["files"] if pathlib.Path(name).suffix in LEFT_OUT]:
        (folder / name).unlink()
        del checksums["files"][name]
    write_checksums(folder, checksums)


def dependency(used):
    """A dependency in a manifest. JSON's texts, lists of texts and truth values are TOML, too."""
    target = f"target.{json.dumps(used['target'])}." if used["target"] else ""
    kind = f"{used['kind']}-dependencies" if used["kind"] else "dependencies"
    values = {
        "package": used["name"],
        "version": used["req"],
        "default-features": used["uses_default_features"],
        "features": used["features"],
    }
    # No dependency of tests may be optional.
    if used["optional"]:
        values["optional"] = True
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join([f"[{target}{kind}.{json.dumps(used['rename'] or used['name'])}]", *lines])


def manifest(package):
    features = [f"{json.dumps(name)} = {json.dumps(uses)}" for name, uses in sorted(package["features"].items())]
    parts = [
        f'[package]\nname = "{package["name"]}"\nversion = "{package["version"]}"\nedition = "2021"',
        "\n".join(["[features]", *features]),
        *(dependency(each) for each in package["dependencies"]),
    ]
    return "\n\n".join(parts) + "\n"


def replace_by_manifest(folder, package):
    checksum = json.loads((folder / ".cargo-checksum.json").read_text())["package"]
    shutil.rmtree(folder)
    (folder / "src").mkdir(parents=True)
    (folder / "src/lib.rs").touch()
    (folder / "Cargo.toml").write_text(manifest(package))
    write_checksums(folder, {"files": {}, "package": checksum})


def vendor(directory):
    cargo("vendor", "--locked", "--versioned-dirs", str(directory))
    compiled = used()
    for package in json.loads(cargo("metadata", "--locked", "--format-version=1", "--all-features"))["packages"]:
        folder = directory / f"{package['name']}-{package['version']}"
        if package["source"] and package["id"] in compiled:
            leave_out(folder)
        elif package["source"]:
            replace_by_manifest(folder, package)


if __name__ == "__main__":
    if sys.argv[1] == "crates":
        vendor(pathlib.Path(sys.argv[2]).resolve())
    else:
        print(copyright([package for _, package in sorted(used().items())], COMMENT, {"Apache-2.0"}), end="")
