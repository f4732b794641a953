"""`llminfer kv`: what it reads, what it prints, and what it says when it cannot."""

import json
from dataclasses import replace

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter
from typer.testing import CliRunner

from llminfer.basics import preset
from llminfer.cli import app
from llminfer.core.hardware import device
from llminfer.kv_cache import bytes_per_token, cache_bytes, describe_model, max_batch, models_report, size_report
from llminfer.kv_cache.size_reports import TWENTY

LLAMA_JSON = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "torch_dtype": "bfloat16",
}  # fmt: skip


def folder(path, **changes):
    (path / "config.json").write_text(json.dumps(LLAMA_JSON | changes))
    return path


def gguf_file(path):
    """A Llama of one layer with weights of two types, written by the gguf package."""
    writer = GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_embedding_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_feed_forward_length(128)
    writer.add_context_length(96)
    writer.add_vocab_size(32)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tensor("token_embd.weight", np.zeros((32, 64), np.float32))
    packed = np.zeros((64, 64 // 32 * 18), np.uint8)  # Q4_0: 18 bytes for 32 elements
    writer.add_tensor("blk.0.attn_q.weight", packed, raw_dtype=GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_preset_a_folder_and_its_config_json_are_one_model(tmp_path):
    known = preset("llama-3-8b")
    for source in (folder(tmp_path), tmp_path / "config.json", str(tmp_path)):
        found = describe_model(source)
        assert found.weights == "bfloat16"
        assert replace(found.config, name=known.name, bos_id=known.bos_id, eos_ids=known.eos_ids) == known
    assert describe_model("Llama 3 8B").config == known


def test_the_newer_name_of_the_weights_type_is_read_too(tmp_path):
    assert describe_model(folder(tmp_path, torch_dtype=None, dtype="float16")).weights == "float16"


def test_weights_of_a_gguf_file_take_what_they_take_there(tmp_path):
    found = describe_model(gguf_file(tmp_path / "small.gguf"))
    assert bytes_per_token(found.config) == 1 * 2 * 2 * 16 * 2
    assert found.weights == (32 * 64 * 4 + 64 * 64 * 18 // 32) / (32 * 64 + 64 * 64)


def test_the_bundled_model_has_a_name():
    assert describe_model("tiny").config.name == "tiny"


@pytest.mark.parametrize("changes", [{"quantization_config": {"bits": 4}}, {"torch_dtype": None}])
def test_what_is_not_said_of_the_weights_is_asked_for(tmp_path, changes):
    source = folder(tmp_path, **changes)
    assert describe_model(source).weights is None
    with pytest.raises(ValueError, match="does not say how its weights are stored; name a type"):
        size_report(source)
    assert size_report(source, weights=0.5).data[0]["weight_bytes"] == 8_030_261_248 / 2


@pytest.mark.parametrize(
    ("source", "words"),
    [("lama-3-8b", "did you mean llama-3-8b"), ("./nowhere.gguf", "There is no file or folder of that name either")],
)
def test_an_unknown_model_is_refused_with_what_comes_closest(source, words):
    with pytest.raises(ValueError, match=words):
        describe_model(source)


def test_a_folder_without_a_description_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no config\.json"):
        describe_model(tmp_path)


def test_the_report_is_what_the_functions_say():
    [found] = size_report("gemma-3-27b", 32_768, 4, "h200", "fp8").data
    config = preset("gemma-3-27b")
    assert found["cache_bytes"] == cache_bytes(config, 4, 32_768, "fp8")
    assert found["max_batch"] == max_batch(config, device("h200"), 32_768, "fp8")
    assert (found["bytes_per_token"], found["bytes_per_token_behind_context"]) == (507_904 / 2, 81_920 / 2)
    assert found["fits"] == (found["total_bytes"] <= 141e9)


def test_the_answer_says_whether_it_fits():
    assert "This fits in the 80 GB of H100 SXM" in size_report("llama-3-8b", batch=51).notes[0]
    assert "This does not fit" in size_report("llama-3-8b", batch=52).notes[0]
    assert "At most 51 sequences of 8,192 tokens" in size_report("llama-3-8b", batch=52).notes[0]
    assert "Nor does a single sequence" in size_report("llama-3-70b").notes[0]
    assert "each of 4 H100 SXM" in size_report("llama-3-70b", devices=4).notes[0]
    assert "made for 1,024 tokens" in " ".join(size_report("gpt2").notes)


def test_gb_and_gib_are_told_apart():
    table = size_report("llama-3-8b", batch=16)
    assert table.columns[1:] == ("bytes", "GB", "GiB")
    assert table.rows[0] == ("a sequence of 8,192 tokens", "1,073,741,824", "1.07", "1.00")


def test_twenty_models_have_a_row_each():
    report = models_report(4096, "int4")
    assert [row["model"] for row in report.data] == list(TWENTY)
    assert len(set(TWENTY)) == len(report.rows) == 20


def run(*arguments):
    return CliRunner().invoke(app, ["kv", *arguments], env={"COLUMNS": "120", "NO_COLOR": "1"})


def test_the_command_prints_table_and_answer():
    done = run("llama-3-8b", "--context", "8192", "--batch", "16", "--device", "h100-sxm")
    assert done.exit_code == 0
    assert "17,179,869,184" in done.stdout
    assert "At most 51 sequences" in done.stdout


def test_the_command_prints_json():
    done = run("llama-3-8b", "--weights", "0.5625", "--dtype", "fp8", "--json")
    [found] = json.loads(done.stdout)["results"]
    assert found["weight_bytes"] == 8_030_261_248 * 18 // 32
    assert found["bytes_per_token"] == 65_536


def test_the_command_without_a_model_prints_all():
    done = run()
    assert done.exit_code == 0
    assert all(name in done.stdout for name in TWENTY)
