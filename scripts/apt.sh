#!/bin/sh
# scripts/apt.sh PKG…: from Debian's archive, without starting a service: the tests run servers of their own,
# and a redis-server on the standard port is nobody's wish.
set -eu
sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
policy=/usr/sbin/policy-rc.d # what a package's install script asks before it starts its service; 101 is no
if [ ! -e "$policy" ]; then
	trap '$sudo rm -f "$policy"' EXIT
	printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
	$sudo chmod 755 "$policy"
fi
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq -o Dpkg::Use-Pty=0 \
	--no-install-recommends "$@" >/dev/null
