"""Models by name or path: the bundled one, the fetched one, a GGUF file, or a folder in the Hugging Face layout."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from llminfer.basics.config import ModelConfig
from llminfer.basics.fetching import RELEASES
from llminfer.basics.gguf_files import read_gguf
from llminfer.basics.gguf_models import GgufTensors, config_from_gguf
from llminfer.basics.hugging_face import config_from_hugging_face
from llminfer.basics.hugging_face_weights import weights_from_hugging_face
from llminfer.basics.safetensors_files import SafetensorsFolder, read_json
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.tokenizer_files import tokenizer_from_folder, tokenizer_from_gguf
from llminfer.basics.transformer import Transformer

ASSETS = Path(__file__).parent.parent / "assets"
BUNDLED = {"tiny": "trained for this library on the text that comes with Python, Apache-2.0"}
DTYPES = ("float16", "float32", "float64")


@dataclass(frozen=True)
class AvailableModel:
    """A model that can be loaded by name. remedy says how to get it; size_bytes is that of its weights, 0 if absent."""

    name: str
    description: str
    path: Path
    present: bool
    size_bytes: int
    remedy: str


def available_models() -> list[AvailableModel]:
    """The models that have names, those that still have to be fetched included. Book section 3.1.1."""
    bundled = [
        _available(name, description, ASSETS / name, ASSETS / name / "model.safetensors", "reinstall llminfer")
        for name, description in BUNDLED.items()
    ]
    fetched = [
        _available(release.name, release.description, release.path, release.path, f"llminfer fetch {release.name}")
        for release in RELEASES.values()
    ]
    return bundled + fetched


def _available(name: str, description: str, path: Path, weights: Path, remedy: str) -> AvailableModel:
    size_bytes = weights.stat().st_size if weights.is_file() else 0
    return AvailableModel(name, description, path, size_bytes > 0, size_bytes, remedy)


def model_path(source: str | Path) -> Path:
    """The folder or file of a model, given its name or path.

    Raises FileNotFoundError when there is no such path, or the model of that name is not on this machine.
    """
    models = {model.name: model for model in available_models()}
    if str(source) in models:
        model = models[str(source)]
        if not model.present:
            raise FileNotFoundError(f"the model {model.name!r} is not on this machine; run: {model.remedy}")
        return model.path
    path = Path(source).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"there is no model called {str(source)!r} and no such path; there are the names {', '.join(models)}, "
            "a GGUF file, or a folder with config.json and model.safetensors"
        )
    return path


def load_model(source: str | Path, dtype: str = "float32") -> Transformer:
    """A model ready to run, its weights decoded to `dtype`: float16, float32 or float64.

    source: "tiny" (bundled), "smollm2" (after `llminfer fetch smollm2`), a GGUF file, or a folder in the Hugging Face
    layout. Raises FileNotFoundError when it is not there, and ValueError when it is damaged or of an unsupported kind.
    Book section 3.1.1.
    """
    return Transformer(*load_weights(source, dtype))


def load_weights(source: str | Path, dtype: str = "float32") -> tuple[ModelConfig, dict[str, np.ndarray]]:
    """What `load_model` makes its Transformer of: the config, and the weights as `parameters.weight_shapes` names them.

    Source and errors as for `load_model`.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    path = model_path(source)
    if path.is_dir():
        return _from_folder(path, dtype)
    file = read_gguf(_gguf(path))
    config = config_from_gguf(file, path.stem)
    tensors = GgufTensors(file, config)  # whatever the architecture, named as Hugging Face names those of a Llama
    return config, weights_from_hugging_face(config, tensors, "llama", dtype)


def load_tokenizer(source: str | Path) -> Tokenizer:
    """The tokenizer of a model; source and errors as for `load_model`. Book section 3.1.1."""
    path = model_path(source)
    if path.is_dir():
        return tokenizer_from_folder(path)
    return tokenizer_from_gguf(read_gguf(_gguf(path)).metadata, path.stem)


def _from_folder(folder: Path, dtype: str) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    described = folder / "config.json"
    if not described.is_file():
        raise FileNotFoundError(
            f"{folder} has no config.json; expected a GGUF file, or a folder as Hugging Face lays it out"
        )
    raw = read_json(described)
    if raw.get("quantization_config") is not None:
        raise ValueError(
            f"{described}: quantization_config: weights quantized this way are not read; take the 16-bit form"
        )
    config = config_from_hugging_face(raw, folder.name, str(described))
    return config, weights_from_hugging_face(config, SafetensorsFolder(folder), raw["model_type"], dtype)


def _gguf(path: Path) -> Path:
    if path.suffix in (".safetensors", ".json"):
        raise ValueError(f"{path} is one file of a model; give its folder, {path.parent}")
    return path
