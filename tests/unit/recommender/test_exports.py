"""What other systems read must rank as the model does."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from pslrec import Recommender
from pslrec.data._synthetic import TasteModel, planted_tastes
from pslrec.errors import ConfigError, MissingExtraError, UnknownNameError
from pslrec.inference import TrainedModel
from pslrec.recommender.exports import ExportOptions, export


@pytest.fixture(scope="module", params=["mf", "history"])
def model(request: pytest.FixtureRequest) -> TrainedModel:
    log = planted_tastes(60, 40, model=TasteModel(n_topics=3), seed=1).interactions
    recommender = Recommender(
        "sl", backbone=request.param, epochs=1, dimension=8, negatives="catalog"
    )
    return recommender.fit(log).model_


def scores_of(users: np.ndarray, items: np.ndarray, model: TrainedModel) -> None:
    np.testing.assert_allclose(
        users @ items.T, (model.user_vectors @ model.item_vectors.T).numpy(), atol=1e-6
    )


def test_safetensors_hold_vectors_and_ids(model: TrainedModel, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    found = export(model, "safetensors", tmp_path)
    tensors = safetensors.load_file(tmp_path / "vectors.safetensors")
    scores_of(tensors["users"], tensors["items"], model)
    assert pl.read_parquet(tmp_path / "items.parquet")["id"].equals(model.items.series)
    assert json.loads((tmp_path / "export.json").read_text()) == found
    assert (found["loss"], found["items"]) == ("sl", 40)


def test_npz_needs_no_pickle(model: TrainedModel, tmp_path: Path) -> None:
    export(model, "npz", tmp_path)
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        scores_of(arrays["user_vectors"], arrays["item_vectors"], model)
        assert arrays["item_ids"].tolist() == model.items.series.to_list()


def test_parquet_has_a_vector_beside_each_id(model: TrainedModel, tmp_path: Path) -> None:
    export(model, "parquet", tmp_path)
    frames = [pl.read_parquet(tmp_path / f"{kind}.parquet") for kind in ("users", "items")]
    scores_of(*(np.array(frame["vector"].to_list()) for frame in frames), model)
    assert frames[0]["id"].equals(model.users.series)


def test_onnx_ranks_as_the_model_does(model: TrainedModel, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    export(model, "onnx", tmp_path, ExportOptions(k=5))
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    users = np.array([3, 0], dtype=np.int64)
    hidden = np.zeros((2, model.n_items), dtype=bool)
    hidden[model.seen.positions(users)] = True
    items, scores = session.run(["items", "scores"], {"users": users, "hidden": hidden})
    top = model.recommend(torch.from_numpy(users), 5)
    assert items.tolist() == top.items.tolist()
    np.testing.assert_allclose(scores, top.scores, rtol=1e-5)


@pytest.mark.parametrize("index", ["flat", "ivf", "hnsw"])
def test_the_recall_of_an_index_is_what_a_search_finds(
    model: TrainedModel, tmp_path: Path, index: str
) -> None:
    faiss = pytest.importorskip("faiss")
    found = export(model, "faiss", tmp_path, ExportOptions(k=5, index=index))  # type: ignore[arg-type]
    loaded = faiss.read_index(str(tmp_path / "items.faiss"))
    lists = loaded.search(np.load(tmp_path / "users.npy"), 5)[1]
    exact = model.recommend(torch.arange(model.n_users), 5, exclude_seen=False).items.numpy()
    recall = np.mean(
        [len(set(one) & set(other)) / 5 for one, other in zip(lists, exact, strict=True)]
    )
    assert found["recall"] == pytest.approx(recall)
    assert recall > (0.4 if index == "ivf" else 0.99)


def test_a_missing_package_names_its_extra(
    model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pslrec\[ann\]"):
        export(model, "faiss", tmp_path / "one")
    with pytest.raises(MissingExtraError, match=r"pslrec\[onnx\]"):
        export(model, "onnx", tmp_path / "two")


def test_an_unknown_format_and_a_full_directory_are_refused(
    model: TrainedModel, tmp_path: Path
) -> None:
    with pytest.raises(UnknownNameError, match="unknown export `pickle`"):
        export(model, "pickle", tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        export(model, "npz", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="below cannot be written: file exists"):
        export(model, "npz", tmp_path / "file" / "below")
    with pytest.raises(ConfigError, match="`index` must be flat, ivf or hnsw"):
        ExportOptions(index="tree")  # type: ignore[arg-type]
