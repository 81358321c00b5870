#!/bin/bash
# scripts/getdeb.sh SUITE[,SUITE]... DIR PKG[/SUITE]...: unpacks Debian packages and what they need under DIR, signatures
# checked, and leaves a command DIR/bin/NAME for each program. It installs nothing, runs no package's script and needs no
# root: a newer release's servers on this one. DIR is made anew; remove it to be rid of them.
set -euo pipefail
suites=$1 into=$2
shift 2
command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "getdeb.sh: apt-get and dpkg are needed, as on Debian" >&2; exit 1; }
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || { echo "getdeb.sh: $keyring is missing: install debian-archive-keyring" >&2; exit 1; }
mirror=$(awk '/^URIs: .*\/debian\/?$/ {print $2; exit} /^deb .*\/debian\/? / {print $2; exit}' \
	/etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true)

mkdir -p "$(dirname "$into")"
dir=$(mktemp -d "$into.XXXXXX")
chmod 755 "$dir"
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"/{bin,none,lists/partial,cache/archives/partial,root/usr/{bin,lib,lib64,sbin}}
: >"$dir/status"
for l in bin lib lib64 sbin; do ln -s "usr/$l" "$dir/root/$l"; done # packages of both layouts meet
for s in ${suites//,/ }; do
	echo "deb [signed-by=$keyring] ${mirror:-http://deb.debian.org/debian} $s main"
done >"$dir/sources.list"
apt() {
	apt-get -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts="$dir/none" \
		-o Dir::Etc::preferences="$dir/none" -o Dir::Etc::preferencesparts="$dir/none" -o Dir::State::lists="$dir/lists" \
		-o Dir::State::status="$dir/status" -o Dir::Cache="$dir/cache" -o Dir::Log="$dir/none" -o Debug::NoLocking=1 \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}
apt update
apt -y --download-only --no-install-recommends install "$@"
for deb in "$dir"/cache/archives/*.deb; do dpkg -x "$deb" "$dir/root"; done
rm -rf "$dir"/{cache,lists,none,status,sources.list}

# The programs want the C library they were built with: its own loader starts them, by exec, so that a process keeps its id.
for f in "$dir"/root/usr/bin/*; do
	[ -x "$f" ] && [ ! -d "$f" ] || continue
	cat >"$dir/bin/${f##*/}" <<-'SH'
		#!/bin/sh
		root=${0%/bin/*}/root
		for loader in "$root"/usr/lib64/ld-linux* "$root"/usr/lib/ld-linux*; do [ ! -x "$loader" ] || break; done
		for libs in "$root"/usr/lib/*-linux-gnu*; do [ ! -d "$libs" ] || break; done
		exec "$loader" --library-path "$libs" "$root/usr/bin/${0##*/}" "$@"
	SH
	chmod +x "$dir/bin/${f##*/}"
done
rm -rf "$into"
mv "$dir" "$into"
trap - EXIT
