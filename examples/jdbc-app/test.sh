#!/usr/bin/env bash
# Runs the tests of this example against the servers of DIRECT_URL and TOASTRACK_URL;
# scripts/with-servers.sh sets both. Needs a JDK (11 or later) and Debian's libpostgresql-jdbc-java:
#
#   apt-get install default-jdk-headless libpostgresql-jdbc-java
set -euo pipefail
cd "$(dirname "$0")"
driver=${JDBC_DRIVER:-/usr/share/java/postgresql.jar}
[ -e "$driver" ] || { echo "error: no JDBC driver at $driver: apt-get install libpostgresql-jdbc-java" >&2; exit 1; }
command -v javac >/dev/null || { echo "error: no javac: apt-get install default-jdk-headless" >&2; exit 1; }
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac -Xlint:all -Xlint:-serial -d "$classes" -cp "$driver" src/*.java
java -XX:TieredStopAtLevel=1 -cp "$classes:$driver" Main "$@"
