"""What every package shares: records, errors, files, options, seeds, registries."""
