"""Storage that is not there: what provisioners, attachers and resizers of drivers do to objects."""
