"""Tests of edge.static."""
