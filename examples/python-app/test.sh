#!/usr/bin/env bash
# Runs the tests of this example against the servers of DIRECT_URL and TOASTRACK_URL;
# scripts/with-servers.sh sets both.
set -euo pipefail
cd "$(dirname "$0")"
exec ../../.cache/venv/bin/python -m pytest -q -p no:cacheprovider tests "$@"
