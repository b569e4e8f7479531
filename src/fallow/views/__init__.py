"""The style of every figure, page and table: plots, templates, numbers, terminals."""
