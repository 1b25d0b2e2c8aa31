"""`python -m pslrec`, as torchrun starts its workers."""

from pslrec.cli import main

if __name__ == "__main__":
    main()
