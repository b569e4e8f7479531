#!/bin/sh
# Make a virtual environment and install Fallow into it.
#
#     sh tools/setup.sh .venv '.[test]'
#
# Works where pip may not touch the system Python, and where the system's Python comes
# without `ensurepip` (then the system's pip fills the environment from outside).
set -eu

venv=$1
what=$2

find_python() {
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
        then
            echo "$name"
            return
        fi
    done
    echo "setup: no Python 3.11 or newer found; set PYTHON=/path/to/python" >&2
    exit 1
}

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    rm -rf "$venv"
    if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        rm -rf "$venv"
        "$python" -m venv --without-pip "$venv"
        "$python" -m pip --python "$venv/bin/python" install --quiet pip
    fi
fi

echo "setup: installing $what into $venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint constraints.txt --editable "$what"
