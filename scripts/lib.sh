# Sourced by the other scripts: where things are, and how to say what is wrong.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What takes long to make and belongs to the machine. Servers that root starts run as another user, who cannot see root's home.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/flake
if [ "$(id -u)" -eq 0 ]; then cache=/var/cache/flake; fi
pgrx_version=$(sed -n 's/^pgrx = "=\(.*\)"$/\1/p' "$root/Cargo.toml")
# pgrx would add backtraces to the DETAIL of every error.
unset RUST_BACKTRACE

say() { printf '==> %s\n' "$*"; }
die() { printf 'flake: %s\n' "$*" >&2; exit 1; }

# Sets pg_config, major, bindir, stage, PGRX_HOME; fails when there is no PostgreSQL.
find_postgres() {
    pg_config=$(command -v "${PG_CONFIG:-pg_config}") || return 1
    # Debian's /usr/bin/pg_config may belong to another version than the server it names.
    local own; own=$("$pg_config" --bindir)/pg_config
    if [ -x "$own" ]; then pg_config=$own; fi
    major=$("$pg_config" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
    bindir=$("$pg_config" --bindir)
    stage=$root/target/stage-$major
    # One for each, since pgrx cannot build for any PostgreSQL when one that it knows is gone.
    export PGRX_HOME=$root/target/pgrx-$major
}

need_postgres() {
    find_postgres || die "no PostgreSQL: ${PG_CONFIG:-pg_config} is not a program (set PG_CONFIG, or run 'make run')"
    if [ "$major" -lt 15 ] || [ "$major" -gt 18 ]; then die "PostgreSQL $major is not supported, 15 to 18 are"; fi
}

# The cargo-pgrx that matches the library: the user's own, or one in the cache.
find_cargo_pgrx() {
    PATH=$PATH:$cache/cargo-pgrx-$pgrx_version/bin
    local path
    for path in $(type -ap cargo-pgrx); do
        if [ "$("$path" pgrx --version 2>/dev/null)" = "cargo-pgrx $pgrx_version" ]; then
            PATH=$(dirname "$path"):$PATH
            return 0
        fi
    done
    return 1
}

# A Python that has these modules; Debian's packages are for Debian's own.
find_python() {
    local modules; modules=$(IFS=,; echo "$*")
    for python in python3 /usr/bin/python3; do
        if "$python" -c "import $modules" 2>/dev/null; then return 0; fi
    done
    return 1
}

# The library that sets the clock of a server.
find_faketime() {
    faketime=$(compgen -G '/usr/lib*/*/faketime/libfaketime.so.1' | head -n 1)
    [ -n "$faketime" ]
}
