"""The command line, one file a command."""

from fallow.cli.main import main

__all__ = ["main"]
