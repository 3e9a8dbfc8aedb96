#!/bin/sh
# Makes the virtual environment. `.ready` is written last: without it the next call starts afresh, and a
# download that fails removes what was made, so that nothing half-made is left behind.
set -eu
PYTHON="${PYTHON:-python3}"
VENV="${VENV:-.venv}"
LOG="$(mktemp)"

fail() {
    rm -rf "$VENV"
    echo "setup: $1" >&2
    exit 2
}
trap 'rm -rf "$VENV" "$LOG"; exit 130' INT TERM

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "$PYTHON is missing or older than 3.11; install Python 3.11 or newer, or name one: make PYTHON=python3.12 setup"

rm -rf "$VENV"
echo "setup: making $VENV (once; one to two minutes, 900 MB)"
"$PYTHON" -m venv "$VENV" || fail "$PYTHON -m venv failed; on Debian and Ubuntu: apt-get install python3-venv"

if ! "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[local,dev]' >"$LOG" 2>&1; then
    wanted=$(grep -E 'No matching distribution|Could not fetch|Failed to download|Timeout|HTTPError' "$LOG" | tail -n 1)
    [ -n "$wanted" ] || wanted=$(grep -E 'ERROR' "$LOG" | tail -n 1)
    tail -n 20 "$LOG" >&2
    fail "${wanted:-pip failed}; check the connection to the package registry, then run make again"
fi
rm -f "$LOG"
touch "$VENV/.ready"
echo "setup: done"
