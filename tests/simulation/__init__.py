"""The production classes on a seeded loop in virtual time, under every fault that we can stage."""
