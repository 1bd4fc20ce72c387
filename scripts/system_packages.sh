#!/bin/sh
# Installs what some tests need of the system and a package manager can bring; without it they say
# so and are skipped. Quiet and quick when everything is there.
set -eu

missing=""
command -v tmux >/dev/null || missing="$missing tmux"
command -v chromium >/dev/null || missing="$missing chromium"
command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 ||
    missing="$missing postgresql"
test -n "$missing" || exit 0

if command -v apt-get >/dev/null && test "$(id -u)" = 0; then
    # shellcheck disable=SC2086 # the names are words
    { apt-get update && apt-get install --yes --no-install-recommends $missing; } >/dev/null 2>&1 ||
        echo "make test: could not install$missing; the tests that need it are skipped"
else
    echo "make test: without$missing some tests are skipped"
fi
