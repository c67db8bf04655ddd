#!/usr/bin/env bash
# Runs the tests of this example against the servers of DIRECT_URL and TOASTRACK_URL;
# scripts/with-servers.sh sets both. Needs Go and lib/pq from Debian's packages:
#
#   apt-get install golang-go golang-github-lib-pq-dev
set -euo pipefail
cd "$(dirname "$0")"
sources=${GO_PACKAGES:-/usr/share/gocode}
command -v go >/dev/null || { echo "error: no go: apt-get install golang-go" >&2; exit 1; }
[ -d "$sources/src/github.com/lib/pq" ] || { echo "error: no lib/pq in $sources: apt-get install golang-github-lib-pq-dev" >&2; exit 1; }
# Debian keeps Go packages in a GOPATH; nothing is fetched. A failing or missing test fails this.
output=$(GO111MODULE=off GOPATH="$sources" go test -count=1 -v . "$@" 2>&1) || { printf '%s\n' "$output"; exit 1; }
printf '%s\n' "$output" | grep -v '^=== ' | tail -n 100
passed=$(grep -c '^ *--- PASS' <<<"$output" || true)
[ "$passed" -gt 0 ] || { echo "error: no test ran" >&2; exit 1; }
echo "$passed passed, 0 failed"
