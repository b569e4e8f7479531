#!/bin/sh
# Fill a folder with what a machine without network needs to train, jax apart.
#
#     sh tools/wheels.sh wheels 3.12
#
# There, with a jax for its accelerator already installed:
#
#     python3 -m pip install --no-index --no-deps --target site wheels/*.whl
#     PYTHONPATH=site python3 -m fallow.cli train --help
#
# Tasks need no model files beside these: their bodies are in the package.
set -eu

folder=${1:-wheels}
version=${2:-3.12}
python=${PYTHON:-python3}

mkdir -p "$folder"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$folder" .
grep -iE '^(absl-py|docstring.parser|equinox|etils|filelock|jaxtyping|markdown-it-py|mdurl|mujoco|optax|pygments|rich|safetensors|threadpoolctl|typeguard|typing_extensions|tyro|wadler_lindig)==' \
    constraints.txt > "$folder/names.txt"
"$python" -m pip download --quiet --no-deps --only-binary=:all: \
    --python-version "$version" --dest "$folder" --requirement "$folder/names.txt"
rm "$folder/names.txt"
echo "$folder: $(ls "$folder" | wc -l) wheels for Python $version"
