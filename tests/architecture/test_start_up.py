"""What a training may not import: packages that take half a second each and that it does not use."""

import subprocess
import sys

TRAINING = """
import sys
from pslrec import Recommender
from pslrec.data import load_interactions

Recommender(epochs=1, dimension=4, k_core=10, verbose=False).fit(load_interactions("synthetic"))
print(*sorted({name.partition(".")[0] for name in sys.modules} | set(sys.modules) & {"scipy.stats"}))
"""
# The first for tests of significance, the second torch's algebra of shapes, the third for studies.
NEEDLESS = {"scipy.stats", "sympy", "optuna"}


def test_a_training_imports_no_package_that_it_does_not_use():
    done = subprocess.run(
        [sys.executable, "-c", TRAINING], capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.split())
    assert "torch" in imported
    assert not imported & NEEDLESS
