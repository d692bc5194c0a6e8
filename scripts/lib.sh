# Sourced by the other scripts: where things are, an environment that is the same for everybody, and how to say what is wrong.
# shellcheck shell=bash disable=SC2034 # variables are for those who source it
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '==> %s\n' "$*"; }
die() { printf 'flake: %s\n' "$*" >&2; exit 1; }

# Takes away what the caller's environment would tell the compiler, the servers and their clients. PostgreSQL's programs take
# defaults from PG*: a server takes PGPORT for its own port.
clean_environment() {
    local name
    for name in "${!PG@}"; do
        case $name in
        PG_CONFIG) ;;
        *) unset "$name" ;;
        esac
    done
    # pgrx would add backtraces to the DETAIL of every error.
    unset RUST_BACKTRACE CARGO_BUILD_TARGET CARGO_TARGET_DIR CDPATH LANGUAGE
    export LC_ALL=C.UTF-8 TZ=UTC
    # Python keeps what it has compiled, and what pytest has made of the tests, outside of the tree.
    unset PYTHONDONTWRITEBYTECODE
    export PYTHONPYCACHEPREFIX=${PYTHONPYCACHEPREFIX:-$root/target/python}
    # Servers that root starts run as another user, who has to read what is made here.
    umask 022
    # cargo and rustup keep their files there.
    if ! [ -w "${HOME:-}" ] || [ "$HOME" = / ]; then
        HOME=$(getent passwd "$(id -u)" | cut -d : -f 6) || true
        if ! [ -w "$HOME" ]; then
            HOME=$root/target/home
            mkdir -p "$HOME"
        fi
        export HOME
    fi
    if ! command -v cargo >/dev/null && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
        PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
    fi
}

# Clients of a server that the caller names need what the caller says about it.
if [ "${client_environment:-}" != keep ]; then clean_environment; fi

# Files of the machine that take long to make. Root's home cannot be read by the user that root's servers run as.
cache=${XDG_CACHE_HOME:-${HOME:-}/.cache}/flake
if [ "$EUID" -eq 0 ]; then cache=/var/cache/flake; fi

# Sets pg_config, pg_version, major, bindir and stage; fails when there is no PostgreSQL.
find_postgres() {
    pg_config=$(command -v "${PG_CONFIG:-pg_config}") || return 1
    # Debian's /usr/bin/pg_config may belong to another version than the server it names.
    bindir=$("$pg_config" --bindir)
    if [ -x "$bindir/pg_config" ]; then pg_config=$bindir/pg_config; fi
    pg_version=$("$pg_config" --version)
    major=${pg_version#PostgreSQL } major=${major%%[!0-9]*}
    # Where the build for this PostgreSQL is laid out as it will be installed. FLAKE_STAGE names another, such as an older
    # commit's.
    stage=${FLAKE_STAGE:-$root/target/stage-$major${FLAKE_FEATURES:+-$FLAKE_FEATURES}}
}

need_postgres() {
    find_postgres || die "no PostgreSQL: ${PG_CONFIG:-pg_config} is not a program (set PG_CONFIG, or run 'make setup')"
    if [ "$major" -lt 15 ] || [ "$major" -gt 19 ]; then die "PostgreSQL $major is not supported, 15 to 19 are"; fi
}

# The version of the extension: Cargo.toml is the only place that has it.
version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml"; }

# The mirror of Debian that this machine's apt uses, in whichever format its sources are; fails when there is none.
debian_mirror() {
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 2>/dev/null |
        awk '/\/debian\/?$/ && !mirror { mirror = $0; print } END { exit !mirror }'
}

# The time that packages give their files: the last commit's, or the one that SOURCE_DATE_EPOCH names. Without a history,
# as in the archive of `make dist`, the files have it.
source_date() { echo "${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/Cargo.toml")}"; }

# Runs a command as the user that servers run as: this one, or postgres where this one is root.
as_server() {
    if [ "$EUID" -ne 0 ]; then "$@"; return; fi
    compgen -u -X '!postgres' >/dev/null || die "a server does not run as root, and there is no user postgres"
    # From a directory that this user can enter. runuser would open a session, which takes longer than most commands.
    (cd / && exec setpriv --reuid=postgres --regid=postgres --init-groups "$@")
}

# Sets clients to the directory of other languages' libraries that only tests use, as examples/ names them; other versions get
# another one.
find_clients() {
    local named
    named=$(cat "$root"/examples/requirements.txt "$root"/examples/node/package.json 2>/dev/null) || true
    clients=$cache/clients-$(cksum <<<"$named" | cut -d ' ' -f 1)
}

# Sets python to one that has these modules; Debian's packages are for Debian's own.
find_python() {
    local modules; modules=$(IFS=,; echo "$*")
    for python in python3 /usr/bin/python3; do
        if "$python" -c "import $modules" 2>/dev/null; then return 0; fi
    done
    return 1
}

# Sets tool to the program of a version, which is in the path or was installed before: `find_tool NAME VERSION`.
find_tool() {
    for tool in "$1" "$cache/$1-$2/bin/$1"; do
        case $("$tool" --version 2>/dev/null) in "$1 $2" | "$1 v$2") return 0 ;; esac
    done
    return 1
}

# Sets ruff to the program of the version that ruff.toml names, and ruff_version to that version.
find_ruff() {
    ruff_version=$(sed -n 's/^required-version = "==\(.*\)"$/\1/p' "$root/ruff.toml")
    find_tool ruff "$ruff_version" && ruff=$tool
}

# Sets mdbook to the program of the version that site/book.toml names, and mdbook_version to that version.
find_mdbook() {
    mdbook_version=$(sed -n 's/^# Built with mdBook \(.*\)\.$/\1/p' "$root/site/book.toml")
    find_tool mdbook "$mdbook_version" && mdbook=$tool
}

# Sets pglite to the package of the version that the examples name, and pglite_version to that version.
find_pglite() {
    pglite_version=$(sed -n 's/^.*"@electric-sql\/pglite": "\(.*\)".*$/\1/p' "$root/examples/node/package.json")
    pglite=$cache/pglite-$pglite_version/node_modules/@electric-sql/pglite
    [ -f "$pglite/package.json" ]
}

# Sets faketime to the library that sets the clock of a server. PostgreSQL reads the clock in signal handlers, too: libfaketimeMT
# blocks signals while it allocates memory, libfaketime does not, and a handler waits for it for ever.
find_faketime() {
    faketime=$(compgen -G '/usr/lib*/*/faketime/libfaketimeMT.so.1' | head -n 1)
    [ -n "$faketime" ]
}

# Copies a file into a directory, unless it is there already: `put 644 FILE DIRECTORY`. A running server may read it at any
# time, so it is replaced in one step.
put() {
    local mode=$1 from=$2 to=$3/${2##*/}
    if cmp -s "$from" "$to"; then return; fi
    install -m "$mode" "$from" "$to.new.$$"
    mv -f "$to.new.$$" "$to"
    echo "$to"
}

# Runs one part of a whole, says what it is, and how long it took. Not in an `if` or before `||`, where bash would continue after
# a command that fails.
timed() {
    running=$1
    local begin=$SECONDS
    shift
    say "$running"
    trap 'is_over $?' EXIT
    "$@"
    say "$running: passed after $((SECONDS - begin)) s"
}

# Says which part has failed, and ends the groups of processes that run in the background.
is_over() {
    local job
    [ "$1" -eq 0 ] || say "$running: FAILED"
    for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
}
