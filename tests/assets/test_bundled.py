"""The model in the box: it loads where others load models, it learnt something, and its card says what was measured."""

import hashlib
import json
import lzma
import math
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

REPOSITORY = Path(__file__).parents[2]
TOOLS = REPOSITORY / "tools"
TINY = REPOSITORY / "llminfer" / "assets" / "tiny"
CARD = (TINY.parent / "README.md").read_text(encoding="utf-8")
CONFIG = json.loads((TINY / "config.json").read_text(encoding="utf-8"))
RECORD = json.loads((TINY / "training.json").read_text(encoding="utf-8"))
TOKENIZER = json.loads((TINY / "tokenizer.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def weights():
    return load_file(TINY / "model.safetensors")


@pytest.fixture(scope="module")
def encoding():
    pytest.importorskip("tokenizers")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        from bundled_tokenizer import as_tiktoken

        yield as_tiktoken(TINY / "tokenizer.json")


@pytest.fixture(scope="module")
def theirs():
    """The same file in the `tokenizers` package, which reads "<|endoftext|>" in a text as text, as we do."""
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(str(TINY / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.fixture(scope="module")
def hugging_face():
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    model, info = transformers.LlamaForCausalLM.from_pretrained(TINY, dtype="float32", output_loading_info=True)
    return model.eval(), info


@pytest.fixture(scope="module")
def train_bundled():
    pytest.importorskip("torch")
    pytest.importorskip("tokenizers")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        import train_bundled

        yield train_bundled


def held_out_files() -> dict[str, str]:
    """Held-out modules that the running Python still has; later versions dropped some and changed others."""
    root = Path(sysconfig.get_paths()["stdlib"])
    names = [name for name in RECORD["held_out"]["files"] if (root / name).exists()]
    return {name: (root / name).read_bytes().decode("utf-8").replace("\r\n", "\n") for name in names}


# --- weights --------------------------------------------------------------------------------------------------


def test_transformers_finds_every_weight_and_no_other(hugging_face):
    _, info = hugging_face
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]


def test_parameter_count_is_the_recorded_one_and_between_3_and_6_million(weights):
    count = sum(w.size for w in weights.values())
    assert count == RECORD["parameters"]
    assert 3_000_000 <= count <= 6_000_000


def test_rows_of_every_matrix_fill_whole_k_quant_blocks(weights):
    assert [name for name, w in weights.items() if w.ndim == 2 and w.shape[1] % 256] == []


def test_weights_are_finite_float16_and_under_12_mb(weights):
    assert {w.dtype for w in weights.values()} == {np.dtype(np.float16)}
    assert all(np.isfinite(w).all() for w in weights.values())
    assert (TINY / "model.safetensors").stat().st_size < 12e6


def test_heads_are_grouped_and_fill_the_width():
    assert CONFIG["num_attention_heads"] > CONFIG["num_key_value_heads"]
    assert CONFIG["num_attention_heads"] * CONFIG["head_dim"] == CONFIG["hidden_size"] == 256


# --- tokenizer ------------------------------------------------------------------------------------------------


def test_every_merge_makes_the_next_id():
    vocabulary, merges = TOKENIZER["model"]["vocab"], TOKENIZER["model"]["merges"]
    assert [vocabulary["".join(pair)] for pair in merges] == list(range(256, 256 + len(merges)))
    assert sorted(vocabulary.values()) == list(range(256 + len(merges)))


def test_end_of_text_is_the_last_id_and_begins_and_ends_documents():
    (special,) = TOKENIZER["added_tokens"]
    assert special["content"] == "<|endoftext|>"
    assert special["id"] == CONFIG["bos_token_id"] == CONFIG["eos_token_id"] == CONFIG["vocab_size"] - 1


@settings(max_examples=300, deadline=None)
@example(text="<|endoftext|>")
@given(text=st.text() | st.text(alphabet=" \n\t0123456789_def()'’éß🙂汉字\u200b"))
def test_both_tokenizers_give_the_same_ids_and_the_text_back(encoding, theirs, text):
    ids = encoding.encode_ordinary(text)
    assert ids == theirs.encode(text, add_special_tokens=False).ids
    assert encoding.decode_bytes(ids) == text.encode()
    assert theirs.decode(ids) == text


@given(data=st.binary())
def test_any_bytes_can_be_written_in_tokens(encoding, data):
    assert encoding.decode_bytes([encoding.encode_single_token(bytes([byte])) for byte in data]) == data


def test_both_tokenizers_agree_on_held_out_modules(encoding, theirs):
    for text in held_out_files().values():
        assert encoding.encode_ordinary(text) == theirs.encode(text, add_special_tokens=False).ids


# --- what it learnt -------------------------------------------------------------------------------------------


def sliding_bits(model, ids: list[int]) -> float:
    """Bits for ids[1:] in windows of the recorded context and stride; written apart from the tool's own."""
    import torch

    context, stride = RECORD["held_out"]["context"], RECORD["held_out"]["stride"]
    bits, done = 0.0, 1
    for start in range(0, len(ids), stride):
        window = torch.tensor(ids[start : start + context + 1])
        with torch.inference_mode():
            log_p = model(window[None, :-1]).logits[0].log_softmax(-1)
        nats = -log_p.gather(1, window[1:, None])[:, 0]  # nats[i] is for the token at start + 1 + i
        bits += nats[done - start - 1 :].sum().item() / math.log(2)
        done = start + len(window)
        if done == len(ids):
            return bits
    raise ValueError("no tokens to score")


def test_a_held_out_module_costs_fewer_bits_than_in_xz_and_as_many_as_recorded(hugging_face, encoding):
    """One module of 5 to 20 kB, in whatever version this Python has it; the recorded bits hold for the recorded one."""
    files = held_out_files()
    name = next(n for n in sorted(files) if 5_000 < len(files[n]) < 20_000)
    size = len(files[name].encode())
    bits = sliding_bits(hugging_face[0], [CONFIG["bos_token_id"], *encoding.encode_ordinary(files[name])])
    assert bits < 8 * len(lzma.compress(files[name].encode(), preset=9 | lzma.PRESET_EXTREME))
    recorded = RECORD["held_out"]["files"][name]
    if recorded["bytes"] == size:
        assert bits / size == pytest.approx(recorded["model_bits_per_byte"], abs=1e-3)


def test_held_out_text_as_a_whole_costs_fewer_bits_than_in_xz():
    assert RECORD["held_out"]["model_bits_per_byte"] < RECORD["held_out"]["xz_bits_per_byte"]


def test_held_out_modules_are_those_the_stated_rule_picks():
    """No module at the top of the library is missing from the list; checked where Python is the recorded version."""
    recorded = RECORD["held_out"]["files"]
    assert [name for name in recorded if hashlib.sha256(name.encode()).digest()[0] % 20] == []
    if RECORD["versions"]["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}."):
        root = Path(sysconfig.get_paths()["stdlib"])
        present = [f"{module}.py" for module in sys.stdlib_module_names if (root / f"{module}.py").exists()]
        picked = {name for name in present if hashlib.sha256(name.encode()).digest()[0] % 20 == 0}
        by_accident = {"ast.py"}  # neither trained on nor held out: its first lines say "can be generated by"
        assert picked - by_accident == {name for name in recorded if "/" not in name}


def test_the_loss_falls_from_each_report_to_the_next():
    losses = [point["train_nats_per_token"] for point in RECORD["loss_curve"]]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.7 * losses[0]


# --- the card -------------------------------------------------------------------------------------------------


def test_the_card_shows_the_recorded_loss_curve():
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|$", CARD, flags=re.MULTILINE)
    shown = [(int(s.replace(",", "")), int(t.replace(",", "")), float(loss), float(bits)) for s, t, loss, bits in rows]
    assert shown == [tuple(point.values()) for point in RECORD["loss_curve"]]


def test_the_card_shows_the_recorded_sizes_and_bits():
    held_out = RECORD["held_out"]
    numbers = [RECORD[key] for key in ("parameters", "tokens_read", "training_documents", "training_bytes")]
    numbers += [RECORD["training_tokens"], RECORD["recipe"]["steps"], held_out["held_out_bytes"]]
    shown = [f"{number:,}" for number in numbers] + [str(RECORD["recipe"]["seed"]), RECORD["command"]]
    shown += [f"{value:.3f}" for key, value in held_out.items() if key.endswith("bits_per_byte")]
    assert [text for text in shown if text not in CARD] == []


def test_the_card_names_every_held_out_module():
    assert [name for name in RECORD["held_out"]["files"] if f"`{name}`" not in CARD] == []


# --- the tool -------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(length=st.integers(2, 60), stride=st.integers(1, 8))
def test_a_sliding_window_scores_every_token_once(train_bundled, length, stride):
    """A model that finds all 16 tokens equally likely needs 4 bits for each token after the first."""
    import torch
    from bundled_judge import bits_of

    def uniform(tokens):
        return torch.zeros(*tokens.shape, 16)

    bits = bits_of(uniform, [1] * length, context=8, stride=stride)
    assert bits == pytest.approx(4 * (length - 1))


def test_batches_of_an_epoch_share_no_window_and_come_again_when_asked(train_bundled):
    tokens = np.arange(1000, dtype=np.uint16)
    recipe = train_bundled.Recipe(batch_size=4)
    first_epoch = [train_bundled.batch_at(step, tokens, recipe, context=16) for step in range(15)]
    starts = [int(row[0]) for batch in first_epoch for row in batch]
    assert len(set(starts)) == 60
    assert len({start % 16 for start in starts}) == 1
    assert (train_bundled.batch_at(7, tokens, recipe, context=16) == first_epoch[7]).all()


@pytest.mark.slow
def test_the_smoke_run_writes_a_model_that_loads(tmp_path):
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    arguments = ["--smoke", "--threads", "1", "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "run.pt")]
    subprocess.run([sys.executable, str(TOOLS / "train_bundled.py"), *arguments], check=True, capture_output=True)
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "out")
    assert model.config.vocab_size == 512
    record = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert record["command"] == "python tools/train_bundled.py --smoke --threads 1"
    losses = [point["train_nats_per_token"] for point in record["loss_curve"]]
    assert losses == sorted(losses, reverse=True)
