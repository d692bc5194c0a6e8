# Sourced by setup: collects the Debian packages that are missing, and installs them.
# shellcheck shell=bash

packages=()
lacks_package() { packages+=("$1"); }
lacks_program() { command -v "$1" >/dev/null || lacks_package "${2:-$1}"; }

may_install() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }

# apt-get as root. It waits up to ten minutes for another one to end, as an upgrade on a new machine does.
apt() {
    local as_root=() log=$1 attempt
    shift
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
    for attempt in {1..120}; do
        if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1; then
            return
        fi
        # The timeout covers dpkg's locks but not the one on the lists of packages.
        grep -q 'Could not get lock' "$log" || return 1
        if [ "$attempt" -eq 1 ]; then say "Waiting for another apt-get to end"; fi
        sleep 5
    done
    return 1
}

install_packages() {
    if [ ${#packages[@]} -eq 0 ]; then return; fi
    command -v apt-get >/dev/null ||
        die "no apt-get here; install what these Debian packages hold and run again: ${packages[*]}"
    may_install || die "not root and no sudo; have these packages installed: ${packages[*]}"
    say "Installing ${packages[*]}"
    local package log; log=$(mktemp)
    if ! { apt "$log" update -qq && apt "$log" install -y -qq --no-install-recommends "${packages[@]}"; }; then
        tail -n 20 "$log" >&2
        die "apt-get could not install ${packages[*]} (its output is in $log)"
    fi
    rm -f "$log"
    # Debian starts these, which nobody has asked for.
    for package in "${packages[@]}"; do
        case $package in
        etcd-server) stop_service etcd ;;
        pgbouncer | prometheus | prometheus-sql-exporter) stop_service "$package" ;;
        esac
    done
    packages=()
}

stop_service() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
    "${as_root[@]}" service "$1" stop >/dev/null 2>&1 || true
    "${as_root[@]}" update-rc.d "$1" disable >/dev/null 2>&1 || true
}

# Packages for some tests, which say when they are skipped: a package is wanted if this file of it is not there.
wanted=()
wants_package() { if [ ! -e "$2" ]; then wanted+=("$1"); fi; }

# Installs those that the distribution has.
install_wanted() {
    if [ ${#wanted[@]} -eq 0 ] || ! may_install; then return; fi
    local package log; log=$(mktemp)
    apt "$log" update -qq || true
    rm -f "$log"
    for package in "${wanted[@]}"; do
        if apt-cache show "$package" >/dev/null 2>&1; then lacks_package "$package"; fi
    done
    install_packages
}
