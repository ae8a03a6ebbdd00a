"""Tests of the edge's gRPC side."""
