"""The tensors of a folder in the Hugging Face layout: one model.safetensors, or shards and an index that names them.

The safetensors library reads the bytes; here it is kept to files inside the folder and to floating-point tensors.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with NumPy, which safetensors then finds by name
import numpy as np
from safetensors import SafetensorError, safe_open

from llminfer.basics.weight_reading import Shape

DTYPES = ("F16", "BF16", "F32", "F64")
LARGEST_JSON_BYTES = 100_000_000


class SafetensorsFolder:
    """A `TensorSource` over all safetensors files of a folder.

    Raises FileNotFoundError when there are none, and ValueError when a file is damaged, leads out of the folder, or
    does not hold what the index says.
    """

    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        self.shapes: dict[str, Shape] = {}
        self._files: dict[str, Path] = {}
        index = folder / "model.safetensors.index.json"
        if (folder / "model.safetensors").is_file():
            self._add(folder / "model.safetensors")
        elif index.is_file():
            self._add_shards(folder, index)
        else:
            raise FileNotFoundError(f"{folder} has neither model.safetensors nor model.safetensors.index.json")

    def load(self, name: str) -> np.ndarray:
        """One tensor, in the dtype of the file."""
        with _opened(self._files[name]) as file:
            dtype = file.get_slice(name).get_dtype()
            if dtype not in DTYPES:
                raise ValueError(
                    f"{self._files[name]}: tensor {name} is of type {dtype}; supported: {', '.join(DTYPES)}"
                )
            return file.get_tensor(name)

    def _add(self, path: Path) -> None:
        with _opened(path) as file:
            for name in file.keys():
                if name in self._files:
                    raise ValueError(f"{path}: tensor {name} is also in {self._files[name]}")
                self.shapes[name] = tuple(file.get_slice(name).get_shape())
                self._files[name] = path

    def _add_shards(self, folder: Path, index: Path) -> None:
        weight_map = read_json(index).get("weight_map")
        if not isinstance(weight_map, dict) or not all(isinstance(shard, str) for shard in weight_map.values()):
            raise ValueError(f"{index}: weight_map must be an object of tensor name: file name")
        for shard in sorted(set(weight_map.values())):
            if not _is_plain_name(shard) or not shard.endswith(".safetensors"):
                raise ValueError(f"{index}: weight_map names {shard!r}; expected a .safetensors file beside the index")
            if not (folder / shard).is_file():
                raise ValueError(f"{index}: the shard {shard} is missing from {folder}")
            self._add(folder / shard)
        missing = sorted(set(weight_map) - set(self.shapes))
        if missing:
            raise ValueError(f"{index}: tensor {missing[0]} is in none of the shards it names")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises ValueError when the file is no such thing."""
    if path.stat().st_size > LARGEST_JSON_BYTES:
        raise ValueError(f"{path}: {path.stat().st_size} bytes; expected at most {LARGEST_JSON_BYTES}")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as problem:  # bad JSON, bad UTF-8, or brackets nested without end
        raise ValueError(f"{path}: not valid JSON: {problem}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object, got a {type(value).__name__}")
    return value


def _is_plain_name(name: str) -> bool:
    """Whether a name stays in its folder on every platform: no separators, no drive, no way up."""
    return name not in ("", ".", "..") and not set(name) & set("/\\:\0")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """`safe_open`, whose complaints become ValueErrors that name the file."""
    try:
        file = safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as problem:
        raise ValueError(f"{path}: not a readable safetensors file: {problem}") from None
    with file:
        yield file
