"""`python -m ragclinic.cli`."""

from ragclinic.cli import main

main()
