"""Tests of the connection lab."""
