"""Models by name or path, and what is said about folders and files that do not hold what they should."""

import json
import shutil
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from gguf import GGUFWriter
from safetensors.torch import load_file, save_file
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from llminfer.basics import checkpoints, hugging_face_weights
from llminfer.basics.checkpoints import available_models, load_model, load_tokenizer, load_weights, model_path
from llminfer.basics.config import MoeSpec, RopeSpec
from llminfer.basics.fetching import RELEASES
from llminfer.basics.memory import NoCache
from llminfer.basics.parameters import parameter_count
from llminfer.basics.presets import preset
from llminfer.basics.rotary import rope_frequencies
from llminfer.basics.weight_reading import WeightReader

SMOLLM2 = RELEASES["smollm2"].path
needs_smollm2 = pytest.mark.skipif(
    not SMOLLM2.is_file(), reason="SmolLM2 is not in the cache; run: llminfer fetch smollm2"
)


def random_llama(folder, shard: str = "1GB", **changes):
    """A small Llama of transformers, saved in `folder`."""
    torch.manual_seed(0)
    sizes = dict(vocab_size=50, hidden_size=16, intermediate_size=24, num_hidden_layers=2, max_position_embeddings=32)
    config = transformers.LlamaConfig(**sizes | changes, num_attention_heads=4, num_key_value_heads=2)
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(folder, max_shard_size=shard)
    return model


@pytest.fixture
def folder(tmp_path):
    """A sound model in the Hugging Face layout, in one file."""
    random_llama(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def shards(tmp_path):
    """The same in several files."""
    random_llama(tmp_path / "model", shard="8KB")
    assert len(list((tmp_path / "model").glob("*.safetensors"))) > 1
    return tmp_path / "model"


def change_json(path, **changes):
    """Set some fields of a JSON file; None takes a field away."""
    fields = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))


def logits(model, tokens) -> np.ndarray:
    view = NoCache(model.config).step([0], [len(tokens)])
    return model.head(model.hidden(np.asarray(tokens), np.arange(len(tokens)), view))


def their_logits(model, tokens) -> np.ndarray:
    with torch.no_grad():
        return model(torch.tensor(tokens)[None]).logits[0].numpy()


def relative_error(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


class TestNames:
    def test_the_models_that_have_names_are_listed(self):
        models = {model.name: model for model in available_models()}
        assert set(models) == {"tiny", "smollm2"}
        assert models["smollm2"].remedy == "llminfer fetch smollm2"
        assert all((model.size_bytes > 0) == model.present for model in models.values())

    def test_an_unknown_name_is_answered_with_the_known_ones(self):
        with pytest.raises(FileNotFoundError, match="no model called 'gpt-5'.*tiny, smollm2, a GGUF file, or a folder"):
            load_model("gpt-5")

    def test_a_model_that_is_not_fetched_says_how_to_fetch_it(self, monkeypatch, tmp_path):
        monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path))
        for load in (load_model, load_tokenizer):
            with pytest.raises(FileNotFoundError, match="run: llminfer fetch smollm2"):
                load("smollm2")

    def test_a_name_wins_over_a_folder_of_that_name(self, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(checkpoints, "ASSETS", tmp_path / "assets")
        random_llama(tmp_path / "assets" / "tiny")
        (tmp_path / "tiny").mkdir()
        assert model_path("tiny") == tmp_path / "assets" / "tiny"
        assert model_path("./tiny").resolve() == tmp_path / "tiny"

    def test_a_file_of_a_folder_is_not_the_model(self, folder):
        with pytest.raises(ValueError, match="model.safetensors is one file of a model; give its folder"):
            load_model(folder / "model.safetensors")

    def test_a_folder_without_a_config_says_what_is_expected(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="has no config.json"):
            load_model(tmp_path)

    def test_a_folder_without_weights_says_what_is_expected(self, folder):
        (folder / "model.safetensors").unlink()
        with pytest.raises(FileNotFoundError, match="neither model.safetensors nor model.safetensors.index.json"):
            load_model(folder)


class NoTensors:
    """A checkpoint with a config and nothing else."""

    where = "nothing"
    shapes: dict[str, tuple[int, ...]] = {}

    def load(self, name: str) -> np.ndarray:
        raise KeyError(name)


class TestFolders:
    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_every_weight_has_the_dtype_asked_for(self, folder, dtype):
        _, weights = load_weights(folder, dtype)
        assert {array.dtype.name for array in weights.values()} == {dtype}

    def test_another_dtype_is_refused(self, folder):
        with pytest.raises(ValueError, match="dtype must be one of float16, float32, float64, got 'int8'"):
            load_model(folder, dtype="int8")

    def test_bfloat16_is_read_exactly(self, tmp_path):
        model = random_llama(tmp_path)
        tensors = {name: tensor.bfloat16() for name, tensor in load_file(tmp_path / "model.safetensors").items()}
        save_file(tensors, tmp_path / "model.safetensors")
        _, weights = load_weights(tmp_path)
        np.testing.assert_array_equal(weights["embedding"], model.model.embed_tokens.weight.bfloat16().float().detach())

    def test_projections_are_fused_in_order_and_face_the_input(self, folder):
        theirs = {name: tensor.numpy() for name, tensor in load_file(folder / "model.safetensors").items()}
        _, ours = load_weights(folder)
        attention, mlp = "model.layers.1.self_attn.", "model.layers.1.mlp."
        q, k, v = (theirs[f"{attention}{name}_proj.weight"] for name in "qkv")
        np.testing.assert_array_equal(ours["layers.1.qkv"], np.concatenate([q.T, k.T, v.T], axis=1))
        gate, up = theirs[f"{mlp}gate_proj.weight"], theirs[f"{mlp}up_proj.weight"]
        np.testing.assert_array_equal(ours["layers.1.gate_up"], np.concatenate([gate.T, up.T], axis=1))
        assert all(ours[f"layers.1.{name}"].T.flags.c_contiguous for name in ("qkv", "output", "gate_up", "down"))

    def test_shards_give_the_same_weights(self, folder, shards):
        _, whole = load_weights(folder)
        _, sharded = load_weights(shards)
        assert whole.keys() == sharded.keys()
        assert all((whole[name] == sharded[name]).all() for name in whole)

    def test_loading_holds_no_more_than_one_tensor_twice(self, tmp_path):
        model = random_llama(tmp_path, vocab_size=4000, hidden_size=64, intermediate_size=512)
        largest_bytes = model.model.embed_tokens.weight.nbytes
        tracemalloc.start()
        _, weights = load_weights(tmp_path)
        held_bytes, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held_bytes > sum(array.nbytes for array in weights.values())
        assert peak_bytes < held_bytes + largest_bytes

    def test_a_tensor_with_another_shape_than_the_config_is_named(self, folder):
        change_json(folder / "config.json", intermediate_size=25)
        with pytest.raises(
            ValueError, match=r"mlp.gate_proj.weight has shape \[24, 16\], but the config needs \[25, 16\]"
        ):
            load_model(folder)

    def test_a_config_that_claims_many_experts_costs_no_memory(self):
        config = replace(preset("mixtral-8x7b"), moe=MoeSpec(experts=100_000, top_k=2, expert_width=8))
        take = WeightReader(NoTensors(), np.dtype("float32"))
        tracemalloc.start()
        with pytest.raises(ValueError, match="tensor m.gate.weight is missing"):
            hugging_face_weights._experts(config, take, "m.", ("w1", "w3", "w2"))
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak_bytes < 1e6

    def test_a_missing_tensor_is_named(self, folder):
        change_json(folder / "config.json", num_hidden_layers=3)
        with pytest.raises(ValueError, match=r"tensor model.layers.2.input_layernorm.weight is missing"):
            load_model(folder)

    def test_a_tensor_that_nothing_reads_is_named(self, folder):
        change_json(folder / "config.json", num_hidden_layers=1)
        with pytest.raises(ValueError, match=r"9 tensors have no place in this model: model.layers.1.input_layernorm"):
            load_model(folder)

    def test_a_tied_head_may_be_stored_twice(self, folder):
        change_json(folder / "config.json", tie_word_embeddings=True)
        _, weights = load_weights(folder)
        assert "head" not in weights

    def test_tensors_of_whole_numbers_are_refused(self, folder):
        tensors = load_file(folder / "model.safetensors")
        tensors["model.norm.weight"] = tensors["model.norm.weight"].to(torch.int32)
        save_file(tensors, folder / "model.safetensors")
        with pytest.raises(ValueError, match="tensor model.norm.weight is of type I32; supported: F16, BF16, F32, F64"):
            load_model(folder)

    def test_quantized_folders_are_refused(self, folder):
        change_json(folder / "config.json", quantization_config={"quant_method": "fp8"})
        with pytest.raises(
            ValueError, match="config.json: quantization_config: weights quantized this way are not read"
        ):
            load_model(folder)

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": "\xff"}', b"[" * 10**5, b'{"a": ' + b"9" * 10**5])
    def test_a_config_that_is_no_object_is_refused(self, folder, content):
        (folder / "config.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"config\.json: (not valid JSON|expected a JSON object)"):
            load_model(folder)

    @pytest.mark.parametrize(
        "shard",
        ["../secret.safetensors", "/tmp/secret.safetensors", "a/../../secret.safetensors", "..\\secret.safetensors",
         "C:secret.safetensors", "..", "", "secret\0.safetensors", "config.json"],
    )  # fmt: skip
    def test_an_index_cannot_lead_out_of_its_folder(self, shards, shard):
        shutil.copy(next(shards.glob("*.safetensors")), shards.parent / "secret.safetensors")
        change_json(shards / "model.safetensors.index.json", weight_map={"model.norm.weight": shard})
        with pytest.raises(ValueError, match="weight_map names .*; expected a .safetensors file beside the index"):
            load_model(shards)

    def test_a_missing_shard_is_named(self, shards):
        next(shards.glob("*00001-of*.safetensors")).unlink()
        with pytest.raises(ValueError, match="the shard model-00001-of-.* is missing"):
            load_model(shards)

    def test_a_tensor_that_the_index_promises_is_missed(self, shards):
        index = shards / "model.safetensors.index.json"
        weight_map = json.loads(index.read_text())["weight_map"]
        change_json(index, weight_map=weight_map | {"ghost": next(iter(weight_map.values()))})
        with pytest.raises(ValueError, match="tensor ghost is in none of the shards it names"):
            load_model(shards)

    @pytest.mark.parametrize("weight_map", [None, [], {"a": 1}])
    def test_an_index_without_a_map_is_refused(self, shards, weight_map):
        change_json(shards / "model.safetensors.index.json", weight_map=weight_map)
        with pytest.raises(ValueError, match="weight_map must be an object"):
            load_model(shards)


def write_gguf(path, architecture: str, tied: bool = False, theta: float = 1e4, **more: np.ndarray):
    """A small random model under llama.cpp's names, every tensor F32."""
    writer, rng = GGUFWriter(path, architecture), np.random.default_rng(3)
    D, H, K, F, V = 16, 4, 2, 24, 50
    E = 128 if architecture == "qwen3" else 4  # transformers takes no other width from a file of Qwen3
    writer.add_block_count(2)
    writer.add_context_length(32)
    writer.add_embedding_length(D)
    writer.add_feed_forward_length(F)
    writer.add_head_count(H)
    writer.add_head_count_kv(K)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(theta)
    writer.add_vocab_size(V)
    writer.add_key_length(E)
    writer.add_value_length(E)
    layer = {
        "attn_norm": (D,),
        "attn_q": (H * E, D),
        "attn_k": (K * E, D),
        "attn_v": (K * E, D),
        "attn_output": (D, H * E),
    }
    layer |= {"ffn_norm": (D,), "ffn_gate": (F, D), "ffn_up": (F, D), "ffn_down": (D, F)}
    if architecture == "qwen3":
        layer |= {"attn_q_norm": (E,), "attn_k_norm": (E,)}
    shapes = {"token_embd.weight": (V, D), "output_norm.weight": (D,)} | ({} if tied else {"output.weight": (V, D)})
    for i in range(2):
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
        if architecture == "qwen2":
            shapes |= {f"blk.{i}.{name}.bias": layer[name][:1] for name in ("attn_q", "attn_k", "attn_v")}
    tensors = {name: 0.4 * rng.standard_normal(shape, np.float32) for name, shape in shapes.items()} | more
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def as_transformers_reads(path):
    """The model that transformers makes of a GGUF file: its names, its decoding, its order of rows."""
    config = transformers.AutoConfig.from_pretrained(path.parent, gguf_file=path.name)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    tensors = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    model.load_state_dict(tensors, strict=False, assign=True)
    model.tie_weights()
    rotary = model.model.rotary_emb  # not a weight, so still without numbers
    model.model.rotary_emb = type(rotary)(config)
    return model.eval()


class TestGgufModels:
    @pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
    def test_a_file_of_each_architecture_gives_the_logits_of_transformers(self, tmp_path, architecture):
        path = write_gguf(tmp_path / "model.gguf", architecture)
        tokens = [7, 42, 3, 3, 19, 0, 49, 8]
        assert (
            relative_error(logits(load_model(path), tokens), their_logits(as_transformers_reads(path), tokens)) < 1e-4
        )

    def test_without_an_output_tensor_the_head_is_the_embedding(self, tmp_path):
        model = load_model(write_gguf(tmp_path / "model.gguf", "llama", tied=True))
        assert model.config.tied

    def test_the_rope_of_llama_3_is_recognised_by_its_divisors(self, tmp_path):
        theta = 1e7  # the slower of two pairs turns less than once within 8192 tokens
        spec = RopeSpec(theta=theta, scaling="llama3", factor=8.0, original_context=8192)
        divisors = rope_frequencies(RopeSpec(theta=theta), 4) / rope_frequencies(spec, 4)
        more = {"rope_freqs.weight": divisors.astype(np.float32)}
        config, _ = load_weights(write_gguf(tmp_path / "model.gguf", "llama", theta=theta, **more))
        assert config.rope == spec

    def test_other_divisors_of_rope_are_refused(self, tmp_path):
        path = write_gguf(tmp_path / "model.gguf", "llama", **{"rope_freqs.weight": np.array([1, 3], np.float32)})
        with pytest.raises(ValueError, match="tensor rope_freqs.weight is not Llama 3.1's scaling"):
            load_model(path)

    def test_an_unknown_architecture_is_named(self, tmp_path):
        with pytest.raises(ValueError, match="general.architecture is 'rwkv'; supported: 'llama', 'qwen2', 'qwen3'"):
            load_model(write_gguf(tmp_path / "model.gguf", "rwkv"))

    def test_a_tensor_without_a_place_is_named(self, tmp_path):
        path = write_gguf(tmp_path / "model.gguf", "llama", **{"blk.0.attn_sinks.weight": np.ones(4, np.float32)})
        with pytest.raises(ValueError, match="1 tensors have no place in this model: blk.0.attn_sinks.weight"):
            load_model(path)

    def test_a_tensor_with_another_shape_is_named(self, tmp_path):
        path = write_gguf(tmp_path / "model.gguf", "llama", **{"blk.1.ffn_up.weight": np.ones((3, 16), np.float32)})
        with pytest.raises(ValueError, match=r"up_proj.weight has shape \[3, 16\], but the config needs \[24, 16\]"):
            load_model(path)


@needs_smollm2
@pytest.mark.slow
def test_smollm2_gives_the_logits_of_transformers():
    """The same file, read by transformers down to the dequantization."""
    model, tokenizer = load_model("smollm2"), load_tokenizer("smollm2")
    tokens = tokenizer.encode("The capital of France is Paris, and the capital of Germany is")
    ours = logits(model, tokens)
    assert relative_error(ours, their_logits(as_transformers_reads(SMOLLM2), tokens)) < 1e-4
    assert tokenizer.decode([int(ours[-1].argmax())]) == " Berlin"
    assert parameter_count(model.config).total == 134_515_008
