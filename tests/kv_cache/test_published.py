"""Published figures on the KV cache, from our models and sums; their errors too.

Sources: "vLLM" is Kwon et al. 2023 (PagedAttention), "Mooncake" the README of that project, "DeepSeek-V2" its paper and
README, "H2O" Zhang et al. 2023, "StreamingLLM" Xiao et al. 2023. What others measured is not measured again here: the
test holds the arithmetic around it.
"""

from dataclasses import replace

import pytest

from llminfer.basics import MlaSpec, ModelConfig, parameter_count, preset
from llminfer.core.hardware import device
from llminfer.kv_cache import bytes_per_token, cache_bytes, max_batch, models_report

GB, KIB, MIB, GIB = 1e9, 2**10, 2**20, 2**30

# In bfloat16, every layer counted: layers with a window too. From the makers' config.json, 2 * L * K * E * 2.
BYTES_PER_TOKEN = {
    "gpt2": 36_864, "gpt2-medium": 98_304, "gpt2-large": 184_320, "gpt2-xl": 307_200,
    "opt-13b": 819_200, "opt-66b": 2_359_296, "opt-175b": 4_718_592,
    "llama-2-7b": 524_288, "llama-2-13b": 819_200, "llama-2-70b": 327_680, "tinyllama-1.1b": 22_528,
    "llama-3-8b": 131_072, "llama-3-70b": 327_680, "llama-3.1-405b": 516_096,
    "llama-3.2-1b": 32_768, "llama-3.2-3b": 114_688,
    "mistral-7b-v0.1": 131_072, "mistral-7b-v0.3": 131_072, "mixtral-8x7b": 131_072, "mixtral-8x22b": 229_376,
    "qwen2.5-0.5b": 12_288, "qwen2.5-1.5b": 28_672, "qwen2.5-3b": 36_864,
    "qwen2.5-7b": 57_344, "qwen2.5-14b": 196_608, "qwen2.5-32b": 262_144, "qwen2.5-72b": 327_680,
    "qwen3-0.6b": 114_688, "qwen3-1.7b": 114_688, "qwen3-4b": 147_456,
    "qwen3-8b": 147_456, "qwen3-14b": 163_840, "qwen3-32b": 262_144,
    "qwen3-30b-a3b": 98_304, "qwen3-235b-a22b": 192_512,
    "deepseek-v2-lite": 31_104, "deepseek-v2": 69_120, "deepseek-v3": 70_272, "deepseek-r1": 70_272,
    "gemma-2-2b": 106_496, "gemma-2-9b": 344_064, "gemma-2-27b": 376_832,
    "gemma-3-1b": 26_624, "gemma-3-4b": 139_264, "gemma-3-12b": 393_216, "gemma-3-27b": 507_904,
    "gpt-oss-20b": 49_152, "gpt-oss-120b": 73_728,
    "smollm2-135m": 23_040, "smollm2-360m": 40_960, "smollm2-1.7b": 196_608,
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES_PER_TOKEN)
def test_what_a_token_takes(name):
    assert bytes_per_token(preset(name)) == BYTES_PER_TOKEN[name]


def test_the_table_of_twenty_says_the_same():
    rows = models_report(1000).data
    assert len({row["model"] for row in rows}) == 20
    assert {row["attention"] for row in rows} == {"MHA", "GQA", "MQA", "MLA"}
    for row in rows:
        assert row["bytes_per_token"] == BYTES_PER_TOKEN[row["model"]]


# vLLM


def test_opt_13b_takes_800_kib_a_token_which_is_printed_as_kb():
    token = bytes_per_token(preset("opt-13b"), "float16")
    assert token == 2 * 5120 * 40 * 2 == 819_200 == 800 * KIB
    assert cache_bytes(preset("opt-13b"), 1, 2048, "float16") / GIB == pytest.approx(1.6, abs=0.05)  # "1.6 GB"
    assert cache_bytes(preset("opt-13b"), 1, 2048, "float16") / GB == pytest.approx(1.68, abs=0.005)


@pytest.mark.parametrize(
    ("name", "cache_gib", "slots", "printed", "weights_gb"),
    [("opt-13b", 12, 15_728, 15.7e3, 26), ("opt-66b", 21, 9_557, 9.7e3, 132), ("opt-175b", 264, 60_074, 60.1e3, 346)],
)
def test_slots_of_vllm_table_1_match_when_its_gb_are_gib(name, cache_gib, slots, printed, weights_gb):
    config = preset(name)
    token = bytes_per_token(config, "float16")
    assert cache_gib * GIB // token == slots
    assert slots == pytest.approx(printed, rel=0.016)  # the 66B row is off by 1.5%, the others round
    assert abs(cache_gib * GB // token - printed) > 500  # with GB no row matches
    assert 2 * parameter_count(config).total / GB == pytest.approx(weights_gb, rel=0.012)


def test_what_sharing_a_prompt_can_save():
    # n outputs store a prompt, 12% of all their tokens, once and not n times: printed are 6.1% to 9.8% saved
    saved = [0.12 * (n - 1) / n for n in (2, 4, 6)]
    assert (saved[0], saved[-1]) == (pytest.approx(0.061, abs=0.002), pytest.approx(0.098, abs=0.003))


# DeepSeek-V2


def test_mla_stores_9_halves_of_a_head_width_a_layer_as_2_and_a_quarter_groups_would():
    d = 128
    base = ModelConfig("Table 1", 3, 1024, 16, 16, d, 4096, 1000, 4096)
    mla = replace(base, mla=MlaSpec(kv_rank=4 * d, rope_width=d // 2, nope_width=d, value_width=d))
    elements = {heads: bytes_per_token(replace(base, kv_heads=heads), 1) for heads in (16, 4, 1)}
    assert elements == {16: 2 * 16 * d * 3, 4: 2 * 4 * d * 3, 1: 2 * d * 3}  # MHA, GQA, MQA
    assert bytes_per_token(mla, 1) == 9 / 2 * d * 3 == 2.25 * elements[1]


def test_the_93_percent_of_deepseek_v2_count_its_cache_at_6_bits():
    deepseek_67b = ModelConfig("DeepSeek 67B", 95, 8192, 64, 8, 128, 22016, 102400, 4096)
    before, after = bytes_per_token(deepseek_67b), preset("deepseek-v2")
    assert before == 389_120
    assert 1 - bytes_per_token(after, 6 / 8) / before == pytest.approx(0.933, abs=0.0005)
    assert 1 - bytes_per_token(after) / before == pytest.approx(0.822, abs=0.0005)  # like for like, in 16 bits


# One line each


def test_llama_3_70b_at_128_ki_tokens_takes_40_gib():
    taken = cache_bytes(preset("llama-3-70b"), 1, 131_072, "float16")
    assert taken == 42_949_672_960 == 40 * GIB  # Mooncake: "40 GB for 128k tokens"
    assert taken != 43_486_543_872  # as a comment of a public test has it
    assert bytes_per_token(preset("llama-3-70b")) == 320 * KIB


def test_llama_7b_at_512_tokens_takes_the_256_mib_of_llama_cpps_log():
    assert cache_bytes(preset("llama-2-7b"), 1, 512, "float16") == 256 * MIB  # LLaMA 1 has the same shape


def test_llama_3_8b_at_8192_tokens_takes_1_gib():
    assert cache_bytes(preset("llama-3-8b"), 1, 8192) == GIB


def test_llama_2_13b_at_8192_tokens_is_printed_in_gib_and_is_gb():
    # the Scaling Book's table of Llama 2 13B is headed GiB
    taken = cache_bytes(preset("llama-2-13b"), 1, 8192)
    assert (taken, taken / GB, taken / GIB) == (6_710_886_400, pytest.approx(6.71, abs=0.005), 6.25)


def test_a_token_of_llama_3_1_405b_is_printed_in_kilobytes_of_1000():
    assert bytes_per_token(preset("llama-3.1-405b")) == 516.096 * 1000


def test_early_files_of_llama_3_1_405b_take_twice_as_much():
    config = preset("llama-3.1-405b")
    assert bytes_per_token(replace(config, kv_heads=16)) == 2 * bytes_per_token(config)


def test_windows_of_gpt_oss_120b_keep_next_to_nothing_of_131_072_tokens():
    config = preset("gpt-oss-120b")
    whole = replace(config, layers=18, windows=())
    local = replace(config, layers=18, windows=(128,) * 18)
    assert bytes_per_token(replace(whole, layers=1)) == 2048
    assert cache_bytes(whole, 1, 131_072) / GB == pytest.approx(4.832, abs=0.0005)
    assert cache_bytes(local, 1, 131_072) / 1e6 == pytest.approx(4.7, abs=0.05)
    assert cache_bytes(config, 1, 131_072) == cache_bytes(whole, 1, 131_072) + cache_bytes(local, 1, 131_072)


def test_59_sequences_of_8192_tokens_fit_beside_llama_3_8b_if_nothing_is_reserved():
    assert max_batch(preset("llama-3-8b"), device("h100-sxm"), 8192, reserve=0, step_tokens=1) == 59
    assert max_batch(preset("llama-3-8b"), device("h100-sxm"), 8192) == 51  # a tenth reserved, activations counted


# What was measured


@pytest.mark.parametrize("name", ["opt-13b", "opt-66b"])
def test_a_fifth_of_the_cache_explains_five_of_h2os_29_times(name):
    # H2O keeps 20% and prints up to 29 times DeepSpeed's throughput and 3 times FlexGen's; memory alone gives 5
    whole, kept = (cache_bytes(preset(name), 1, tokens, "float16") for tokens in (2000, 400))
    assert whole == 5 * kept


def test_four_sinks_and_a_window_take_the_same_after_four_million_tokens():
    # StreamingLLM, stable to 4 million tokens: what is kept does not depend on how many went by
    config = replace(preset("llama-2-7b"), windows=(4 + 1020,) * 32)
    assert cache_bytes(config, 1, 4_000_000) == cache_bytes(config, 1, 1024)
    assert bytes_per_token(config, context=1024) == 0
