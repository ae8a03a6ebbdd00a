"""Tests of the agent runtime. They mirror its modules."""
