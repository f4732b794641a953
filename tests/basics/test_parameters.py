"""Parameter counts against what was published, and against each other."""

from dataclasses import replace
from math import prod

import pytest

from llminfer.basics.config import ModelConfig, MoeSpec
from llminfer.basics.parameters import layer_shapes, parameter_count, weight_shapes
from llminfer.basics.presets import PRESETS, preset

# name: (total parameters, bytes of keys and values a token in bfloat16 if no layer had a window). Totals are those of
# the published checkpoints; Gemma 3 without vision, DeepSeek-V3 without its multi-token prediction layer.
PUBLISHED = {
    "gpt2": (124_439_808, 36_864),
    "gpt2-medium": (354_823_168, 98_304),
    "gpt2-large": (774_030_080, 184_320),
    "gpt2-xl": (1_557_611_200, 307_200),
    "llama-2-7b": (6_738_415_616, 524_288),
    "llama-2-13b": (13_015_864_320, 819_200),
    "llama-2-70b": (68_976_648_192, 327_680),
    "llama-3-8b": (8_030_261_248, 131_072),
    "llama-3.1-8b": (8_030_261_248, 131_072),
    "llama-3-70b": (70_553_706_496, 327_680),
    "llama-3.1-70b": (70_553_706_496, 327_680),
    "llama-3.1-405b": (405_853_388_800, 516_096),
    "llama-3.2-1b": (1_235_814_400, 32_768),
    "llama-3.2-3b": (3_212_749_824, 114_688),
    "mistral-7b-v0.1": (7_241_732_096, 131_072),
    "mistral-7b-v0.3": (7_248_023_552, 131_072),
    "mixtral-8x7b": (46_702_792_704, 131_072),
    "mixtral-8x22b": (140_630_071_296, 229_376),
    "qwen2.5-0.5b": (494_032_768, 12_288),
    "qwen2.5-1.5b": (1_543_714_304, 28_672),
    "qwen2.5-3b": (3_085_938_688, 36_864),
    "qwen2.5-7b": (7_615_616_512, 57_344),
    "qwen2.5-14b": (14_770_033_664, 196_608),
    "qwen2.5-32b": (32_763_876_352, 262_144),
    "qwen2.5-72b": (72_706_203_648, 327_680),
    "qwen3-0.6b": (596_049_920, 114_688),
    "qwen3-1.7b": (1_720_574_976, 114_688),
    "qwen3-4b": (4_022_468_096, 147_456),
    "qwen3-8b": (8_190_735_360, 147_456),
    "qwen3-14b": (14_768_307_200, 163_840),
    "qwen3-32b": (32_762_123_264, 262_144),
    "qwen3-30b-a3b": (30_532_122_624, 98_304),
    "qwen3-235b-a22b": (235_093_634_560, 192_512),
    "deepseek-v2-lite": (15_706_484_224, 31_104),
    "deepseek-v2": (235_741_434_880, 69_120),
    "deepseek-v3": (671_026_419_200, 70_272),
    "deepseek-r1": (671_026_419_200, 70_272),
    "gemma-2-2b": (2_614_341_888, 106_496),
    "gemma-2-9b": (9_241_705_984, 344_064),
    "gemma-2-27b": (27_227_128_320, 376_832),
    "gemma-3-1b": (999_885_952, 26_624),
    "gemma-3-4b": (3_880_263_168, 139_264),
    "gemma-3-12b": (11_766_034_176, 393_216),
    "gemma-3-27b": (27_009_346_304, 507_904),
    "gpt-oss-20b": (20_914_757_184, 49_152),
    "gpt-oss-120b": (116_829_156_672, 73_728),
    "smollm2-135m": (134_515_008, 23_040),
    "smollm2-360m": (361_821_120, 40_960),
    "smollm2-1.7b": (1_711_376_384, 196_608),
    "tinyllama-1.1b": (1_100_048_384, 22_528),
}
OPT_KV_BYTES = {"opt-13b": 819_200, "opt-66b": 2_359_296, "opt-175b": 4_718_592}  # published without exact totals

# Parameters on one token's path; those of gpt-oss are published without the embedding.
ACTIVE = {
    "mixtral-8x7b": 12_879_925_248,
    "mixtral-8x22b": 39_161_468_928,
    "qwen3-30b-a3b": 3_353_032_704,
    "qwen3-235b-a22b": 22_190_763_520,
    "deepseek-v2-lite": 2_661_150_208,
    "deepseek-v2": 21_375_800_320,
    "deepseek-v3": 37_552_297_472,
}
ACTIVE_WITHOUT_EMBEDDING = {"gpt-oss-20b": 3_608_307_264, "gpt-oss-120b": 5_132_849_472}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_the_published_number_of_parameters(name):
    assert parameter_count(preset(name)).total == PUBLISHED[name][0]


@pytest.mark.parametrize("name", ACTIVE)
def test_active_counts_everything_but_the_experts_a_token_does_not_choose(name):
    assert parameter_count(preset(name)).active == ACTIVE[name]


@pytest.mark.parametrize("name", ACTIVE_WITHOUT_EMBEDDING)
def test_the_active_count_of_gpt_oss_leaves_the_embedding_out(name):
    count = parameter_count(preset(name))
    assert count.active - count.embedding == ACTIVE_WITHOUT_EMBEDDING[name]


def test_every_preset_is_in_a_published_table():
    assert PUBLISHED.keys() | OPT_KV_BYTES.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_token_leaves_the_published_bytes_in_the_cache(name):
    assert kv_bytes_per_token(preset(name)) == PUBLISHED[name][1]


@pytest.mark.parametrize("name", OPT_KV_BYTES)
def test_a_token_of_opt_leaves_the_published_bytes_in_the_cache(name):
    assert kv_bytes_per_token(preset(name)) == OPT_KV_BYTES[name]


def kv_bytes_per_token(config: ModelConfig) -> int:
    specs = [config.attention(layer) for layer in range(config.layers)]
    return 2 * sum(s.kv_heads * (s.key_width + (0 if s.shared_kv else s.value_width)) for s in specs)


def test_the_parts_of_gpt_oss_are_those_of_its_model_card():
    count = parameter_count(preset("gpt-oss-120b"))
    assert round((count.feed_forward + count.experts + count.router) / 1e9, 2) == 114.71  # "MLP", with the router
    assert round(count.attention / 1e9, 2) == 0.96
    assert round((count.embedding + count.head) / 1e9, 2) == 1.16


def test_sixteen_kv_heads_explain_the_larger_count_of_early_llama_405b_repositories():
    early = replace(preset("llama-3.1-405b"), kv_heads=16)
    assert parameter_count(early).total == 410_081_247_232
    assert kv_bytes_per_token(early) == 2 * kv_bytes_per_token(preset("llama-3.1-405b"))


def test_no_number_of_kv_heads_explains_the_wrong_llama_405b_fixture():
    config = preset("llama-3.1-405b")
    possible = {parameter_count(replace(config, kv_heads=2**power)).total for power in range(8)}
    assert 404_650_311_680 not in possible


@pytest.mark.parametrize("name", PRESETS)
def test_the_parts_add_up_to_the_shapes(name):
    config = preset(name)
    count = parameter_count(config)
    parts = (count.embedding, count.attention, count.feed_forward, count.experts, count.router, count.norms, count.head)
    assert count.total == sum(parts) == sum(prod(shape) for shape in weight_shapes(config).values())


def test_a_tied_model_has_no_head():
    tied, untied = preset("smollm2-135m"), replace(preset("smollm2-135m"), tied=False)
    assert "head" not in weight_shapes(tied)
    assert parameter_count(tied).head == 0
    assert parameter_count(untied).total - parameter_count(tied).total == 576 * 49152


def test_a_dense_model_is_all_active():
    count = parameter_count(preset("llama-3-8b"))
    assert count.experts == count.chosen_experts == count.router == 0
    assert count.active == count.total


def test_norms_are_counted_with_those_inside_attention():
    assert parameter_count(preset("llama-3-8b")).norms == (2 * 32 + 1) * 4096
    assert parameter_count(preset("qwen3-8b")).norms == (2 * 36 + 1) * 4096 + 36 * 2 * 128
    assert parameter_count(preset("gpt2")).norms == 2 * (2 * 12 + 1) * 768  # gains and biases


def test_layers_before_the_first_moe_layer_are_dense():
    config = preset("deepseek-v3")
    assert layer_shapes(config, 2)["gate_up"] == (7168, 2 * 18432)
    assert layer_shapes(config, 3)["experts.gate_up"] == (256, 7168, 2 * 2048)
    assert "gate_up" not in layer_shapes(config, 3)


def test_shapes_are_in_out_with_q_k_and_v_fused():
    shapes = weight_shapes(preset("qwen2.5-0.5b"))
    assert shapes["layers.0.qkv"] == (896, (14 + 2 * 2) * 64)
    assert shapes["layers.0.qkv.bias"] == ((14 + 2 * 2) * 64,)
    assert shapes["layers.23.down"] == (4864, 896)
    assert "layers.0.output.bias" not in shapes


def test_shared_experts_are_optional_and_count_as_feed_forward():
    config = replace(preset("qwen3-30b-a3b"), moe=MoeSpec(128, 8, 768, shared_width=1536))
    assert layer_shapes(config, 0)["shared.down"] == (1536, 2048)
    assert parameter_count(config).feed_forward == 48 * 3 * 1536 * 2048
    assert parameter_count(preset("qwen3-30b-a3b")).feed_forward == 0
