"""A trained model for other systems: vectors in common files, a graph for ONNX, an index for nearest-neighbour search."""

from pslrec.recommender.exports import faiss_index, onnx_graph, vector_files  # noqa: F401 - they register themselves
from pslrec.recommender.exports._base import EXPORTS, ExportOptions, export

__all__ = ["EXPORTS", "ExportOptions", "export"]
