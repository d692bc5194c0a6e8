"""The metadata and licenses of packages. scripts/package-test installs packages."""

import email
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib

import pytest

from conftest import ROOT
from next_release import VERSION


def test_the_metadata_of_pgxn_is_valid():
    """The metadata has the keys that PGXN's meta spec 1.0.0 requires, and all values have the right type."""
    meta = json.loads((ROOT / "META.json").read_text())
    term = re.compile(r"[^\s/\\\x00-\x1f]{2,}")
    version = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z-]+)?")
    assert meta.keys() >= {"name", "version", "abstract", "maintainer", "license", "provides", "meta-spec"}
    assert meta.keys() <= {
        *("name", "version", "abstract", "maintainer", "license", "provides", "meta-spec", "description", "generated_by"),
        *("no_index", "prereqs", "release_status", "resources", "tags"),
    }
    assert term.fullmatch(meta["name"])
    assert version.fullmatch(meta["version"])
    assert all(isinstance(meta[key], str) and meta[key] for key in ("abstract", "description"))
    assert meta["maintainer"] and all(isinstance(name, str) and name for name in meta["maintainer"])
    assert meta["license"] == "postgresql"
    assert all(isinstance(tag, str) and 0 < len(tag) < 256 for tag in meta["tags"])
    assert meta["meta-spec"]["version"] == "1.0.0"
    for name, extension in meta["provides"].items():
        assert term.fullmatch(name)
        assert version.fullmatch(extension["version"])
        assert (ROOT / extension["file"]).is_file() and (ROOT / extension["docfile"]).is_file()
    for phase, relations in meta["prereqs"].items():
        assert phase in {"configure", "build", "test", "runtime", "develop"}
        for relation, required in relations.items():
            assert relation in {"requires", "recommends", "suggests", "conflicts"}
            assert all(version.fullmatch(least) for least in required.values())
    resources = meta.get("resources", {})
    assert resources.keys() <= {"homepage", "bugtracker", "repository"}
    assert all(isinstance(address, str if kind == "homepage" else dict) for kind, address in resources.items())
    # Cargo.toml has the address of the repository as soon as there is one.
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert resources.get("repository", {}).get("web") == cargo.get("repository")


def test_the_list_of_crates_is_complete():
    """The list is a CycloneDX 1.5 document. It has each crate with its license and the checksum of Cargo.lock."""
    bom = json.loads(subprocess.check_output([sys.executable, "packaging/sbom.py", "bom", "15"], cwd=ROOT))
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.5", 1)
    assert (bom["metadata"]["component"]["name"], bom["metadata"]["component"]["version"]) == ("flake", VERSION)
    locked = {
        f"pkg:cargo/{package['name']}@{package['version']}": package.get("checksum")
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    }
    crates = {part["bom-ref"]: part for part in bom["components"]}
    assert len(crates) == len(bom["components"])
    for name, crate in crates.items():
        assert crate["type"] == "library" and crate["purl"] == name and crate["licenses"][0]["expression"]
        if name.startswith("pkg:cargo/"):
            assert crate.get("hashes", [{"content": None}])[0]["content"] == locked[name]
    scopes = {crate["name"]: crate.get("scope") for crate in crates.values()}
    assert (scopes["pgrx"], scopes["flake-core"], scopes["bindgen"]) == ("required", "required", "excluded")
    assert "proptest" not in scopes
    named = {*crates, bom["metadata"]["component"]["bom-ref"]}
    for use in bom["dependencies"]:
        assert {use["ref"], *use["dependsOn"]} <= named


LICENSES = {"MIT", "Zlib", "Unicode-3.0"}
# Debian's own parser reads the file, with Debian's own Python.
READ_COPYRIGHT = """
import sys
from debian.copyright import Copyright
for paragraph in Copyright(sys.stdin, strict=True).all_files_paragraphs():
    print(*paragraph.files, paragraph.license.synopsis, sep="|")
"""


def copyright(**environment):
    command = [sys.executable, "packaging/sbom.py", "copyright", "15"]
    return subprocess.check_output(command, cwd=ROOT, text=True, env=os.environ | environment)


@pytest.mark.matrix
@pytest.mark.skipif(not pathlib.Path("/usr/lib/python3/dist-packages/debian/copyright.py").exists(), reason="no python3-debian")
def test_debian_reads_the_licenses():
    text = copyright(FLAKE_HOMEPAGE="https://flake.invalid")
    assert "\nSource: https://flake.invalid\n" in text and "\nSource:" not in copyright(FLAKE_HOMEPAGE="")
    read = subprocess.run(["/usr/bin/python3", "-c", READ_COPYRIGHT], input=text, check=True, capture_output=True, text=True)
    own, *crates = read.stdout.splitlines()
    assert (own, read.stderr) == ("*|PostgreSQL", "")
    assert len(crates) == text.count("\nFiles:") - 1
    assert {name for line in crates for name in line.split("|")[-1].split(" and ")} == LICENSES


@pytest.mark.matrix
def test_the_licenses_of_the_crates_are_named_and_allowed():
    """The file has Debian's format: each paragraph names crates, the holders of the copyright, and a license. Its text is there,
    or at the end if it is MIT's. deny.toml names the licenses that CNCF projects have to ask about."""
    text = copyright()
    head, own, *paragraphs, last = [email.message_from_string(part) for part in text.rstrip("\n").split("\n\n")]
    assert head["Format"] == "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    assert own["Files"] == "*" and own["License"].startswith("PostgreSQL\n")
    assert (last.keys(), last["License"].startswith("MIT\n")) == (["License"], True)
    mit = last["License"].removeprefix("MIT\n")
    named, licenses, asked = set(), set(), set()
    allowed = tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]
    for paragraph in paragraphs:
        name, _, terms = paragraph["License"].partition("\n")
        if not terms:
            assert name == "MIT"
            terms = mit
        assert sorted(paragraph.keys()) == ["Copyright", "Files", "License"] and paragraph["Copyright"].strip()
        assert re.search("(?i)permi(ssion|tted)", terms) and "None" not in terms
        licenses |= {*name.split(" and ")}
        crates = {file.removeprefix("vendor/").removesuffix("/*") for file in paragraph["Files"].split()}
        named |= crates
        asked |= {(crate.rpartition("-")[0], part) for crate in crates for part in {*name.split(" and ")} - {*allowed["allow"]}}
    bom = json.loads(subprocess.check_output([sys.executable, "packaging/sbom.py", "bom", "15"], cwd=ROOT))
    linked = [part for part in bom["components"] if part.get("scope") == "required"]
    assert {f"{part['name']}-{part['version']}" for part in linked if "hashes" in part} <= named
    assert licenses == LICENSES
    assert asked == {(row["crate"], name) for row in allowed["exceptions"] for name in row["allow"]}
    page = (ROOT / "docs/how-to/install.md").read_text()
    assert [name for name in licenses if name not in page] == []


# The script of this version, a script of an earlier version, and the upgrade from it.
SHARED = [f"flake--{VERSION}.sql", "flake--0.1.0.sql", f"flake--0.1.0--{VERSION}.sql", "flake.control",
          f"flake_sequences--{VERSION}.sql", "flake_sequences.control"]  # fmt: skip


@pytest.fixture
def tarball(tmp_path):
    """An unpacked tarball for PostgreSQL 15 with other files in place of the library's."""
    for name in ("lib/flake.so", *(f"share/extension/{name}" for name in SHARED)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    script = tmp_path / "install.sh"
    script.write_text((ROOT / "packaging/install.sh").read_text().replace("@MAJOR@", "15"))
    return script


def pg_config(folder, version):
    program = folder / "pg_config"
    program.write_text(
        f'#!/bin/sh\ncase $1 in --version) echo "PostgreSQL {version}" ;; --pkglibdir) echo "{folder}/a b/lib" ;; '
        f'--sharedir) echo "{folder}/a b/share" ;; esac\n'
    )
    program.chmod(0o755)
    return program


def install(script, *arguments):
    return subprocess.run(["sh", script, *arguments], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("version", ["15.20 (Debian 15.20-0+deb12u1)", "15beta1"])
def test_a_tarball_installs_and_removes(tarball, tmp_path, version):
    for _ in range(2):
        assert install(tarball, pg_config(tmp_path, version)).returncode == 0
    files = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "a b").rglob("*") if path.is_file())
    assert files == sorted(["a b/lib/flake.so", *(f"a b/share/extension/{name}" for name in SHARED)])
    assert install(tarball, "--remove", pg_config(tmp_path, version)).returncode == 0
    assert [path for path in (tmp_path / "a b").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("version", ["16.1", "150.1"])
def test_a_tarball_is_for_one_version(tarball, tmp_path, version):
    refused = install(tarball, pg_config(tmp_path, version))
    assert refused.returncode != 0
    assert f"flake: this is for PostgreSQL 15, and {tmp_path}/pg_config is of PostgreSQL {version}" in refused.stderr
    assert not (tmp_path / "a b").exists()


def run(program, folder, **environment):
    environment |= {"PG_CONFIG": str(pg_config(folder, "15.1"))}
    return subprocess.run(
        [program], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=os.environ | environment
    )


@pytest.fixture(params=["tarball", "build"])
def way(request, tarball, tmp_path):
    """Two ways to install: the files that are installed, what installs them, and where they come to."""
    if request.param == "tarball":
        return tmp_path, lambda: install(tarball, pg_config(tmp_path, "15.1")), tmp_path / "a b"
    stage, there = tmp_path / f"stage{tmp_path}/a b", tmp_path / f"there{tmp_path}/a b"
    for part in ("lib", "share"):
        shutil.copytree(tmp_path / part, stage / part)
    places = {"FLAKE_STAGE": str(tmp_path / "stage"), "DESTDIR": str(tmp_path / "there")}
    return stage, lambda: run(ROOT / "scripts/install", tmp_path, **places), there


def test_a_build_is_installed(way):
    _, install, there = way
    assert install().returncode == 0
    assert sorted(path.name for path in there.rglob("*") if path.is_file()) == sorted(["flake.so", *SHARED])


@pytest.mark.parametrize("lacks", ["lib/flake.so", "share/extension/flake.control", "share/extension"])
def test_what_lacks_a_file_is_not_installed(way, lacks):
    """A tarball was cut off, for example. Nobody must say that anything was installed."""
    files, install, there = way
    shutil.rmtree(files / lacks) if (files / lacks).is_dir() else (files / lacks).unlink()
    done = install()
    assert done.returncode != 0 and done.stderr
    assert not (there / "share/extension/flake.control").exists()


@pytest.mark.parametrize("name", ["lib", "share/extension"])
def test_nothing_is_installed_where_a_directory_cannot_be_made(way, name):
    """A file has its name."""
    _, install, there = way
    (there / name).parent.mkdir(parents=True, exist_ok=True)
    (there / name).write_text("")
    done = install()
    assert done.returncode != 0 and done.stderr and not [*there.rglob("flake*")]


@pytest.mark.parametrize("name", ["lib/flake.so", "share/extension/flake.control"])
def test_a_tarball_is_not_installed_where_a_file_cannot_be_copied(tarball, tmp_path, name):
    """A directory has the temporary name of the new file."""
    new = tmp_path / "a b" / name
    new.with_name(f".{new.name}.new").mkdir(parents=True)
    (new.with_name(f".{new.name}.new") / new.name).mkdir()
    done = install(tarball, pg_config(tmp_path, "15.1"))
    assert done.returncode != 0 and done.stderr
    assert not (tmp_path / "a b/share/extension/flake.control").exists()


@pytest.mark.matrix
@pytest.mark.parametrize(("lacks", "says"), [("library", "flake.so"), ("symbols", "is no release build"), ("LICENSE", "LICENSE")])
def test_no_package_is_made_of_a_build_that_lacks_a_file(tmp_path, lacks, says):
    """The copy's build script makes no files, so one is missing. The script that packs them fails there and packs nothing."""
    for name in ["scripts", "packaging", "docs", "examples", "managed"]:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    for path in [*ROOT.glob("*.md"), *(ROOT / name for name in ("Cargo.toml", "LICENSE", "flake.control"))]:
        shutil.copy(path, tmp_path)
    for name in ["build", "setup"]:
        (tmp_path / "scripts" / name).write_text("#!/bin/sh\n")
    stage = tmp_path / f"target/stage-15{tmp_path}/a b"
    for name in ("lib/flake.so", *(f"share/extension/{name}" for name in SHARED)):
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        (stage / name).write_text(name)
    library, symbols = stage / "lib/flake.so", tmp_path / "target/stage-15.debug"
    for path in library, symbols:
        shutil.copy("/bin/true", path)
    {"library": library, "symbols": symbols, "LICENSE": tmp_path / "LICENSE"}[lacks].unlink()
    done = run(tmp_path / "scripts/package", tmp_path, FLAKE_STAGE="", FLAKE_PACKAGE_VERSIONS="", SOURCE_DATE_EPOCH="1")
    assert done.returncode != 0 and says in done.stderr.splitlines()[-1]
    assert not [*(tmp_path / "target/dist").iterdir()]


@pytest.mark.matrix
def test_make_package_names_what_is_missing_and_its_parts(tmp_path):
    """The target names what is missing, and the parts of the package."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "scripts/setup").write_text("#!/bin/sh\n")
    (tmp_path / "Cargo.toml").touch()

    def said(*arguments, **environment):
        environment = os.environ | {"PG_CONFIG": "", "FLAKE_PACKAGE_VERSIONS": ""} | environment
        command = [tmp_path / "scripts/package", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        assert done.returncode != 0
        return done.stderr.splitlines()[-1]

    none = tmp_path / "pg_config"
    assert said(PG_CONFIG=str(none)) == f"flake: no PostgreSQL: {none} is not a program (set PG_CONFIG, or run 'make setup')"
    assert said(PG_CONFIG=str(pg_config(tmp_path, "14.1"))) == "flake: PostgreSQL 14 is not supported, 15 to 19 are"
    assert said(FLAKE_PACKAGE_VERSIONS="14") == "flake: no source of PostgreSQL 14 is known"
    assert said("everything") == "flake: package: archive, source, trusted, or no argument"
    assert said("archive") == "flake: the archive is made from a git repository"


def test_the_archive_has_no_tests_of_servers(tmp_path):
    """The archive also lacks everything else that is not needed to build, install and check it."""
    archive = tmp_path / "flake.tar"
    subprocess.run(["git", "archive", "--output", archive, "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(archive) as opened:
        names = set(opened.getnames())
    assert {"META.json", "Makefile", "README.md", "Cargo.lock", "rustfmt.toml", "tests/regress", "tests/vectors"} <= names
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "sql").glob("flake--*.sql")} <= names
    assert not names & {"bench", "src/core/fuzz"}
    assert {name for name in names if re.fullmatch("tests/[^/]+", name)} == {"tests/regress", "tests/vectors"}
    assert not names & {"packaging/rpm", ".ci", ".github", ".gitattributes", "deny.toml", "debian"}
