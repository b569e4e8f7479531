"""The style of every figure and page: plot style, page template, number formats."""
