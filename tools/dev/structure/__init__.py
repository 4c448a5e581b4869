"""The rules on files, includes and imports that check_structure.py checks."""
