"""Findings, tables, figures and pages of studies."""
