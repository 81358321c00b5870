#!/bin/sh
# scripts/real.sh FILE: webhook payloads, one a line, through publish, work, dlq and redrive on a private redis-server.
# Exits 1 when a byte or a count differs. Needs Go and redis-server.
set -eu
[ $# = 1 ] || { echo "usage: scripts/real.sh FILE" >&2; exit 2; }
case $1 in /*) file=$1 ;; *) file=$PWD/$1 ;; esac
cd "$(dirname "$0")/.."
exec go run ./cmd/xstreamq/internal/real "$file"
