"""The file of measured exchanges, and the closed form fitted to it."""
