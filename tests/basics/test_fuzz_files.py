"""Thousands of damaged files: each is read or refused with a ValueError, quickly and without memory for what it claims.

The mutations are those of accidents and of ill will: flipped bits, cut ends, spliced pieces, and lengths overwritten
with values that are huge or just one too large. The seed is fixed, so a failure comes back. The files are read in a
process of their own, without the run-time check of shapes, which would make the thousands hundreds.
"""

import json
import os
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter, quants
from safetensors.numpy import save_file

from llminfer.basics.checkpoints import load_weights

ROOT = Path(__file__).parents[2]
MUTATIONS = 1000  # for each of three kinds of file
MOST_MEMORY = 1_000_000  # the files have 11 kB at most; no claim in them may cost more than this
LONGEST_S = 300  # only a file that makes the reader hang takes this long
LENGTHS = (0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1)


def small_gguf(path) -> None:
    """A whole small Llama, with text, numbers, arrays and blocks of Q8_0 in it."""
    writer, rng = GGUFWriter(path, "llama"), np.random.default_rng(0)
    for key, value in dict(block_count=1, context_length=16, embedding_length=32, feed_forward_length=32).items():
        writer.add_uint32(f"llama.{key}", value)
    writer.add_head_count(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list(["a", "bc", "ü", "🙂"] * 8)
    writer.add_token_types([1, 3] * 16)
    writer.add_array("nested", [[1, 2], [3]])
    layer = {"attn_q": 32, "attn_k": 32, "attn_v": 32, "attn_output": 32, "ffn_gate": 32, "ffn_up": 32, "ffn_down": 32}
    shapes = {"token_embd": (32, 32), "output_norm": (32,), "blk.0.attn_norm": (32,), "blk.0.ffn_norm": (32,)}
    shapes |= {f"blk.0.{name}": (width, 32) for name, width in layer.items()}
    for name, shape in shapes.items():
        array = rng.standard_normal(shape, np.float32)
        kind = GGMLQuantizationType.Q8_0 if len(shape) == 2 else GGMLQuantizationType.F32
        raw = quants.quantize(array, kind) if len(shape) == 2 else array
        writer.add_tensor(f"{name}.weight", raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def small_folder(path) -> None:
    """The same in the Hugging Face layout."""
    path.mkdir()
    config = dict(
        model_type="llama", hidden_size=8, intermediate_size=8, num_attention_heads=2, num_hidden_layers=1,
        num_key_value_heads=1, max_position_embeddings=16, vocab_size=10, tie_word_embeddings=True,
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                          original_max_position_embeddings=8),
        layer_types=["full_attention"], eos_token_id=[1, 2], rms_norm_eps=1e-5,
    )  # fmt: skip
    (path / "config.json").write_text(json.dumps(config))
    rows = {"q_proj": 8, "k_proj": 4, "v_proj": 4, "o_proj": 8}
    shapes = {"embed_tokens": (10, 8), "norm": (8,)}
    shapes |= {f"layers.0.{norm}_layernorm": (8,) for norm in ("input", "post_attention")}
    shapes |= {f"layers.0.self_attn.{name}": (width, 8) for name, width in rows.items()}
    shapes |= {f"layers.0.mlp.{name}_proj": (8, 8) for name in ("gate", "up", "down")}
    tensors = {f"model.{name}.weight": np.ones(shape, np.float16) for name, shape in shapes.items()}
    save_file(tensors, path / "model.safetensors")


def mutated(content: bytes, rng: np.random.Generator, header: int) -> bytes:
    """One mutation; most of them within the first `header` bytes, where the lengths stand."""
    damaged = bytearray(content)
    place = int(rng.integers(0, header if rng.random() < 0.9 else len(content)))
    kind = rng.integers(0, 6)
    if kind == 0:
        for bit in rng.integers(0, 8, rng.integers(1, 4)):
            damaged[place] ^= 1 << int(bit)
    elif kind == 1:
        del damaged[place:]
    elif kind == 2:
        source = int(rng.integers(0, len(content)))
        damaged[place : place + int(rng.integers(0, 64))] = content[source : source + int(rng.integers(0, 64))]
    elif kind == 3:
        size, form = (4, "<I") if rng.random() < 0.4 else (8, "<Q")
        damaged[place : place + size] = struct.pack(form, int(rng.choice(np.array(LENGTHS, object))) % 256**size)
    elif kind == 4:
        damaged[place] = int(rng.integers(0, 256))
    else:
        damaged[place : place + 4] = rng.bytes(4)
    return bytes(damaged)


def mutated_text(content: bytes, rng: np.random.Generator, header: int) -> bytes:
    """A mutation that mostly leaves JSON well formed: another value in place of a number, a word or a bracket."""
    if rng.random() < 0.4:
        return mutated(content, rng, header)
    values = [
        b"null",
        b"true",
        b"-1",
        b"0",
        b"1e400",
        b"NaN",
        b"9" * 30,
        b'"x"',
        b"[]",
        b"{}",
        b"[" * 3000,
        b"1.5",
        b"65536",
    ]
    pieces = content[:header].replace(b",", b"\0,\0").replace(b":", b"\0:\0").split(b"\0")
    places = [i for i, piece in enumerate(pieces) if piece not in (b",", b":")]
    pieces[int(rng.choice(places))] = values[int(rng.integers(0, len(values)))]
    return b"".join(pieces) + content[header:]


def loads(source: Path) -> bool:
    """Whether a model loads; what ends neither so nor in a ValueError that names the file ends the program."""
    try:
        with np.errstate(all="ignore"):
            load_weights(source)
    except ValueError as refusal:
        if str(source) not in str(refusal) and repr(source.stem) not in str(refusal):
            raise RuntimeError("a refusal must name the file") from refusal
        return False
    return True


def fuzz(source: Path, path: Path, mutate: Callable, header: int) -> dict[str, float]:
    """Load `source` once for each mutation of its file at `path`: the share that loads, and the most memory taken."""
    content, rng = path.read_bytes(), np.random.default_rng(2024)
    if not loads(source):
        raise RuntimeError("the undamaged file must load")
    tracemalloc.start()
    found = []
    for _ in range(MUTATIONS):
        path.write_bytes(mutate(content, rng, header))
        found.append(loads(source))
    return {"loaded": sum(found) / MUTATIONS, "peak_bytes": tracemalloc.get_traced_memory()[1]}


def fuzz_gguf(folder: Path) -> dict[str, float]:
    path = folder / "model.gguf"
    small_gguf(path)
    tensors_start = path.read_bytes().index(b"ffn_down") + 64
    return fuzz(path, path, mutated, header=tensors_start)


def fuzz_safetensors(folder: Path) -> dict[str, float]:
    path = folder / "model" / "model.safetensors"
    small_folder(path.parent)
    header = 8 + int.from_bytes(path.read_bytes()[:8], "little")
    return fuzz(path.parent, path, mutated_text, header)


def fuzz_config(folder: Path) -> dict[str, float]:
    path = folder / "model" / "config.json"
    small_folder(path.parent)
    return fuzz(path.parent, path, mutated_text, header=path.stat().st_size)


SUBJECTS = {"gguf": fuzz_gguf, "safetensors": fuzz_safetensors, "config": fuzz_config}


@pytest.mark.slow
@pytest.mark.parametrize("subject", SUBJECTS)
def test_damaged_files_are_read_or_refused(subject, tmp_path):
    program = [sys.executable, __file__, subject, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=LONGEST_S)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert 0.01 < found["loaded"] < 0.6  # some damage hits only numbers, most of it does not go unseen
    assert found["peak_bytes"] < MOST_MEMORY


if __name__ == "__main__":
    print(json.dumps(SUBJECTS[sys.argv[1]](Path(sys.argv[2]))))
