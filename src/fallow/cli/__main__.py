"""`python -m fallow.cli`."""

from fallow.cli import console

console()
