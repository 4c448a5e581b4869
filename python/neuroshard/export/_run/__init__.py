"""Compiles an exported model and runs it on in-process devices."""
