"""The real page in a real browser."""
