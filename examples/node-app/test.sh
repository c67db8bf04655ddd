#!/usr/bin/env bash
# Runs the tests of this example against the servers of DIRECT_URL and TOASTRACK_URL;
# scripts/with-servers.sh sets both.
set -euo pipefail
cd "$(dirname "$0")"
exec node --test --test-reporter=tap --test-concurrency=1 test/*.test.js
