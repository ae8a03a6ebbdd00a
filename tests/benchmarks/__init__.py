"""Benchmarks: what a delivered event costs, beside the recipe that the edge replaces. Nothing is asserted."""
