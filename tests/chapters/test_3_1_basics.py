"""Chapter 3.1: every number in the text is what the functions give, and every pitfall is as bad as it says.

CLAIMS holds pieces of the chapter with the numbers left out, and what belongs there. A number in none of them must be
among GIVEN, the inputs that we chose or that somebody else published.
"""

import ast
import inspect
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llminfer.basics import (
    PRESETS,
    Segment,
    attention_intensity,
    critical_batch,
    decode,
    decode_ceiling,
    device,
    expected_experts,
    generate,
    max_batch,
    parameter_count,
    prefill,
    preset,
    rope,
    rope_frequencies,
    softmax,
    step_cost,
    step_costs,
    step_time,
)
from llminfer.basics.parameters import layer_shapes
from llminfer.core.cost import Cost

CHAPTER = Path(__file__).parents[2] / "chapters" / "3.1-basics.md"

LLAMA, LLAMA_70B, MIXTRAL = preset("llama-3-8b"), preset("llama-3-70b"), preset("mixtral-8x7b")
H100, A100, V5E, RTX = device("h100-sxm"), device("a100-80gb"), device("tpu-v5e"), device("rtx-4070")
D, H, K, E, V = LLAMA.width, LLAMA.heads, LLAMA.kv_heads, LLAMA.head_width, LLAMA.vocabulary

COUNT = parameter_count(LLAMA)
SIZES = {name: math.prod(shape) for name, shape in layer_shapes(LLAMA, 0).items()}
LAYER = sum(SIZES.values())
MATRICES = LAYER - 2 * SIZES["attention_norm"]
TOKEN_KV = step_costs(LLAMA, decode(1))["attention"].read_bytes
ONE, MANY, PROMPT = (step_cost(LLAMA, step) for step in (decode(2048), decode(2048, 64), prefill(2048)))
FIRST = step_cost(LLAMA, decode(0))
ALL_ROWS = 2047 * 2 * D * V  # the head on the other rows of a prompt of 2048
RECOMPUTED = sum(range(512, 768))
TURNS = 2 * math.pi / rope_frequencies(LLAMA.rope, E)
PROJECTIONS = SIZES["qkv"] + SIZES["output"]
GATE_UP = layer_shapes(LLAMA, 0)["gate_up"]
MIXTRAL_READS = {batch: step_cost(MIXTRAL, decode(0, batch)) for batch in (1, 16)}
V3, QWEN = preset("deepseek-v3").moe, preset("qwen3-30b-a3b").moe
Q4_0 = 18 / 32  # bytes a weight
WRITING_S = 8192 / decode_ceiling(LLAMA, H100, 4096)
READING_S = step_time(LLAMA, prefill(8192), H100)
LLAMA_2 = preset("llama-2-7b")


def full_heads(tokens: int) -> float:
    """Attention over its four projections for a model of D 4096 with K = H, a prompt of `tokens`, causal."""
    costs = step_costs(replace(LLAMA, kv_heads=H), prefill(tokens))
    return costs["attention"].flops / (costs["qkv"].flops + costs["output"].flops)


def ms(segments: list[Segment]) -> float:
    return 1e3 * step_time(LLAMA, segments, H100)


def row(name: str, cost: Cost, intensity: str) -> tuple:
    def power(value: float) -> str:
        exponent = 12 if value >= 1e12 else 9
        return f"{value / 10**exponent:#.3g} × 10{'¹²' if exponent == 12 else '⁹'}"

    return (f"| {name} | {{}} | {{}} | {intensity} |", power(cost.flops), power(cost.bytes), cost.intensity)


def device_row(name: str, key: str) -> tuple:
    found = device(key)
    return (f"| {name} | {{:g}} | {{:g}} | {{:.0f}} |", found.flops() / 1e12, found.bandwidth / 1e12, found.ridge())


CLAIMS = [
    # before 3.1.1
    ("An H100 does {:.0f} × 10¹² operations a second", H100.flops() / 1e12),
    ("reads {:.2f} × 10¹² bytes a second", H100.bandwidth / 1e12),
    ("That is {:.0f} operations for each byte.", H100.ridge()),
    ("does {:.2f} % of the arithmetic it could do", 100 * FIRST.intensity / H100.ridge()),
    # 3.1.1
    ("the vocabulary of Llama 3 has {:,} of them", V),
    ("a matrix of {} × {:,}", D, V),
    ("sends 512 + 513 + … + 767 = {:,} tokens", RECOMPUTED),
    ("Each of the {} tokens would have been enough once", 512 + 255),
    ("does {:.0f} times the work", RECOMPUTED / (512 + 255)),
    # 3.1.2
    ("L = {} layers, D = {}, H = {} query heads, K = {} key/value heads, E = {}, F = {}",
     LLAMA.layers, D, H, K, E, LLAMA.feed_forward),
    ("G = H/K, here {}", LLAMA.group),
    ("For Llama 3 θ is {:,.0f}: pair 0 turns once in {:.2f} tokens, pair 63 once in {:,.0f}",
     LLAMA.rope.theta, TURNS[0], TURNS[63]),
    ("| embedding | {:,} × {} | {:,} |", V, D, COUNT.embedding),
    ("| qkv | {} × {} | {:,} |", D, (H + 2 * K) * E, SIZES["qkv"]),
    ("| output | {} × {} | {:,} |", H * E, D, SIZES["output"]),
    ("| gate_up | {} × {} | {:,} |", *GATE_UP, SIZES["gate_up"]),
    ("| down | {} × {} | {:,} |", LLAMA.feed_forward, D, SIZES["down"]),
    ("| two norms | {} each | {:,} |", D, SIZES["attention_norm"] + SIZES["feed_forward_norm"]),
    ("| *one layer* | | *{:,}* |", LAYER),
    ("| {} layers | | {:,} |", LLAMA.layers, LLAMA.layers * LAYER),
    ("| final norm | {} | {:,} |", D, D),
    ("| head | {} × {:,} | {:,} |", D, V, COUNT.head),
    ("| **all** | | **{:,}** |", COUNT.total),
    # 3.1.3
    ("at T = 295 it adds {:.0f} % for gate_up", 100 * 295 * sum(GATE_UP) / math.prod(GATE_UP)),
    ("costs {:.1f} GFLOP a token in place of {:.1f}", FIRST.flops / 1e9, 2 * COUNT.total / 1e9),
    ("would cost {:.2f} TFLOP more, {:.0f} % of the prefill, and take {:.2f} GB in float32",
     ALL_ROWS / 1e12, 100 * ALL_ROWS / PROMPT.flops, 2048 * V * 4 / 1e9),
    ("as much at $T = 2D$, or {} tokens for D = {}", 2 * D, D),
    ("it is {:,.0f} tokens against the projections, and {:,.0f} against all matrices of a layer",
     2 * PROJECTIONS / (2 * H * E), 2 * MATRICES / (2 * H * E)),
    ("in bfloat16 {:,.0f} bytes for Llama-3-8B ({:.0f} KiB)", TOKEN_KV, TOKEN_KV / 2**10),
    ("A context of {:,.0f} tokens is as many bytes as the weights; 16 sequences get there at {:,.0f} tokens each",
     FIRST.bytes / TOKEN_KV, FIRST.bytes / TOKEN_KV / 16),
    row("prefill of 2048 tokens", PROMPT, "{:,.0f}"),
    row("decode, batch 1, context 2048", ONE, "{:.2f}"),
    row("decode, batch 64, context 2048", MANY, "{:.1f}"),
    ("A prefill and a single decode read the same {:.1f} GB. One gets 2048 tokens", PROMPT.bytes / 1e9),
    ("A prefill and a single decode read the same {:.1f} GB. One gets 2048 tokens", ONE.bytes / 1e9),
    ("reads {} of {} experts for one token and {:.1f} for 16 tokens",
     MIXTRAL.moe.top_k, MIXTRAL.moe.experts, expected_experts(8, 2, 16)),
    ("The {:.1f} GB of a single decode become {:.1f} GB at batch 16, while the FLOPs stay at {:.1f} GFLOP a token",
     MIXTRAL_READS[1].bytes / 1e9, MIXTRAL_READS[16].bytes / 1e9, MIXTRAL_READS[1].flops / 1e9),
    ("stay at {:.1f} GFLOP a token", MIXTRAL_READS[16].flops / 16 / 1e9),
    ("with {} of {}, touches {:.0f} at batch 16",
     QWEN.top_k, QWEN.experts, expected_experts(QWEN.experts, QWEN.top_k, 16)),
    # 3.1.4
    device_row("A100 SXM 80 GB", "a100-80gb"),
    device_row("H100 SXM", "h100-sxm"),
    device_row("MI300X", "mi300x"),
    device_row("RTX 4070", "rtx-4070"),
    device_row("TPU v5e", "tpu-v5e"),
    ("is the ridge itself: {:.0f} tokens on an H100", critical_batch(H100)),
    ("On a TPU v5e: {:.0f} with bfloat16 weights and arithmetic, {:.0f} with int8 weights computed in bfloat16, "
     "{:.0f} again with int8 arithmetic",
     critical_batch(V5E), critical_batch(V5E, "int8"), critical_batch(V5E, "int8", "int8")),
    ("with int4 weights computed in bfloat16: {:.0f}.", critical_batch(H100, "int4")),
    ("for DeepSeek-V3, with {} of {}, {:,.0f} tokens on an H100",
     V3.top_k, V3.experts, critical_batch(H100) * V3.experts / V3.top_k),
    ("a step of Llama-3-8B reads {:.2f} GB. On an H100 that takes {:.2f} ms: no engine can exceed **{:.1f} tokens/s**",
     FIRST.bytes / 1e9, ms(decode(1)), decode_ceiling(LLAMA, H100, 1)),
    ("A published figure for the same case is {:.1f}. It divides the bandwidth by all {:,} bytes of the weights; but a "
     "decode reads one row of the embedding table, not its {:.2f} GB",
     H100.bandwidth / (2 * COUNT.total + TOKEN_KV), 2 * COUNT.total, 2 * COUNT.embedding / 1e9),
    ("{:.0f} % of a ceiling of {:.1f}", 100 * 104.9 / decode_ceiling(LLAMA_2, A100), decode_ceiling(LLAMA_2, A100)),
    ("takes the H100 at least {:.1f} ms, at {:,.0f} tokens/s: {:.0f} times the rate of decoding",
     ms(prefill(2048)), 2048e3 / ms(prefill(2048)),
     2048e3 / ms(prefill(2048)) / decode_ceiling(LLAMA, H100, 2048)),
    ("$\\beta / (S \\kappa)$ = {:,.0f} tokens/s on an H100", H100.bandwidth / (8192 * TOKEN_KV)),
    ("as G query heads use each key: {:.0f} for Llama-3-8B, against a ridge of {:.0f}",
     attention_intensity(1, 8192, LLAMA.group), H100.ridge()),
    ("{} sequences of 8192 tokens fit beside the weights in {:.0f} GB; they make at most {:,.0f} tokens/s, {:.0f} "
     "times the {:.0f} of a single one",
     max_batch(LLAMA, H100, 8192), H100.memory_bytes / 1e9, decode_ceiling(LLAMA, H100, 8192, 59),
     decode_ceiling(LLAMA, H100, 8192, 59) / decode_ceiling(LLAMA, H100, 8192), decode_ceiling(LLAMA, H100, 8192)),
    ("64 decodes behind 2048 tokens take {:.2f} ms on an H100", ms(decode(2048, 64))),
    ("Send the first 128 tokens of a new prompt along: {:.2f} ms", ms(decode(2048, 64) + [Segment(128)])),
    ("With 512 tokens the step is past the critical batch and takes {:.1f} ms; apart, the two take {:.1f} and {:.1f}.",
     ms(decode(2048, 64) + [Segment(512)]), ms(decode(2048, 64)), ms(prefill(512))),
    # pitfalls
    ("qkv of Llama-3-8B is {} + {} + {} wide", H * E, K * E, K * E),
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
]  # fmt: skip

GIVEN = {
    *("512", "513", "767", "256", "2048", "8192", "128", "64", "16", "4096"),  # lengths and batches we chose
    *("63", "18", "32"),  # the last of E/2 pairs, and the bytes and weights of a block of Q4_0
    *("80", "104.9"),  # the A100 80 GB, and the tokens/s of Llama-2-7B on it: gpt-fast, README
    *("16", "43", "52", "67"),  # chips and batches in the Scaling Book's table
    *("1979", "1.6"),  # NVIDIA's sparse TFLOP/s for the H100; TB/s of old tables for a TPU v5e
    *("200", "100", "1000", "1,200", "295"),  # of figures and questions, and the ridge as a number of tokens
    *("2009", "2019", "2020", "2021", "2022", "2023", "2024", "2025"),  # years of the sources
}


def claim_id(claim: tuple) -> str:
    return claim[0][:50]


@pytest.fixture(scope="module")
def text(read_prose) -> str:
    return read_prose(CHAPTER)


@pytest.mark.parametrize("claim", CLAIMS, ids=claim_id)
def test_the_text_says_what_the_functions_give(text, claim):
    template, *values = claim
    assert template.format(*values) in text


def test_no_number_in_the_text_is_without_a_source(text, unproved_numbers):
    assert unproved_numbers(text, [template.format(*values) for template, *values in CLAIMS], GIVEN) == []


def test_a_changed_number_would_be_noticed(text, unproved_numbers):
    template, *values = CLAIMS[-1]
    changed = text.replace(template.format(*values), template.format(1.23, 4.56))
    found = unproved_numbers(changed, [template.format(*values) for template, *values in CLAIMS], GIVEN)
    assert [number.split()[0] for number in found] == ["1.23", "4.56"]


# 3.1.1


def test_the_loop_in_the_text_is_the_loop_of_the_library():
    """All its lines, in order; the library has checks, a docstring and longer comments between them."""
    [shown] = re.findall(r"^```python\n(.*?)^```", CHAPTER.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    shown, source = (re.sub(r"  # .*", "", code) for code in (shown, inspect.getsource(generate)))
    remaining = iter(source.splitlines())
    assert [line for line in shown.splitlines()[1:] if line not in remaining] == []  # `in` moves on: order counts
    parameters = [argument.arg for argument in ast.parse(shown).body[0].args.args]
    assert parameters == list(inspect.signature(generate).parameters)


def test_the_largest_logit_is_the_largest_probability():
    logits = np.random.default_rng(0).normal(0, 5, (50, 300))
    assert (softmax(logits).argmax(axis=1) == logits.argmax(axis=1)).all()


# 3.1.2 and question 5


def test_scores_of_turned_queries_and_keys_depend_on_distance_alone():
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 7, 1, E))
    frequencies = rope_frequencies(LLAMA.rope, E)

    def scores(shift: int) -> np.ndarray:
        positions = np.arange(7) + shift
        return rope(q, positions, frequencies)[:, 0] @ rope(k, positions, frequencies)[:, 0].T

    assert scores(1000) == pytest.approx(scores(0), abs=1e-9)
    assert not np.allclose(rope(k, np.arange(7) + 1000, frequencies), rope(k, np.arange(7), frequencies), atol=0.1)


def test_a_dot_product_of_e_elements_has_variance_e():
    q, k = np.random.default_rng(0).normal(size=(2, 20_000, E))
    assert np.var((q * k).sum(axis=1)) == pytest.approx(E, rel=0.05)


# 3.1.3


def test_attention_of_full_heads_overtakes_its_projections_at_4d_when_causal():
    assert full_heads(4 * D) == pytest.approx(1, rel=1e-3)
    assert full_heads(2 * D) == pytest.approx(0.5, rel=1e-3)


# 3.1.4


def test_the_batch_that_leaves_the_intensity_of_attention_where_it_is():
    one, many = (step_costs(LLAMA, decode(8192, size))["attention"].intensity for size in (1, 64))
    assert one == pytest.approx(many)


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
