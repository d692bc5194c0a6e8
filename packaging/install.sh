#!/bin/sh
# Copies flake to where PostgreSQL looks for extensions: install.sh [--remove] [PG_CONFIG]; PG_CONFIG is the program pg_config of
# that PostgreSQL. DESTDIR= is a root for packagers.
set -eu
cd "$(dirname "$0")"
remove=
if [ "${1:-}" = --remove ]; then
    remove=yes
    shift
fi
pg_config=${1:-${PG_CONFIG:-pg_config}}
found=$("$pg_config" --version) || { echo "flake: $pg_config is no pg_config; name that of your PostgreSQL @MAJOR@" >&2; exit 1; }
case $found in
"PostgreSQL @MAJOR@"[!0-9]*) ;;
*) echo "flake: this is for PostgreSQL @MAJOR@, and $pg_config is of $found" >&2; exit 1 ;;
esac
lib=${DESTDIR:-}$("$pg_config" --pkglibdir)
extension=${DESTDIR:-}$("$pg_config" --sharedir)/extension
if [ -n "$remove" ]; then
    rm -fv "$lib/flake.so" "$extension/flake.control" "$extension"/flake--*.sql \
        "$extension/flake_sequences.control" "$extension"/flake_sequences--*.sql
    exit
fi
mkdir -p "$lib" "$extension"
# A running server may have the old ones open, so they are replaced in one step.
copy() {
    install -m "$1" "$2" "$3/.${2##*/}.new"
    mv -f "$3/.${2##*/}.new" "$3/${2##*/}"
    echo "$3/${2##*/}"
}
copy 755 lib/flake.so "$lib"
# Without the control files, which come last, PostgreSQL does not know the extensions.
for file in share/extension/flake--*.sql share/extension/flake_sequences--*.sql share/extension/flake.control \
    share/extension/flake_sequences.control; do copy 644 "$file" "$extension"; done
