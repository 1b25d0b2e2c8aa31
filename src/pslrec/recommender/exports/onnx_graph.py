"""An ONNX graph from user rows to ranked items, for runtimes without Python."""

from pathlib import Path
from typing import Any

import numpy as np

from pslrec.errors import ConfigError, MissingExtraError
from pslrec.files import write_bytes
from pslrec.inference import TrainedModel
from pslrec.recommender.exports._base import EXPORTS, ExportOptions, write_both_ids

# Not the newest ones: runtimes from 2022 on read these.
OPSET = 17
IR_VERSION = 8


@EXPORTS.register("onnx")
def export_onnx(model: TrainedModel, path: Path, options: ExportOptions) -> dict[str, Any]:
    """Write `model.onnx`, which gives the `k` best items of users and their scores.

    Inputs are `users` (rows, int64) and `hidden` (users x items, bool), outputs are `items` (rows)
    and `scores`. The graph does not know what a user has seen: `hidden` has to say it.

    Args:
        model: the trained model.
        path: directory to write to.
        options: `k`, the length of the lists.
    """
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError:
        raise MissingExtraError("onnx", "onnx") from None
    # `TopK` refuses to take more than there are.
    k = min(options.k, model.n_items)
    constants = {
        "user_vectors": model.user_vectors.numpy(),
        # Transposed here, so that the graph need not do it for every request.
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
    inputs = [
        helper.make_tensor_value_info("users", TensorProto.INT64, ["n"]),
        helper.make_tensor_value_info("hidden", TensorProto.BOOL, ["n", model.n_items]),
    ]
    outputs = [
        helper.make_tensor_value_info("items", TensorProto.INT64, ["n", k]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", k]),
    ]
    graph = helper.make_graph(
        nodes,
        "pslrec",
        inputs=inputs,
        outputs=outputs,
        initializer=[numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = helper.make_opsetid("", OPSET)
    onnx_model = helper.make_model(graph, opset_imports=[opset], producer_name="pslrec")
    onnx_model.ir_version = IR_VERSION
    # A mistake should be found here, not in the system that loads the graph.
    checker.check_model(onnx_model)
    write_bytes(path / "model.onnx", onnx_model.SerializeToString(), error=ConfigError)
    write_both_ids(model, path)
    return {"files": ["model.onnx", "users.parquet", "items.parquet"], "k": k}
