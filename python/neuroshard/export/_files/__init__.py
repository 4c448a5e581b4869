"""Saves and loads exported models."""
