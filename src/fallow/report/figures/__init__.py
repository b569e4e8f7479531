"""The figures of a study, one file each; every function returns a figure."""
