"""Suites that say what several implementations of one contract have in common."""
