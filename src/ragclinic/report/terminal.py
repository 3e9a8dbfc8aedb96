"""The terminal's verbs: `print_diagnosis` and `print_comparison`, each into a console it is given."""

from ragclinic.report.terminal_compare import print_comparison
from ragclinic.report.terminal_diagnosis import print_diagnosis

__all__ = ["print_comparison", "print_diagnosis"]
