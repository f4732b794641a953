"""Models by name or path: the bundled one, the fetched one, a GGUF file, a folder in the Hugging Face layout."""

from pathlib import Path

import numpy as np

from llminfer.basics.config import ModelConfig
from llminfer.basics.hugging_face import config_from_hugging_face
from llminfer.basics.hugging_face_weights import weights_from_hugging_face
from llminfer.basics.safetensors_files import SafetensorsFolder, read_json


def load_weights(source: str | Path, dtype: str = "float32") -> tuple[ModelConfig, dict[str, np.ndarray]]:
    folder = Path(source)
    raw = read_json(folder / "config.json")
    config = config_from_hugging_face(raw, folder.name, str(folder / "config.json"))
    return config, weights_from_hugging_face(config, SafetensorsFolder(folder), raw["model_type"], dtype)


def load_model(source: str | Path, dtype: str = "float32"):
    from llminfer.basics.transformer import Transformer

    return Transformer(*load_weights(source, dtype))
