"""The commands of neuroshard, a module each; cli/_app.py imports the one that runs."""
