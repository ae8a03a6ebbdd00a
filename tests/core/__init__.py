"""Tests of the edge's pure core: one file per module, no clock but their own."""
