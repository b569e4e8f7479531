"""One new rule, condition, task, log format and agent, a file each.

Importing a file registers what it defines. CONTRIBUTING.md explains each step, and
tests/repo/test_extending.py lists, runs and reports all five.
"""
