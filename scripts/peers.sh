#!/usr/bin/env bash
# Measures jobledger beside what people would use instead: builds all of it into a scratch folder, gives
# everybody a turn in each of five rounds, and prints one table of ratios. Takes some minutes, on a machine
# that should do nothing else. Needs Go, gcc, libsqlite3-dev, PostgreSQL with pgbench, and python3.
# PEERS_FOLDER names the folder for the scratch folder, on the disk to be measured; arguments go to peers.py.
set -euo pipefail
cd "$(dirname "$0")/.."

for tool in go gcc python3 pgbench psql; do
  command -v "$tool" >/dev/null || { echo "peers: $tool is missing" >&2; exit 1; }
done
folder=$(mktemp -d "${PEERS_FOLDER:-${TMPDIR:-/tmp}}/jobledger-peers.XXXXXX")
export TMPDIR=$folder # the scratch ledgers lie on the same disk as all others
trap 'rm -rf "$folder"' EXIT

go build -o "$folder/jobledger" .
gcc -O2 -o "$folder/limit" internal/bench/peers/limit/limit.c -lsqlite3
(cd internal/bench/peers && go test -c -o "$folder/mattn.test" .)
python3 internal/bench/peers/peers.py "$folder" "$@"
