"""Engines, which run a collection's plan on a rank, and the operators that call them."""
