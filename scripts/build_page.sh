#!/bin/sh
# Builds the page into the package; without npm, or a registry to ask, it says so and continues: the
# server then shows visitors how to build the page.
set -eu
cd "$(dirname "$0")/../web"

if ! command -v npm >/dev/null; then
    echo "make: the page was not built: npm is not installed"
    exit 0
fi
if ! test -d node_modules || test package-lock.json -nt node_modules; then
    echo "make: fetching the packages of the page, once …"
    npm ci --no-audit --no-fund --loglevel=error || {
        echo "make: the page was not built: its packages could not be fetched"
        exit 0
    }
    touch node_modules
fi
echo "make: building the page …"
npm run --silent build -- --logLevel warn
