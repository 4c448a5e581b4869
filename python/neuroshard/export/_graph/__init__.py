"""Takes a traced graph apart, into lookups, ids and the dense part, and writes it as IR."""
