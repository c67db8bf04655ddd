#!/usr/bin/env bash
# PostgreSQL's own regression suite, straight and through Toastrack; the two must agree.
#
#   scripts/regress.sh
#
# Brings the source package of the installed server (Debian only), builds its test library, starts a
# private Postgres with a Toastrack in front of it, and runs the suite twice. The last line is
# "N passed, N failed", where a test fails if its outcome through Toastrack differs from straight.
# What each run gave stays in .cache/regress/results.
set -euo pipefail
. "$(dirname "$0")/common.sh"

bin=$(postgres_bin) || die "no Postgres server found: run scripts/setup.sh test"
major=$(basename "$(dirname "$bin")")
work=$cache/regress
mkdir -p "$work"

installed=$(dpkg-query -W -f '${source:Version}' "postgresql-$major") || die "postgresql-$major is not a Debian package here"

# The headers of the same version, so that the server is not upgraded on the way.
install_tools() {
    [ -x "/usr/lib/postgresql/$major/lib/pgxs/src/test/regress/pg_regress" ] && have dpkg-source && have bzip2 && return 0
    local sudo=(env) install
    [ "$(id -u)" = 0 ] || sudo=(sudo env)
    install=("${sudo[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends)
    "${sudo[@]}" apt-get update -q
    "${install[@]}" dpkg-dev bzip2
    "${install[@]}" "postgresql-server-dev-$major=$installed" "libpq-dev=$installed" ||
        "${install[@]}" "postgresql-server-dev-$major"
    installed=$(dpkg-query -W -f '${source:Version}' "postgresql-$major")
}

# The source package of the installed version, from where the binary package came; of another minor
# version when that one is not served any more.
fetch_source() {
    local version file options
    mkdir -p "$work/apt/parts" "$work/apt/lists/partial"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [ -e "$file" ] || continue
        case $file in
        *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" ;;
        *.list) sed -n 's/^deb \(\[[^]]*\] \)\{0,1\}/deb-src \1/p' "$file" ;;
        *) continue ;;
        esac >"$work/apt/parts/$(basename "$file")"
    done
    options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/apt/parts" -o "Dir::State::lists=$work/apt/lists")
    for source in "$work/postgresql-$installed" "$work/postgresql-$major".*; do
        [ ! -d "$source" ] || [ "${source%.part}" != "$source" ] || return 0
    done
    # A list that has no sources is no hindrance if another one has.
    apt-get "${options[@]}" update -q >&2 || true
    for version in "$installed" $(apt-cache "${options[@]}" showsrc "postgresql-$major" | sed -n 's/^Version: //p'); do
        source=$work/postgresql-$version
        (cd "$work" && apt-get "${options[@]}" source --download-only "postgresql-$major=$version" >&2) || continue
        (cd "$work" && dpkg-source --no-check --skip-patches -x "postgresql-${major}_$version.dsc" "$source.part" >&2)
        mv "$source.part" "$source"
        return 0
    done
    die "no source package of postgresql-$major can be had"
}

build_library() {
    library=$work/lib-$major
    [ ! -e "$library/regress.so" ] || return 0
    mkdir -p "$library"
    local name
    for name in autoinc refint; do ln -sf "/usr/lib/postgresql/$major/lib/$name.so" "$library/$name.so"; done
    cc -O1 -fPIC -shared -fno-strict-aliasing -w -I"/usr/include/postgresql/$major/server" \
        "$source/src/test/regress/regress.c" -o "$library/regress.so"
}

install_tools
fetch_source
[ -n "${DIRECT_URL:-}" ] || exec "$root/scripts/with-servers.sh" "$0"
build_library
chmod -R a+rX "$work"

run() { # run NAME URL
    local name=$1 url=$2 place output input
    place=${url##*@}
    place=${place%%/*}
    # The server reads and writes files there: neither may be in a directory of this user alone.
    output=$(mktemp -d)
    input=$output/input
    cp -r "$source/src/test/regress" "$input"
    cp -r "$library" "$output/lib"
    mkdir -p "$output/results" "$output/testtablespace"
    chmod -R a+rwX "$output"
    say "$name: $place"
    "/usr/lib/postgresql/$major/lib/pgxs/src/test/regress/pg_regress" \
        --bindir="$bin" --dlpath="$output/lib" --inputdir="$input" --outputdir="$output" \
        --host="${place%:*}" --port="${place##*:}" --user=postgres --max-concurrent-tests=20 \
        --schedule="$input/parallel_schedule" >"$output/regress.log" 2>&1 || true
    rm -rf "$work/results/$name"
    mkdir -p "$work/results/$name"
    cp -r "$output/regress.log" "$output/results" "$work/results/$name/"
    [ ! -e "$output/regression.diffs" ] || cp "$output/regression.diffs" "$work/results/$name/"
    rm -rf "$output"
    sed -n 's/^\(test\|    \) *\([a-z0-9_.]*\) *\.\.\. *\(ok\|FAILED\).*/\2 \3/p' "$work/results/$name/regress.log" | sort >"$work/results/$name/outcomes"
}

run straight "$DIRECT_URL"
run through "$TOASTRACK_URL"

all=$(wc -l <"$work/results/straight/outcomes")
[ "$all" -gt 0 ] || die "the suite did not run: $work/results/straight/regress.log"
differing=$(diff "$work/results/straight/outcomes" "$work/results/through/outcomes" | sed -n 's/^[<>] \([^ ]*\).*/\1/p' | sort -u)
failed=$(printf '%s' "$differing" | grep -c . || true)
for name in $differing; do say "differs: $name"; done
same=0
for file in "$work"/results/straight/results/*; do
    if cmp -s "$file" "$work/results/through/results/$(basename "$file")"; then same=$((same + 1)); fi
done
printf 'outputs that are the same byte for byte: %d of %d\n' "$same" "$(ls "$work/results/straight/results" | wc -l)"
printf 'straight: %d of %d ok\n' "$(grep -c ' ok$' "$work/results/straight/outcomes" || true)" "$all"
printf '\n%d passed, %d failed\n' $((all - failed)) "$failed"
[ "$failed" = 0 ]
