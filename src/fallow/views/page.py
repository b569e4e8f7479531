"""Self-contained HTML pages: one template, one style sheet, everything escaped."""

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from fallow import __version__
from fallow.views.numbers import listed, number

STYLE_SHEET = Path(__file__).with_name("page.css")


def render_template(template: Path, **content: Any) -> str:
    """Fill a template with the common style sheet; only `Markup` is not escaped."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"number": number, "listed": listed}
    sheet = Markup(STYLE_SHEET.read_text(encoding="utf-8"))
    found = environment.from_string(template.read_text(encoding="utf-8"))
    return found.render(sheet=sheet, version=__version__, **content)
