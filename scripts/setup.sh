#!/usr/bin/env bash
# Installs what building, the demo and the tests need. Safe to run again: quick when all is there.
#
#   scripts/setup.sh demo    Postgres, libclang, a C compiler; npm for the real documents
#   scripts/setup.sh test    the same, and the Python and Node packages of the examples
#
# Debian packages are installed with apt-get, as root or through sudo, and only when one is missing.
set -euo pipefail
. "$(dirname "$0")/common.sh"

goal=${1:-test}
case $goal in
demo | test) ;;
*) die "usage: scripts/setup.sh [demo|test]" ;;
esac

check_rust() {
    local needed found
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    have cargo && have rustc ||
        die "no Rust toolchain found: Toastrack needs Rust $needed or later (cargo and rustc), which Debian does not package; install it with rustup and run this again"
    found=$(rustc --version | awk '{print $2}')
    if [ "$(printf '%s\n' "$needed" "${found%%-*}" | sort -V | head -n1)" != "$needed" ]; then
        die "Rust $found is too old: Toastrack needs $needed or later; 'rustup update stable' brings it"
    fi
    if [ "$goal" = test ]; then
        cargo fmt --version >/dev/null 2>&1 || die "rustfmt is missing: 'rustup component add rustfmt' brings it"
        cargo clippy --version >/dev/null 2>&1 || die "clippy is missing: 'rustup component add clippy' brings it"
    fi
}

has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] || compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null
}

missing_packages() {
    postgres_bin >/dev/null || echo postgresql
    compgen -G '/usr/share/postgresql/*/extension/dblink.control' >/dev/null || echo postgresql-contrib
    have psql || echo postgresql-client
    has_libclang || echo libclang-dev
    have clang || echo clang
    have cc || echo gcc libc6-dev
    have make || echo make
    [ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
    have node || echo nodejs
    have npm || echo npm
    if [ "$goal" = test ]; then
        python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || echo python3 python3-venv
    fi
}

install_packages() {
    local packages sudo=()
    packages=$(missing_packages | tr '\n' ' ')
    [ -n "${packages// /}" ] || return 0
    if ! have apt-get; then
        die "this machine has no apt-get; install what these Debian packages hold: $packages"
    fi
    if [ "$(id -u)" != 0 ]; then
        have sudo || die "run as root: apt-get install -y $packages"
        sudo=(sudo)
    fi
    say "installing Debian packages: $packages"
    export DEBIAN_FRONTEND=noninteractive
    "${sudo[@]}" apt-get update -q
    # shellcheck disable=SC2086 # one word per package
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
    packages=$(missing_packages | tr '\n' ' ')
    [ -z "${packages// /}" ] || die "still missing after apt-get install: $packages"
}

# Brings the Python packages of the example into a virtual environment of this repository.
python_packages() {
    local wanted stamp=$venv/.requirements
    wanted=$root/examples/python-app/requirements.txt
    if [ -x "$venv/bin/python" ] && cmp -s "$wanted" "$stamp"; then
        return 0
    fi
    say "installing the Python packages of examples/python-app into .cache/venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
    cp "$wanted" "$stamp"
}

node_packages() {
    local app=$root/examples/node-app
    if cmp -s "$app/package-lock.json" "$app/node_modules/.toastrack-lock"; then
        return 0
    fi
    say "installing the Node packages of examples/node-app"
    (cd "$app" && npm ci --silent --no-audit --no-fund)
    cp "$app/package-lock.json" "$app/node_modules/.toastrack-lock"
}

check_rust
install_packages
mkdir -p "$cache"
if [ "$goal" = test ]; then
    python_packages
    node_packages
fi
say "set-up for $goal is complete"
