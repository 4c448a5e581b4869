"""Measures how devices exchange data, for the cost models of communication."""
