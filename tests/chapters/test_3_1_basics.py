"""Chapter 3.1 up to the roofline: every number in the text is what the functions give.

CLAIMS holds pieces of these PARTS of the chapter with the numbers left out, and what belongs there. A number in none of
them must be among GIVEN, the inputs that we chose or that somebody else published.
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
    NoCache,
    Segment,
    Transformer,
    attention_intensity,
    critical_batch,
    decode,
    decode_ceiling,
    device,
    expected_experts,
    gelu,
    generate,
    layernorm,
    load_model,
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
from llminfer.basics.parameters import layer_shapes, weight_shapes
from llminfer.core.cost import Cost

CHAPTER = Path(__file__).parents[2] / "chapters" / "3.1-basics.md"
PARTS = ("3.1", "3.1.1", "3.1.2", "3.1.3", "3.1.4")

LLAMA, MIXTRAL = preset("llama-3-8b"), preset("mixtral-8x7b")
H100, A100, V5E = device("h100-sxm"), device("a100-80gb"), device("tpu-v5e")
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
LLAMA_2 = preset("llama-2-7b")
GPT2 = preset("gpt2")
GPT2_SHAPES = layer_shapes(GPT2, 0)
GPT2_LAYER = sum(math.prod(shape) for shape in GPT2_SHAPES.values())


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
    # GPT-2, line by line
    ("has L = {}, D = {}, H = {}, E = {}, V = {:,} and a context of {}.",
     GPT2.layers, GPT2.width, GPT2.heads, GPT2.head_width, GPT2.vocabulary, GPT2.context),
    ("has {} rows. Token {} has none", weight_shapes(GPT2)["position_embedding"][0], GPT2.context + 1),
    ("reads {} columns as q, k, v, each of {} heads of {}", GPT2_SHAPES["qkv"][1], GPT2.heads, GPT2.head_width),
    ("one `@` is {} products", GPT2.heads),
    ("For 1024 tokens the scores are {} × 1024 × 1024 = {:,} numbers a layer, {:.0f} MB in float32",
     GPT2.heads, GPT2.heads * 1024**2, 4 * GPT2.heads * 1024**2 / 1e6),
    ("is the {:.0f} of a head of {}", math.sqrt(GPT2.head_width), GPT2.head_width),
    ("so that its {:,} parameters count once", GPT2.vocabulary * GPT2.width),
    ("| embedding | {:,} × {} | {:,} |", GPT2.vocabulary, GPT2.width, GPT2.vocabulary * GPT2.width),
    ("| positions | {} × {} | {:,} |", GPT2.context, GPT2.width, GPT2.context * GPT2.width),
    *((f"| {name}, and bias | {{}} × {{}} | {{:,}} |", *GPT2_SHAPES[name],
       math.prod(GPT2_SHAPES[name]) + GPT2_SHAPES[name + ".bias"][0]) for name in ("qkv", "output", "up", "down")),
    ("| two norms, gain and bias | {} each | {:,} |", GPT2.width, 4 * GPT2.width),
    ("| *one layer* | | *{:,}* |", GPT2_LAYER),
    ("| {} layers | | {:,} |", GPT2.layers, GPT2.layers * GPT2_LAYER),
    ("| final norm | {} | {:,} |", GPT2.width, 2 * GPT2.width),
    ("| **all** | | **{:,}** |", parameter_count(GPT2).total),
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
]  # fmt: skip

GIVEN = {
    *("512", "513", "767", "256", "2048", "8192", "128", "64", "16", "4096"),  # lengths and batches we chose
    "63",  # the last of E/2 pairs
    *("80", "104.9"),  # the A100 80 GB, and the tokens/s of Llama-2-7B on it: gpt-fast, README
    *("295", "200"),  # the ridge as a number of tokens; positions of a picture
}


def test_the_text_says_what_the_functions_give(text, claim):
    template, *values = claim
    assert template.format(*values) in text


def test_no_number_in_the_text_is_without_a_source(text, unproved_numbers):
    assert unproved_numbers(text, [template.format(*values) for template, *values in CLAIMS], GIVEN) == []


def test_a_changed_number_would_be_noticed(text, unproved_numbers):
    template, *values = CLAIMS[-1]
    changed = text.replace(template.format(*values), template.format(*(1.2 + i for i in range(len(values)))))
    assert changed != text
    assert len(unproved_numbers(changed, [template.format(*values) for template, *values in CLAIMS], GIVEN)) > 0


def code_of(name: str) -> str:
    """The function of this name as the chapter shows it."""
    blocks = re.findall(r"^```python\n(.*?)^```", CHAPTER.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    [shown] = [block for block in blocks if block.startswith(f"def {name}(")]
    return shown


# 3.1.1


def test_the_loop_in_the_text_is_the_loop_of_the_library():
    """All its lines, in order; the library has checks, a docstring and longer comments between them."""
    shown = code_of("generate")
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


# GPT-2, line by line

SMALL = replace(
    GPT2, layers=3, width=48, heads=4, kv_heads=4, head_width=12, feed_forward=192, vocabulary=97, context=32
)
IDS = np.array([5, 96, 0, 17, 17, 3, 60, 41, 2])


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: 0.3 * rng.normal(size=shape) for name, shape in weight_shapes(SMALL).items()}


def run_gpt2(code: str, weights: dict, layers: int, heads: int, ids: np.ndarray) -> np.ndarray:
    """Run code that defines `gpt2` with the names that the text says it has."""
    names = {"np": np, "math": math, "layernorm": layernorm, "softmax": softmax, "gelu": gelu}
    exec(code, names)
    return names["gpt2"](ids, weights, layers, heads)


def test_the_gpt2_of_the_text_is_the_transformer_of_the_library(weights):
    got = run_gpt2(code_of("gpt2"), weights, SMALL.layers, SMALL.heads, IDS)
    model = Transformer(SMALL, weights)
    hidden = model.hidden(IDS, np.arange(len(IDS)), NoCache(SMALL).step([0], [len(IDS)]))
    assert got.shape == (1, SMALL.vocabulary)
    assert got == pytest.approx(model.head(hidden[-1:]), rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_the_gpt2_of_the_text_is_that_of_transformers(tmp_path):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    shape = {"vocab_size": 97, "n_positions": 32, "n_embd": 48, "n_layer": 3, "n_head": 4}
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
        expected = theirs(torch.tensor(IDS[None])).logits[0, -1:].numpy()
    theirs.save_pretrained(tmp_path)
    loaded = {name: getattr(weight, "array", weight) for name, weight in load_model(tmp_path).weights.items()}
    got = run_gpt2(code_of("gpt2"), loaded, shape["n_layer"], shape["n_head"], IDS)
    assert got == pytest.approx(expected, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("qkv.reshape(T, 3, H, -1)", "qkv.reshape(T, H, 3, -1).swapaxes(1, 2)"),
        ("o.swapaxes(0, 1).reshape(T, -1)", "o.reshape(T, -1)"),
        ("math.sqrt(q.shape[-1])", "math.sqrt(x.shape[-1])"),
        ("np.where(visible, scores, -np.inf)", "scores"),
    ],
)
def test_lines_that_run_as_well_and_are_wrong(weights, line, wrong):
    code = code_of("gpt2")
    assert code.count(line) == 1
    arguments = weights, SMALL.layers, SMALL.heads, IDS
    right, other = run_gpt2(code, *arguments), run_gpt2(code.replace(line, wrong), *arguments)
    assert other.shape == right.shape
    assert np.abs(other - right).max() > 0.01


# 3.1.3


def test_attention_of_full_heads_overtakes_its_projections_at_4d_when_causal():
    assert full_heads(4 * D) == pytest.approx(1, rel=1e-3)
    assert full_heads(2 * D) == pytest.approx(0.5, rel=1e-3)


# 3.1.4


def test_the_batch_that_leaves_the_intensity_of_attention_where_it_is():
    one, many = (step_costs(LLAMA, decode(8192, size))["attention"].intensity for size in (1, 64))
    assert one == pytest.approx(many)
