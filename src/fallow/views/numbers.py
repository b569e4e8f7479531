"""Numbers as people read them."""


def number(value: float | None) -> str:
    """Two decimals, or a dash for what is not defined."""
    return "–" if value is None else f"{value:.2f}"


def listed(values: tuple[int, ...], most: int = 12) -> str:
    """Numbers separated by commas, the rest counted; a dash for none."""
    if not values:
        return "–"
    rest = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(str(value) for value in values[:most]) + rest
