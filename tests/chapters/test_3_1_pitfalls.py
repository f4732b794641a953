"""Chapter 3.1, pitfalls and questions: each snippet is as bad as the text says, each answer what the functions give.

CLAIMS, PARTS and GIVEN as in `test_3_1_basics`.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llminfer.basics import (
    PRESETS,
    Chunk,
    RequestTrace,
    Slo,
    apply_temperature,
    apply_top_p,
    critical_batch,
    decode,
    decode_ceiling,
    device,
    goodput,
    gumbel,
    highest_percent,
    log_softmax,
    max_batch,
    parameter_count,
    prefill,
    preset,
    softmax,
    step_cost,
    step_costs,
    step_time,
    tool_readings,
)
from llminfer.basics.tool_definitions import guidellm_tpot, vllm_tpot, vllm_tpot_for_goodput
from llminfer.core.philox import as_uniform

CHAPTER = Path(__file__).parents[2] / "chapters" / "3.1-basics.md"
PARTS = ("Pitfalls", "Questions", "Exercises", "Sources")

LLAMA, LLAMA_70B, MIXTRAL = preset("llama-3-8b"), preset("llama-3-70b"), preset("mixtral-8x7b")
LLAMA_2 = preset("llama-2-7b")
H100, V5E, RTX = device("h100-sxm"), device("tpu-v5e"), device("rtx-4070")
D, H, K, E, V = LLAMA.width, LLAMA.heads, LLAMA.kv_heads, LLAMA.head_width, LLAMA.vocabulary

COUNT = parameter_count(LLAMA)
TOKEN_KV = step_costs(LLAMA, decode(1))["attention"].read_bytes
FIRST = step_cost(LLAMA, decode(0))
ALL_ROWS = 2047 * 2 * D * V  # the head on the other rows of a prompt of 2048
MIXTRAL_READS = {batch: step_cost(MIXTRAL, decode(0, batch)) for batch in (1, 16)}
Q4_0 = 18 / 32  # bytes a weight
WRITING_S = 8192 / decode_ceiling(LLAMA, H100, 4096)
READING_S = step_time(LLAMA, prefill(8192), H100)

SKY = np.array([4.0, 3.4, 2.9, 2.6, 1.9, 1.3, 0.6, -0.2, -0.9, -2.0])  # the example of 3.1.6
MODEL, COLD = 100 * softmax(SKY), 100 * softmax(SKY / 0.5)
# The request of 3.1.8: sent at 0, 3 tokens at 0.5 s, then one every 0.25 s up to 2.5 s.
WORKED = RequestTrace(0.0, 0.0, (Chunk(0.5, 3), *(Chunk(0.5 + 0.25 * i) for i in range(1, 9))), 2.5)
BUNDLED = RequestTrace(0.0, 0.0, (Chunk(0.5), *(Chunk(0.5 + 0.2 * i, 4) for i in range(1, 11))), 2.5)
ROUNDS_UP = 2.0**-25  # of all float64 below 1, those that become 1 as float32


CLAIMS = [
    # pitfalls
    ("qkv of Llama-3-8B is {} + {} + {} wide and a third of it {:.0f}", H * E, K * E, K * E, (H + 2 * K) * E / 3),
    *((f"{name} ({{:.0f}}, really {{}})", PRESETS[key].width // PRESETS[key].heads, PRESETS[key].head_width)
      for name, key in (("Qwen3-0.6B", "qwen3-0.6b"), ("Qwen3-32B", "qwen3-32b"), ("Gemma-2-2B", "gemma-2-2b"),
                        ("gpt-oss", "gpt-oss-20b"), ("gpt-oss", "gpt-oss-120b"))),
    ("At a context of 4096 the cache of one sequence is {:.1f} % of what the same step reads of the weights",
     100 * 4096 * TOKEN_KV / FIRST.bytes),
    ("Llama-2-7B does not, and needs {:,.0f} bytes a token", step_costs(LLAMA_2, decode(1))["attention"].read_bytes),
    ("4096 tokens of Llama-3-8B are {:,.0f} bytes: {:.0f} MB, or {:.0f} MiB",
     4096 * TOKEN_KV, 4096 * TOKEN_KV / 1e6, 4096 * TOKEN_KV / 2**20),
    ("8192 tokens of Llama-2-13B take {:.2f}; that is GB, and {:.2f} GiB",
     step_costs(preset("llama-2-13b"), decode(8192))["attention"].read_bytes / 1e9,
     step_costs(preset("llama-2-13b"), decode(8192))["attention"].read_bytes / 2**30),
    ("Dense it is {:.0f}. Who takes the first puts the ridge at {:.0f}", H100.flops() / 1e12, 1979e12 / H100.bandwidth),
    ("It has {:g}; the critical batch would be {:.0f} instead of {:.0f}",
     V5E.bandwidth / 1e12, critical_batch(replace(V5E, bandwidth=1.6e12)), critical_batch(V5E)),
    *(("leaves room for the same number: {} in each case",
       max_batch(LLAMA_70B, V5E, 8192, weights=dtype, kv=dtype, devices=chips))
      for dtype, chips in (("bfloat16", 16), ("int8", 8), ("int4", 4))),
    ("as {:.2f} ms with a small batch, which is 128 layers, and as {:.2f} ms with a large one, which is 80. With 128 "
     "the second is {:.1f} ms",
     4 * 128 * 10e-6 * 1e3, 512 * 4 * 80 * 16384 / 300e9 * 1e3, 512 * 4 * 128 * 16384 / 300e9 * 1e3),
    ("is left with {:.1f} % for p = 0.9; for p = 0.4 nothing is left, as blue alone has {:.1f} %",
     MODEL[np.cumsum(MODEL) <= 90].sum(), MODEL[0]),
    ("With V = {:,} it happens in every {:.0f}nd draw", V, 1 / (1 - (1 - ROUNDS_UP) ** V)),
    ("E2E / N is {:.1f} ms where the tokens after the first took {:.0f}",
     1e3 * guidellm_tpot(WORKED), 1e3 * vllm_tpot(WORKED)),
    # answers
    ("A step reads {:.1f} GB (the {:.1f} GB of the weights less the embedding table), at 8 × {:.2f} TB/s: {:.1f} "
     "tokens/s. The token costs {:.1f} GFLOP",
     step_cost(LLAMA_70B, decode(0)).bytes / 1e9, 2 * parameter_count(LLAMA_70B).total / 1e9, H100.bandwidth / 1e12,
     decode_ceiling(LLAMA_70B, H100, devices=8), step_cost(LLAMA_70B, decode(0)).flops / 1e9),
    ("does not fit an RTX 4070 with {:.0f} GB", RTX.memory_bytes / 1e9),
    ("The weights take {:.2f} GB, of which a decode reads {:.2f} GB: {:.1f} tokens/s at {:g} TB/s",
     COUNT.total * Q4_0 / 1e9, step_cost(LLAMA, decode(0), weights=Q4_0).bytes / 1e9,
     decode_ceiling(LLAMA, RTX, weights=Q4_0), RTX.bandwidth / 1e12),
    ("the critical batch falls from {:.0f} to {:.0f} tokens", critical_batch(RTX), critical_batch(RTX, Q4_0)),
    ("{:.2f} GB / ({:,.0f} × 8192 bytes) = {:.2f}, so from {:.0f} on",
     FIRST.bytes / 1e9, TOKEN_KV, FIRST.bytes / (8192 * TOKEN_KV), math.ceil(FIRST.bytes / (8192 * TOKEN_KV))),
    ("Reading: {:.0f} ms, compute-bound. Writing: about {:.1f} s", 1e3 * READING_S, WRITING_S),
    ("That is {:.0f} times as long", WRITING_S / READING_S),
    ("reads {:.1f} GB for one token but {:.1f} GB for 16. Being compute-bound needs X/k = {:.0f} times the tokens",
     MIXTRAL_READS[1].bytes / 1e9, MIXTRAL_READS[16].bytes / 1e9, MIXTRAL.moe.experts / MIXTRAL.moe.top_k),
    ("That it is {:.0f} % of the dense roof", 100 * 1200e12 / H100.flops()),
    ("all rows through the head would be {:.2f} TFLOP more and {:.2f} GB of logits",
     ALL_ROWS / 1e12, 2048 * V * 4 / 1e9),
    ("At τ = 0.5 the probabilities are {:.1f}, {:.1f}, {:.1f}, {:.1f} % and less. The first two have {:.1f} %",
     *COLD[:4], COLD[:2].sum()),
    ("0.05 × {:.1f} = {:.1f} %, so four stay", COLD[0], 0.05 * COLD[0]),
    ("Yes, in {:.0f} % of draws", 100 * 1e-6 / (1e-6 + 1e-8)),
    ("The log probability before the mask, −{:.1f}, shows it", -math.log(1e-6)),
    ("all {} lie below it in {:.1f} % of all runs. $p^{{{}}} \\le 0.05$ holds up to p = {:.3f}, so that the {:.1f}th "
     "percentile", 200, 100 * 0.99**200, 200, highest_percent(200, sided=1) / 100, highest_percent(200, sided=1)),
    ("It sent four tokens at a time. vLLM counts gaps between chunks, 4 × {:.0f} ms; inference-perf has three gaps of "
     "0 for each of {:.0f} ms", 1e3 * vllm_tpot(BUNDLED), 1e3 * vllm_tpot(BUNDLED) * 4),
]  # fmt: skip

GIVEN = {
    *("512", "2048", "8192", "128", "16", "4096"),  # lengths and batches of a page or of ours
    *("18", "32", "80", "1979", "1.6", "43", "52", "67"),  # blocks of Q4_0; wrong numbers in print
    *("1000", "1,200", "100", "10"),  # of questions; 10⁻⁶ and 10⁻⁸
    *("0.9", "0.4", "0.5", "0.05", "95", "200", "50"),  # settings, confidence, requests and times of questions
    *("2009", "2011", "2013", "2014", "2018", "2019", "2020", "2021", "2022", "2023", "2024", "2025"),  # sources
    *("1959", "1968", "1971", "1999"),
}


def test_the_text_says_what_the_functions_give(text, claim):
    template, *values = claim
    assert template.format(*values) in text


def test_no_number_in_the_text_is_without_a_source(text, unproved_numbers):
    assert unproved_numbers(text, [template.format(*values) for template, *values in CLAIMS], GIVEN) == []


# Pitfalls


def attention(q, k, v, mask=None):
    """The roadmap's function in NumPy, with the axes swapped as they should be."""
    scores = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask * -1e9
    return softmax(scores) @ v


def test_transpose_with_two_axes_raises_in_numpy():
    with pytest.raises(ValueError, match="axes don't match array"):
        np.zeros((2, 3, 5, 7)).transpose(-2, -1)


def test_the_wrong_sign_of_a_mask_shows_the_future():
    q, k, v = np.random.default_rng(0).normal(size=(3, 5, 8))
    visible = np.tril(np.ones((5, 5), bool))
    got = attention(q, k, v, mask=visible)  # a mask that says who is seen, where it should say who is not
    future = softmax(np.where(visible, -np.inf, q @ k.T / np.sqrt(8))[:-1]) @ v
    assert got[:-1] == pytest.approx(future, abs=1e-5)


def test_the_square_root_of_an_int_widens_float32_scores():
    q = np.ones((5, 8), np.float32)
    assert attention(q, q, q).dtype == (q @ q.T / np.sqrt(q.shape[-1])).dtype == np.float64
    assert (q @ q.T / math.sqrt(q.shape[-1])).dtype == np.float32


def test_the_two_conventions_of_pytorch_are_opposite():
    torch = pytest.importorskip("torch")
    x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
    visible = torch.ones(5, 5, dtype=torch.bool).tril()
    module = torch.nn.MultiheadAttention(8, 1, bias=False, batch_first=True)
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([torch.eye(8)] * 3))
        module.out_proj.weight.copy_(torch.eye(8))
        allowed = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=visible)
        forbidden, _ = module(x, x, x, attn_mask=~visible)
    assert torch.allclose(allowed, forbidden, atol=1e-6)


def test_heads_never_split_raise_nothing_and_differ():
    qkv = np.random.default_rng(0).normal(size=(2, 6, 3 * 32))
    q, k, v = np.split(qkv, 3, axis=-1)
    one_head = attention(q, k, v)
    split = [x.reshape(2, 6, 4, 8).swapaxes(1, 2) for x in (q, k, v)]
    four_heads = attention(*split).swapaxes(1, 2).reshape(2, 6, 32)
    assert one_head.shape == four_heads.shape
    assert np.abs(one_head - four_heads).max() > 0.1


def test_a_block_without_a_mask_shows_the_future():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 5, 8))
    later = v.copy()
    later[-1] += 1  # another last token
    unmasked = [attention(q, k, values)[0] for values in (v, later)]
    assert np.abs(unmasked[0] - unmasked[1]).max() > 0.01
    hidden = ~np.tril(np.ones((5, 5), bool))
    masked = [attention(q, k, values, hidden)[0] for values in (v, later)]
    np.testing.assert_array_equal(masked[0], masked[1])


def test_a_third_of_grouped_qkv_is_half_the_queries_and_later_meets_a_matrix_that_does_not_fit():
    qkv = np.zeros((2, (H + 2 * K) * E))
    q, k, v = np.split(qkv, 3, axis=-1)
    assert q.shape == k.shape == v.shape == (2, H * E // 2)  # nothing raises yet
    with pytest.raises(ValueError, match="mismatch"):
        attention(q, k, v) @ np.zeros((H * E, 1))


@pytest.mark.parametrize("name", ["qwen3-0.6b", "qwen3-32b", "gemma-2-2b", "gpt-oss-20b"])
def test_a_cache_sized_by_the_quotient_is_wrong_by_the_same_factor(name):
    config = PRESETS[name]
    quotient = config.width // config.heads
    by_the_page = 2 * config.layers * config.kv_heads * quotient * 2  # a token in bfloat16
    one, two = (step_costs(config, decode(context))["attention"].read_bytes for context in (1, 2))
    real = two - one  # sinks are read whatever the context
    assert quotient != config.head_width
    assert by_the_page / real == pytest.approx(quotient / config.head_width)


def test_a_cache_with_query_heads_is_four_times_too_large():
    """The shape [L, 2, B, H, S, D//H] of the roadmap, for one token in bfloat16."""
    assert LLAMA.layers * 2 * H * (D // H) * 2 == 4 * TOKEN_KV


def test_a_nucleus_that_stops_before_p_falls_short_of_it_or_is_empty():
    p = softmax(SKY)
    assert np.sum(np.cumsum(p) <= 0.9) == np.isfinite(apply_top_p(SKY, 0.9)).sum() - 1
    assert np.sum(np.cumsum(p) <= 0.4) == 0
    assert np.isfinite(apply_top_p(SKY, 0.4)).sum() == 1


def test_a_uniform_that_rounds_to_one_wins_whatever_its_logit():
    just_below, lower = np.float32(1 - ROUNDS_UP / 2), np.float32(1 - 3 * ROUNDS_UP)
    assert just_below == 1 > lower
    with np.errstate(divide="ignore"):
        assert -np.log(-np.log(just_below)) == np.inf
        assert -np.log(-np.log(np.float32(0))) == -np.inf
    largest = as_uniform(np.array([2**31 - 1], np.uint32))
    assert np.isfinite(gumbel(np.append(largest, np.float32(0)))).all()


def test_an_answer_of_one_token_keeps_every_promise_at_vllm_and_none_here():
    one = RequestTrace(0.0, 0.0, (Chunk(0.5),), 0.5)
    promise = Slo(tpot_s=0.001)
    assert vllm_tpot_for_goodput(one) <= 0.001
    assert promise.met_by(one) is None
    assert goodput([one], promise).requests_per_s == 0


# Questions


def test_what_stays_of_a_sharper_distribution():
    kept = np.isfinite(apply_top_p(apply_temperature(SKY, 0.5), 0.9)).sum()
    assert (kept, np.sum(COLD >= 0.05 * COLD[0])) == (3, 4)


def test_a_mask_leaves_the_log_probability_of_the_model_as_it_was():
    logits = np.log(np.array([1e-6, 1e-8, 1 - 1e-6 - 1e-8]))  # yes, no, all else
    assert log_softmax(logits)[0] == pytest.approx(-13.8, abs=0.05)
    assert softmax(logits[:2])[0] == pytest.approx(0.99, abs=0.001)


def test_four_tokens_at_a_time_as_two_tools_see_them():
    readings = {reading.tool: reading for reading in tool_readings(BUNDLED)}
    assert np.median(readings["vLLM"].itl_s) == pytest.approx(0.2)
    assert np.median(readings["inference-perf"].itl_s) == 0
    assert readings["vLLM"].tpot_s == pytest.approx(0.05)
    waits = readings["inference-perf"].itl_s[:4]
    assert waits == pytest.approx((0.2, 0, 0, 0))
