#!/bin/sh
# Build a wheel and use it outside the clone, in an environment of its own.
#
#     sh tools/try_wheel.sh
#     PYTHON=python3.13 sh tools/try_wheel.sh
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH

"$python" -m venv "$folder/venv"
pip="$folder/venv/bin/python -m pip --quiet --disable-pip-version-check"
$pip wheel --no-deps --wheel-dir "$folder" "$root"
$pip install --constraint "$root/constraints.txt" "$folder"/fallow-*.whl
cd "$folder"
PATH="$folder/venv/bin:$PATH"

fallow
fallow --version
fallow list --json > names.json
fallow demo --walker
fallow simulate cartpole-swingup --condition gain --episodes 60 --out h.fallow
fallow diagnose h.fallow --html page.html
test -s page.html

# what an error says to install is enough
if fallow study demo --dry-run 2> error.txt; then exit 1; fi
cat error.txt
command=$(sed -n 's/.*install with //p' error.txt)
eval "PIP_CONSTRAINT='$root/constraints.txt' $command --quiet"
fallow study demo --dry-run
echo "wheel: works on $(python --version) outside the clone"
