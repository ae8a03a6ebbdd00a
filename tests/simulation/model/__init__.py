"""An explicit-state model of the slot log: every order of every fault, within small bounds."""
