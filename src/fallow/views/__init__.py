"""One look for every figure and page: plot style, page template, number formats."""
