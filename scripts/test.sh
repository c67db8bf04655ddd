#!/usr/bin/env bash
# Runs every check and test of the repository and sums the results. The last line is
# "N passed, N failed"; the exit status is 0 only when nothing failed.
#
# Formatting, clippy, the set-up of the tests' packages count as one check each.
set -uo pipefail
. "$(dirname "$0")/common.sh"

cd "$root" || exit 1
logs=$cache/test-logs
mkdir -p "$logs"
passed=0
failed=0
failures=()

heading() { printf '\n== %s\n' "$*"; }

# record NAME PASSED FAILED
record() {
    passed=$((passed + $2))
    failed=$((failed + $3))
    printf '%s: %d passed, %d failed\n' "$1" "$2" "$3"
    [ "$3" = 0 ] || failures+=("$1")
}

# One command that either passes or fails: check NAME COMMAND...
check() {
    local name=$1 status
    shift
    heading "$name"
    "$@"
    status=$?
    if [ $status = 0 ]; then record "$name" 1 0; else record "$name" 0 1; fi
    return $status
}

# A command that prints its own counts: suite NAME COUNTER COMMAND...
# COUNTER reads the output and prints "PASSED FAILED". A command that fails without a counted
# failure (it did not compile, say) counts as one.
suite() {
    local name=$1 counter=$2 status counts ok bad
    shift 2
    heading "$name"
    "$@" 2>&1 | tee "$logs/$name.log"
    status=${PIPESTATUS[0]}
    counts=$($counter <"$logs/$name.log")
    ok=${counts% *}
    bad=${counts#* }
    if [ "$status" != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
    if [ "$status" = 0 ] && [ "$ok" = 0 ]; then
        say "$name: no test ran"
        bad=1
    fi
    record "$name" "$ok" "$bad"
}

count_cargo() { awk '/^test result:/ { ok += $4; bad += $6 } END { print ok + 0, bad + 0 }'; }
count_pytest() {
    awk '/ in [0-9.:]+m?s/ { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) ok = $(i - 1); if ($i ~ /^(failed|error)/) bad += $(i - 1) } }
         END { gsub(/[^0-9]/, "", ok); print ok + 0, bad + 0 }'
}
count_node() { awk '/^# pass / { ok += $3 } /^# (fail|cancelled) / { bad += $3 } END { print ok + 0, bad + 0 }'; }

finish() {
    if [ ${#failures[@]} -gt 0 ]; then
        printf '\nfailed: %s (logs in .cache/test-logs)\n' "${failures[*]}"
    fi
    printf '\n%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] && exit 0
    exit 1
}

check set-up scripts/setup.sh test || finish
check documents scripts/documents.sh
check format cargo fmt --all --check
check clippy cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
suite cargo-tests count_cargo cargo test --locked --workspace --no-fail-fast

if check build-binary cargo build --locked --quiet -p toastrack-cli; then
    suite python-example count_pytest scripts/with-servers.sh examples/python-app/test.sh
    suite node-example count_node scripts/with-servers.sh examples/node-app/test.sh
fi
finish
