"""A trained model for other systems: files of vectors, an ONNX graph, a nearest-neighbour index."""

# Importing them registers the exports.
from pslrec.recommender.exports import faiss_index, onnx_graph, vector_files  # noqa: F401
from pslrec.recommender.exports._base import EXPORTS, ExportOptions, export

__all__ = ["EXPORTS", "ExportOptions", "export"]
