"""An ONNX graph from user vectors to ranked items, for runtimes without Python."""

from pathlib import Path
from typing import Any

import numpy as np

from pslrec.errors import ConfigError, MissingExtraError
from pslrec.files import write_bytes
from pslrec.inference import TrainedModel
from pslrec.recommender.exports._base import EXPORTS, ExportOptions, write_both_ids

OPSET = 17
IR_VERSION = 8  # which runtimes from 2022 on read


@EXPORTS.register("onnx")
def export_onnx(model: TrainedModel, path: Path, options: ExportOptions) -> dict[str, Any]:
    """`model.onnx`: from `users` (rows, int64) and `hidden` (users x items, bool) to `items` (rows) and `scores`, k of each.

    Nothing is left out by itself: `hidden` says what a user has seen.
    """
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx") from None
    k = min(options.k, model.n_items)
    constants = {
        "user_vectors": model.user_vectors.numpy(),
        "item_columns": np.ascontiguousarray(model.item_vectors.numpy().T),
        "k": np.array([k], dtype=np.int64),
        "lowest": np.array(np.finfo(np.float32).min, dtype=np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["user_vectors", "users"], ["vectors"], axis=0),
        helper.make_node("MatMul", ["vectors", "item_columns"], ["all_scores"]),
        helper.make_node("Where", ["hidden", "lowest", "all_scores"], ["shown_scores"]),
        helper.make_node("TopK", ["shown_scores", "k"], ["scores", "items"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "pslrec",
        inputs=[
            helper.make_tensor_value_info("users", TensorProto.INT64, ["n"]),
            helper.make_tensor_value_info("hidden", TensorProto.BOOL, ["n", model.n_items]),
        ],
        outputs=[
            helper.make_tensor_value_info("items", TensorProto.INT64, ["n", k]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", k]),
        ],
        initializer=[numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="pslrec"
    )
    made.ir_version = IR_VERSION
    checker.check_model(made)
    write_bytes(path / "model.onnx", made.SerializeToString(), error=ConfigError)
    write_both_ids(model, path)
    return {"files": ["model.onnx", "users.parquet", "items.parquet"], "k": k}
