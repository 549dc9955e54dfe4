"""`make cases`: which rows of the source inventories and which reported faults are covered, and by what."""
