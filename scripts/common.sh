# Shared by the scripts of this folder; sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$root/.cache
venv=$cache/venv
# Non-login shells often miss the place where rustup puts cargo.
export PATH="$PATH:$HOME/.cargo/bin"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $*"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# The directory with initdb and postgres, of the newest installed server that is 14 or later.
postgres_bin() {
    local dir
    for dir in ${TOASTRACK_PG_BIN:+"$TOASTRACK_PG_BIN"} $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5,5 -rn); do
        if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then
            printf '%s\n' "$dir"
            return 0
        fi
    done
    return 1
}
