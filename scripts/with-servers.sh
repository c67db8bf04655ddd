#!/usr/bin/env bash
# Runs a command with a private Postgres and a Toastrack in front of it:
#
#   scripts/with-servers.sh COMMAND [ARGUMENT...]
#
# The command finds DIRECT_URL (Postgres itself) and TOASTRACK_URL (through Toastrack) in its
# environment. Both servers stop when it ends; its exit status is this script's.
set -euo pipefail
. "$(dirname "$0")/common.sh"

[ $# -gt 0 ] || die "usage: scripts/with-servers.sh COMMAND [ARGUMENT...]"

toastrack=${TOASTRACK_BIN:-${CARGO_TARGET_DIR:-$root/target}/debug/toastrack}
[ -x "$toastrack" ] || die "no binary at $toastrack: run 'cargo build -p toastrack-cli' first"

work=$(mktemp -d)
server=
finish() {
    if [ -n "$server" ] && kill -TERM "$server" 2>/dev/null; then
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

"$toastrack" demo --keep --empty --env-file "$work/env" >"$work/log" 2>&1 &
server=$!

for _ in $(seq 600); do
    [ ! -s "$work/env" ] || break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
if [ ! -s "$work/env" ]; then
    cat "$work/log" >&2
    die "the servers did not start within a minute"
fi

set -a
# shellcheck disable=SC1091 # written by toastrack demo: DIRECT_URL=... and TOASTRACK_URL=...
. "$work/env"
set +a

status=0
"$@" || status=$?
if [ $status != 0 ]; then
    say "the last lines of the servers' log:"
    tail -n 20 "$work/log" >&2
fi
exit $status
