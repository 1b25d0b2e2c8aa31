"""Kernels on tensors without rows, columns or entries: an empty result or an exception, never the end of the process."""

import subprocess
import sys

import pytest
import torch

from pslrec.kernels import _top_k as module
from pslrec.kernels._top_k import top_k

# Each line is a call; `n` rows, `m` items, `d` columns and `k` candidates take the values 0, 1 and 3.
CALLS = {
    "top_k": "top_k(torch.randn(n, m), max(k, 1))",
    "top_k of doubles": "top_k(torch.randn(n, m, dtype=torch.float64), max(k, 1))",
    "native top_k": (
        "native and native.top_k(torch.randn(n, m).numpy(), torch.empty(n, min(k, m)).numpy(), columns(n, min(k, m)))"
    ),
    "sampled_scores": "sampled_scores(randn(n, d), randn(m, d), candidates(n, m, k)).sum().backward()",
    "sampled_log_sum": (
        "sampled_log_sum(randn(n, d), randn(m, d), candidates(n, m, k), surrogate='relu', exponent=2.0, scale=0.5)"
        ".sum().backward()"
    ),
    "add_row_noise": "add_row_noise(torch.randn(n, d), key=3, length=0.1)",
    "sparse_product": "sparse_product(matrix(n, m), matrix(n, m).transposed(), randn(m, d).double())",
    "draw_negatives": (
        "draw_negatives(torch.zeros(n, 1 + k, dtype=torch.int32), torch.zeros(n, dtype=torch.int32),"
        " key=5, pairs=torch.arange(n), taken=Rows.empty(3), n_items=m) if m else None"
    ),
    "adam": "adam(n, d, k)",
}
PROGRAM = """
import itertools, sys, torch
from scipy.sparse import csr_matrix
from pslrec.kernels._adam import AdamRule, AdamTable, takes_adam
from pslrec.kernels._log_sum import sampled_log_sum
from pslrec.kernels._native import native
from pslrec.kernels._negatives import draw_negatives
from pslrec.kernels._row_noise import add_row_noise
from pslrec.kernels._sampled import sampled_scores
from pslrec.kernels._sparse_product import CompressedRows, sparse_product
from pslrec.kernels._top_k import top_k
from pslrec.rows import Rows

def randn(*shape): return torch.randn(*shape, requires_grad=True).detach().requires_grad_() * 1.0
def columns(n, k): return torch.zeros(n, k, dtype=torch.int64).numpy()
def candidates(n, m, k): return torch.zeros(n, k if m else 0, dtype=torch.int32)
def matrix(n, m): return CompressedRows.from_scipy(csr_matrix((n, m)))
def adam(n, d, k):
    table = AdamTable(torch.randn(n, d), is_normalized=True)
    if takes_adam(table.table):
        chosen = torch.arange(min(n, k))
        table.update(chosen, table.fetch(chosen, AdamRule(0.1), 1), AdamRule(0.1), 1)
        table.update_all(torch.randn(n, d), AdamRule(0.1), 2)
        table.catch_up(AdamRule(0.1), 3)

for call in sys.argv[1:]:
    n_answers = 0
    for n, m, d, k in itertools.product((0, 1, 3), repeat=4):
        print(call, "with", n, m, d, k, flush=True)
        try:
            eval(call)
        except (ValueError, IndexError):
            continue
        n_answers += 1
    assert n_answers > 10, call
print("survived")
"""


def test_no_empty_shape_ends_the_process() -> None:
    # In a process of its own, which may end; one for all calls, as starting it takes longest.
    command = [sys.executable, "-c", PROGRAM, *CALLS.values()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"at {done.stdout.splitlines()[-1:]}: {done.stderr}"
    assert done.stdout.endswith("survived\n")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_rows_without_columns_have_empty_lists(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, is_compiled: bool, n_rows: int
) -> None:
    if not is_compiled:
        monkeypatch.setattr(module, "_compiled", None)
    values, columns = top_k(torch.empty(n_rows, 0, dtype=dtype), 3)
    assert (values.shape, columns.shape) == ((n_rows, 0), (n_rows, 0))
    assert columns.dtype == torch.int64
