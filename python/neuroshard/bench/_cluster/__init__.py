"""Hosts that are emulated on one machine."""
