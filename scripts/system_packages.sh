#!/bin/sh
# Installs what some tests need of the system and a package manager can bring; without it they say
# so and are skipped. Quiet and quick when everything is there.
set -eu

have() { command -v "$1" >/dev/null; }
offers() { have apt-cache && apt-cache show "$1" >/dev/null 2>&1; }

missing=""
have tmux || missing="$missing tmux"
have postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ||
    missing="$missing postgresql"

# Chromium without windows does the same in less than half the time.
if have chromium-headless-shell; then :
elif offers chromium-headless-shell; then missing="$missing chromium-headless-shell"
elif ! have chromium; then missing="$missing chromium"
fi
test -n "$missing" || exit 0

if have apt-get && test "$(id -u)" = 0; then
    # shellcheck disable=SC2086 # the names are words
    { apt-get update && apt-get install --yes --no-install-recommends $missing; } >/dev/null 2>&1 ||
        echo "make test: could not install$missing; the tests that need it are skipped"
else
    echo "make test: without$missing some tests are skipped or slower"
fi
