"""Tables whose ids are any numbers of 64 bits: a map gives each id a row (docs/dynamic-ids.md)."""
