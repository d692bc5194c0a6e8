"""The PostgreSQL of the tutorial in the browser: the modules of PGlite, and the files that a page loads. These are packed by gzip
under names that no web server knows, so each server sends them as they are."""

import gzip
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

IMPORT = re.compile(r"""(?:from|import)\s*\(?["'](\./[\w.-]+\.js)["']""")
# The databases from which CREATE DATABASE copies. PGlite has one database.
TEMPLATES = ("base/1/", "base/4/")


def copy(pglite, edition, target):
    """Copies PGlite, with a database in which the edition in plain SQL is installed. `sizes.js` says how much a page loads."""
    target.mkdir()
    wanted = ["./index.js"]
    for name in wanted:
        text = (pglite / "dist" / name).read_text()
        wanted += [found for found in IMPORT.findall(text) if found not in wanted]
        (target / name).write_text(re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.M))
    shutil.copy(pglite / "LICENSE", target)
    for name in ("pglite.wasm", "pglite.data"):
        pack((pglite / "dist" / name).read_bytes(), target / f"{name}.packed")
    with tempfile.TemporaryDirectory() as folder:
        whole, small = Path(folder) / "whole.tar", Path(folder) / "small.tar"
        command = ["node", Path(__file__).parent / "playground/database.mjs", pglite, edition, whole]
        log = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        without_superfluous(whole, small, log)
        pack(small.read_bytes(), target / "database.packed")
    sizes = {path.name: path.stat().st_size for path in sorted(target.glob("*.packed"))}
    (target / "sizes.js").write_text(f"export const sizes = {json.dumps(sizes)}\n")


def without_superfluous(whole, small, log):
    """Leaves out the files of the templates and of the log but the last one, most of all."""
    with tarfile.open(whole) as source, tarfile.open(small, "w", format=tarfile.USTAR_FORMAT) as target:
        for member in source:
            name = member.name.lstrip("/")
            is_old = re.fullmatch(r"pg_wal/[0-9A-F]{24}", name) and not name.endswith(log)
            if member.isdir() or (member.isfile() and not name.startswith(TEMPLATES) and not is_old):
                target.addfile(member, source.extractfile(member) if member.isfile() else None)


def pack(content, path):
    path.write_bytes(gzip.compress(content, 9, mtime=0))
