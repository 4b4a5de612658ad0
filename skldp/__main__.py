"""``python -m skldp`` is the command line."""

from skldp.cli import main

if __name__ == "__main__":
    main()
