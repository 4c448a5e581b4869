"""Results as tables for people, JSON for programs, and an HTML report."""
