"""Tests of what an author tests agents with."""
