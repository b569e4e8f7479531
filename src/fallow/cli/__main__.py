"""`python -m fallow.cli`."""

import sys

from fallow.cli.main import main

sys.exit(main())
