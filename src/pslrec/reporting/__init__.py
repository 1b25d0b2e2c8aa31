"""Reports: one self-contained HTML file about a run, a comparison of runs, or a reproduction."""

from pslrec.reporting.reproduction import reproduction_report
from pslrec.reporting.runs import run_report

__all__ = ["reproduction_report", "run_report"]
