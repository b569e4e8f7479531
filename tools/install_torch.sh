#!/bin/sh
# Install a CPU build of PyTorch into a virtual environment.
#
#     sh tools/install_torch.sh .venv-extras torch==2.13.0+cpu
#
# From PyTorch's own index if it can be reached, else from what pip is set up to use.
# TORCH_OPTIONS are options for pip, which then asks nowhere else.
set -eu

python=$1/bin/python
torch=$2
index=https://download.pytorch.org/whl/cpu
look="import urllib.request as r; r.urlopen('$index/torch/', timeout=10).close()"

options=${TORCH_OPTIONS:-}
if [ -z "$options" ]; then
    if "$python" -c "$look" 2>/dev/null; then
        options="--extra-index-url $index"
    else
        echo "setup: $index cannot be reached; looking for $torch where pip looks" >&2
    fi
fi
# shellcheck disable=SC2086 (several options)
if ! "$python" -m pip install --quiet --disable-pip-version-check $options "$torch"; then
    cat >&2 <<END
setup: $torch was not found. Either reach $index,
or name a folder that has its wheel: make test-extras TORCH_OPTIONS='--find-links FOLDER',
or take the default build of PyPI, some gigabytes: make test-extras TORCH=${torch%+cpu}
END
    exit 1
fi
