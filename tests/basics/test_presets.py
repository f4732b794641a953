"""The table of models: how names are found, and what its rows say beyond their sizes."""

from dataclasses import replace
from math import log

import pytest
import transformers

from llminfer.basics.hugging_face import config_from_hugging_face
from llminfer.basics.presets import PRESETS, preset


def test_a_preset_is_stored_under_its_own_name():
    assert all(name == config.name for name, config in PRESETS.items())


@pytest.mark.parametrize("name", ["llama-3-8b", "Llama-3-8B", " Llama 3 8B ", "llama_3_8b"])
def test_a_preset_is_found_however_it_is_spelled(name):
    assert preset(name) is PRESETS["llama-3-8b"]


def test_an_unfinished_name_brings_what_it_could_become():
    with pytest.raises(ValueError, match="did you mean gpt-oss-20b or gpt-oss-120b"):
        preset("gpt-oss")


def test_a_misspelled_name_brings_the_nearest_names():
    with pytest.raises(ValueError, match="mistral-7b-v0.3"):
        preset("mistrall-7b-v3")


def test_a_name_like_none_brings_all_names_and_the_way_out():
    with pytest.raises(ValueError, match=r"known are gpt2, .*ModelConfig"):
        preset("????")


@pytest.mark.parametrize("name", [name for name in PRESETS if not PRESETS[name].mla])
def test_queries_fill_whole_heads(name):
    """q·E of most models is D; where it is not, the head width was published on its own."""
    config = PRESETS[name]
    own_width = ("qwen3", "gemma", "gpt-oss")
    assert config.heads * config.head_width == config.width or name.startswith(own_width)


@pytest.mark.parametrize("name", [name for name in PRESETS if PRESETS[name].rope.scaling == "yarn"])
def test_yarn_stretches_the_old_context_to_the_new_one(name):
    rope = PRESETS[name].rope
    assert rope.original_context * rope.factor == PRESETS[name].context


# transformers fills in what a config.json leaves out, for these families with the numbers of one published model.
DEFAULTS = {
    "gpt2": transformers.GPT2Config(),
    "mixtral-8x7b": transformers.MixtralConfig(max_position_embeddings=32768),
    "gemma-2-2b": transformers.Gemma2Config(),
    "gpt-oss-120b": transformers.GptOssConfig(),
    "deepseek-v3": transformers.DeepseekV3Config(
        topk_method="noaux_tc",
        scoring_func="sigmoid",
        max_position_embeddings=163840,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 40.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096,
        },
    ),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_preset_says_in_every_field_what_the_default_of_its_family_says(name):
    read = config_from_hugging_face(DEFAULTS[name].to_dict(), name)
    expected = PRESETS[name]
    assert read == replace(expected, bos_id=read.bos_id, eos_ids=read.eos_ids)  # chat models stop at more tokens


def test_windows_alternate_as_published():
    assert PRESETS["mistral-7b-v0.1"].windows == (4096,) * 32
    assert PRESETS["mistral-7b-v0.3"].windows == ()
    assert PRESETS["gemma-2-2b"].windows[:3] == (4096, None, 4096)
    assert PRESETS["gpt-oss-20b"].windows[:3] == (128, None, 128)
    assert PRESETS["gemma-3-1b"].windows[:7] == (512,) * 5 + (None, 512)
    assert PRESETS["gemma-3-27b"].windows.count(None) == 10  # of 62 layers, every sixth


def test_gemma_scales_scores_by_its_own_number():
    assert PRESETS["gemma-2-9b"].attention(0).scale == 256**-0.5
    assert PRESETS["gemma-2-27b"].attention(0).scale == pytest.approx((4608 / 32) ** -0.5)  # D/H, while E is 128
    assert PRESETS["gemma-3-27b"].attention(0).scale == pytest.approx((5376 / 32) ** -0.5)


def test_deepseek_grows_scores_for_the_longer_context():
    growth = 0.1 * log(40) + 1  # mscale of its config.json is 1, its factor 40
    assert PRESETS["deepseek-v3"].query_scale == pytest.approx((128 + 64) ** -0.5 * growth**2)
    assert PRESETS["deepseek-v2-lite"].query_scale < PRESETS["deepseek-v3"].query_scale


def test_opt_and_gpt2_learn_their_positions():
    assert {name for name, config in PRESETS.items() if config.positions == "learned"} == {
        *("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"),
        *("opt-13b", "opt-66b", "opt-175b"),
    }
