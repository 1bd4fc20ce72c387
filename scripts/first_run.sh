#!/bin/sh
# One whole turn with the demo agent, in a folder that is thrown away, whatever is set up here.
set -eu
dragoman=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '# A scratch project\n\nNothing in here matters.\n' > "$folder/README.md"
echo '{}' > "$folder/.settings.json"
DRAGOMAN_HOME="$folder/.dragoman" DRAGOMAN_SETTINGS="$folder/.settings.json" "$dragoman" -a demo --cwd "$folder" --yolo \
    "Improve @README.md a little and show me what you did"
cat <<'NEXT'

Next: make run ARGS='--help' shows everything; put your own agent into ~/.config/dragoman/settings.json
Then: make run ARGS='-a NAME "fix the failing test"', or import dragoman in Python (see README.md)
NEXT
