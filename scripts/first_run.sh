#!/bin/sh
# One whole turn with the demo agent, in a folder that is thrown away, whatever is set up here.
set -eu
dragoman=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '# A scratch project\n\nNothing in here matters.\n' > "$folder/README.md"
echo '{}' > "$folder/.settings.json"
export DRAGOMAN_HOME="$folder/.dragoman" DRAGOMAN_SETTINGS="$folder/.settings.json"
cd "$folder"
"$dragoman" -a demo --session try --yolo "Improve @README.md a little and show me what you did"
echo
echo "What the turn changed (dragoman sessions changes try):"
"$dragoman" sessions changes try
echo
echo "And undone (dragoman sessions revert try):"
"$dragoman" sessions revert try
cat <<'NEXT'

Next: make run ARGS='agents add NAME -- COMMAND' adds your own agent; ARGS='--help' shows everything
Then: make run ARGS='-a NAME "fix the failing test"', or import dragoman in Python (see README.md)
NEXT
