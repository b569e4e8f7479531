"""`python -m fallow` is the program `fallow`."""

from fallow.cli import console

if __name__ == "__main__":
    console()
