"""Tests of the edge, room by room."""
