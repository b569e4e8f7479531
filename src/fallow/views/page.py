"""Self-contained HTML pages: one base template and style sheet, everything escaped."""

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from fallow import __version__
from fallow.core.text import counted, sentence

FOLDER = Path(__file__).parent
"""Of `base.html`, which the templates of pages extend, and the style sheet."""


def render_template(template: Path, **content: Any) -> str:
    """Fill a template with the common style sheet; only `Markup` is not escaped."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(FOLDER),
    )
    environment.filters |= {"sentence": sentence, "counted": counted}
    sheet = Markup((FOLDER / "page.css").read_text(encoding="utf-8"))
    found = environment.from_string(template.read_text(encoding="utf-8"))
    return found.render(sheet=sheet, version=__version__, **content)
