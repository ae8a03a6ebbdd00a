"""Tests of ``edge.sessions``, in virtual time."""
