"""debian/ says the same as Cargo.toml and the crates. scripts/package-test builds the source package.

FLAKE_ACCEPT writes debian/control and debian/copyright."""

import os
import re
import subprocess
import sys
import tomllib

from conftest import ROOT
from next_release import VERSION

DEBIAN = ROOT / "debian"
CONTROL = (DEBIAN / "control.in").read_text()
# The processors of Rust's targets, as Debian names them.
ARCHITECTURES = {"x86_64-unknown-linux-gnu": "amd64", "aarch64-unknown-linux-gnu": "arm64"}


def toml(name):
    return tomllib.loads((ROOT / name).read_text())


def assert_text(name, text):
    if os.environ.get("FLAKE_ACCEPT"):
        (DEBIAN / name).write_text(text)
    assert (DEBIAN / name).read_text() == text, f"`FLAKE_ACCEPT=yes scripts/test server {__file__}` writes debian/{name}"


def test_the_changelog_begins_with_this_version():
    assert re.match(rf"flake \({re.escape(VERSION)}-\d+\) ", (DEBIAN / "changelog").read_text())


def test_each_supported_postgresql_has_a_package():
    majors = sorted(int(name[2:]) for name in toml("Cargo.toml")["features"] if re.fullmatch(r"pg\d+", name))
    assert (DEBIAN / "pgversions").read_text() == f"{majors[0]}+\n"
    source, package = CONTROL.rstrip("\n").split("\n\n")
    packages = [package.replace("PGVERSION", str(major)) for major in majors]
    assert_text("control", "\n\n".join([source, *packages]) + "\n")


def test_the_compiler_and_the_processors_are_those_of_the_project():
    channel = toml("rust-toolchain.toml")["toolchain"]["channel"]
    assert re.findall(r"^ (cargo|rustc) \(>= (.*)\),$", CONTROL, re.M) == [(name, channel[:-2]) for name in ("cargo", "rustc")]
    targets = toml("deny.toml")["graph"]["targets"]
    assert re.search("^Architecture: (.*)$", CONTROL, re.M)[1].split() == [ARCHITECTURES[target] for target in targets]


def test_the_licenses_are_those_of_the_crates():
    environment = os.environ | {"FLAKE_HOMEPAGE": ""}
    command = [sys.executable, "-B", "packaging/vendor.py", "copyright"]
    assert_text("copyright", subprocess.check_output(command, cwd=ROOT, text=True, env=environment))
