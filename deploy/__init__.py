"""Deployment descriptions, and what checks them."""
