"""Tests of edge.wire."""
