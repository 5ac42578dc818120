"""`python -m partway` is the command line, so `accelerate launch -m partway train ...` works."""

from partway.cli import main

if __name__ == "__main__":
    main()
