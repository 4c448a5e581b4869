"""A model of sequences: which item comes next. README.md in this folder."""
