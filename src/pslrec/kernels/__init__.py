"""The engine room: fused operations in C++, each beside a plain twin that is the truth.

Functions take arrays, `Rows` and numbers; which batches these come from is the caller's business.
"""

from pslrec.kernels._adam import AdamRule, AdamTable, takes_adam
from pslrec.kernels._catalog import (
    TOLERANCE,
    CatalogLists,
    CatalogPass,
    PositiveWeighting,
    catalog_log_sums,
    catalog_row_values,
    row_gradients,
    takes_catalog,
)
from pslrec.kernels._devices import DEVICE_NAMES, device_named, devices_here, is_device_name
from pslrec.kernels._elastic_nets import elastic_nets
from pslrec.kernels._log_sum import sampled_log_sum, takes_sampled
from pslrec.kernels._native import IS_COMPILED, WHY_NOT_COMPILED, instruction_set, openmp_threads
from pslrec.kernels._negatives import draw_negatives
from pslrec.kernels._products import (
    HAS_FASTER_PRODUCTS,
    times,
    times_transposed,
    transposed_times,
)
from pslrec.kernels._row_noise import add_row_noise
from pslrec.kernels._sampled import runs_compiled, sampled_scores
from pslrec.kernels._sparse_product import CompressedRows, sparse_product
from pslrec.kernels._sparse_sums import (
    add_sparse_product,
    dense_product,
    largest_of_product,
)
from pslrec.kernels._top_k import HIDDEN, NOT_NUMBERS, rows_at_once, top_k
from pslrec.kernels._torch_catalog import (
    Products,
    TorchPass,
    divided_catalog_value,
    takes_torch,
    torch_catalog_value,
)
from pslrec.kernels._torch_operations import has_rows_for, torch_row_values
from pslrec.kernels._torch_rows import rows_of_candidates

__all__ = [
    "DEVICE_NAMES",
    "HAS_FASTER_PRODUCTS",
    "HIDDEN",
    "IS_COMPILED",
    "NOT_NUMBERS",
    "TOLERANCE",
    "WHY_NOT_COMPILED",
    "AdamRule",
    "AdamTable",
    "CatalogLists",
    "CatalogPass",
    "CompressedRows",
    "PositiveWeighting",
    "Products",
    "TorchPass",
    "add_row_noise",
    "add_sparse_product",
    "catalog_log_sums",
    "catalog_row_values",
    "dense_product",
    "device_named",
    "devices_here",
    "divided_catalog_value",
    "draw_negatives",
    "elastic_nets",
    "has_rows_for",
    "instruction_set",
    "is_device_name",
    "largest_of_product",
    "openmp_threads",
    "row_gradients",
    "rows_at_once",
    "rows_of_candidates",
    "runs_compiled",
    "sampled_log_sum",
    "sampled_scores",
    "sparse_product",
    "takes_adam",
    "takes_catalog",
    "takes_sampled",
    "takes_torch",
    "times",
    "times_transposed",
    "top_k",
    "torch_catalog_value",
    "torch_row_values",
    "transposed_times",
]
