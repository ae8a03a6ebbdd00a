"""The connection lab: a page on which a person breaks real connections and processes, and watches.

A tool of this repository, like its tests: no wheel and no image holds it, and what ships never imports it.
"""
