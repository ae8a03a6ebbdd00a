"""The contract of the journal, proved for every store."""
