#!/usr/bin/env bash
# Fetches documents that nobody of this project wrote into .cache/documents/{json,text,images}:
#
#   json     the feature files of npm's caniuse-db, and npm's @mdn/browser-compat-data cut into
#            one file per interface, property, element or header
#   text     the manual of Perl (Debian's perl-doc), vector images (Debian's desktop-base)
#   images   PNG and JPEG files of Debian's desktop-base
#
# Debian packages are unpacked, not installed. About 50 MB in 4,000 files; quick when already there.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# Raise the number whenever what is fetched or how it is cut changes.
edition="documents 1: caniuse-db@1.0.30001813 @mdn/browser-compat-data@8.1.9 perl-doc desktop-base"
caniuse=caniuse-db@1.0.30001813
mdn=@mdn/browser-compat-data@8.1.9
documents=$cache/documents

if [ "$(cat "$documents/.complete" 2>/dev/null)" = "$edition" ]; then
    exit 0
fi

have npm && have node || die "npm is missing: run scripts/setup.sh demo"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
new=$work/documents
complete=yes
mkdir -p "$new/json" "$new/text" "$new/images"

# Unpacks one npm package into $work/$2.
npm_unpack() {
    local archive
    archive=$(cd "$work" && npm pack --silent "$1" | tail -n1)
    mkdir -p "$work/$2"
    tar -xzf "$work/$archive" -C "$work/$2" --strip-components=1 --no-same-owner
}

# Unpacks one Debian package into $work/$1 without installing it.
debian_unpack() {
    have apt-get && have dpkg-deb || return 1
    mkdir -p "$work/$1"
    # The download runs as the caller: the directory is private to this script.
    (cd "$work" && apt-get -qq -o APT::Sandbox::User="$(id -un)" download "$1" >&2) || return 1
    dpkg-deb -x "$work/$1"_*.deb "$work/$1"
}

say "fetching real documents into .cache/documents"
npm_unpack "$caniuse" caniuse
npm_unpack "$mdn" mdn

mkdir -p "$new/json/caniuse"
cp "$work"/caniuse/features-json/*.json "$new/json/caniuse/"
node "$root/scripts/split-compat-data.js" "$work/mdn/data.json" "$new/json/mdn"

if debian_unpack perl-doc; then
    find "$work/perl-doc/usr/share/perl" -name '*.pod' -size -512k -exec cp -t "$new/text" {} +
else
    complete=no
    say "warning: Debian's perl-doc could not be fetched ('apt-get update' may help): using installed licence texts"
    cp -L /usr/share/common-licenses/* "$new/text/"
fi

# Copies files under new names that keep their folder, since themes repeat file names.
copy_flat() {
    local file name
    while IFS= read -r file; do
        name=${file#"$1"/}
        cp "$file" "$2/${name//\//-}"
    done
}
if debian_unpack desktop-base; then
    shares=$work/desktop-base/usr/share
    find "$shares" -type f \( -name '*.png' -o -name '*.jpg' \) -size +3k | copy_flat "$shares" "$new/images"
    find "$shares" -type f -name '*.svg' -size +3k -size -512k | copy_flat "$shares" "$new/text"
else
    complete=no
    say "warning: Debian's desktop-base could not be fetched: there will be no images"
fi

chmod -R u=rwX,go=rX "$new"
rm -rf "$documents"
mkdir -p "$cache"
mv "$new" "$documents"
# What is incomplete is fetched again the next time.
[ $complete = no ] || printf '%s\n' "$edition" >"$documents/.complete"
for kind in json text images; do
    say "$(printf '%-7s %5d files %8d kB' $kind "$(find "$documents/$kind" -type f | wc -l)" "$(du -sk --apparent-size "$documents/$kind" | cut -f1)")"
done
