"""Tests of edge.web."""
