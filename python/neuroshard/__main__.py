"""python -m neuroshard: the command neuroshard."""

from neuroshard.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
