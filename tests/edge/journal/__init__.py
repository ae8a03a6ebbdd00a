"""What is particular to each store of the journal."""
