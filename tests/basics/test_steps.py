"""FLOPs and bytes of a step: identities, limits, and each rule on a model small enough to count by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llminfer.basics import steps
from llminfer.basics.config import MlaSpec, ModelConfig, MoeSpec
from llminfer.basics.parameters import parameter_count
from llminfer.basics.presets import PRESETS, preset
from llminfer.basics.steps import (
    Segment,
    decode,
    element_bytes,
    expected_experts,
    layer_kv_bytes,
    prefill,
    step_cost,
    step_costs,
    visible_pairs,
)

SMALL = ModelConfig("small", layers=2, width=8, heads=4, kv_heads=2, head_width=6, feed_forward=10, vocabulary=20,
                    context=64)  # fmt: skip
MIXED = [Segment(5, 0, sampled=0), Segment(1, 7), Segment(3, 2, sampled=3)]


def pairs_by_mask(new_tokens: int, context: int, window: int | None) -> int:
    """Count the ones of the mask itself."""
    query = context + np.arange(new_tokens)[:, None]
    key = np.arange(context + new_tokens)
    return int(((key <= query) & (key > query - (window or context + new_tokens))).sum())


@given(st.integers(1, 12), st.integers(0, 12), st.none() | st.integers(1, 26))
def test_visible_pairs_are_the_ones_of_the_mask(new_tokens, context, window):
    assert visible_pairs(new_tokens, context, window) == pairs_by_mask(new_tokens, context, window)


def test_a_prompt_computes_half_of_the_square_and_the_diagonal():
    assert visible_pairs(1000) == 1000 * 1000 / 2 + 1000 / 2


@given(st.integers(1, 30), st.integers(0, 30), st.integers(1, 29))
def test_a_prompt_cut_into_chunks_costs_the_same_attention(tokens, context, cut):
    cut = min(cut, tokens)
    whole = visible_pairs(tokens, context)
    rest = visible_pairs(tokens - cut, context + cut) if tokens > cut else 0
    assert visible_pairs(cut, context) + rest == whole


def test_every_part_of_a_small_step_by_hand():
    T, R, D, E, F, V, L = 9, 4, 8, 6, 10, 20, 2
    qkv, output = D * (4 + 2 * 2) * E, 4 * E * D
    pairs = 15 + 8 + (3 + 4 + 5)
    costs = step_costs(SMALL, MIXED, weights="int8", kv="float32")
    flops = {part: cost.flops for part, cost in costs.items() if cost.flops}
    assert flops == {
        "qkv": 2 * T * qkv * L,
        "output": 2 * T * output * L,
        "gate_up": 2 * T * D * 2 * F * L,
        "down": 2 * T * F * D * L,
        "attention": 2 * 4 * (E + E) * pairs * L,
        "head": 2 * R * D * V,
    }
    reads = {part: cost.read_bytes for part, cost in costs.items()}
    assert reads == {
        "embedding": T * D,
        "norms": (2 * L + 1) * D,
        "qkv": qkv * L,
        "output": output * L,
        "gate_up": D * 2 * F * L,
        "down": F * D * L,
        "attention": (0 + 7 + 2) * 2 * (E + E) * 4 * L,
        "head": D * V,
    }
    assert {part: cost.write_bytes for part, cost in costs.items() if cost.write_bytes} == {
        "attention": T * 2 * (E + E) * 4 * L
    }


def test_the_step_is_the_sum_of_its_parts():
    costs = step_costs(SMALL, MIXED).values()
    assert step_cost(SMALL, MIXED).flops == sum(cost.flops for cost in costs)
    assert step_cost(SMALL, MIXED).bytes == sum(cost.bytes for cost in costs)


@pytest.mark.parametrize("name", [name for name in PRESETS if not PRESETS[name].moe])
def test_a_step_of_a_dense_model_reads_every_weight_but_the_tables_it_looks_up_in(name):
    config, count = preset(name), parameter_count(preset(name))
    costs = step_costs(config, decode(0))
    looked_up = costs["embedding"].read_bytes
    read_as_head = config.width * config.vocabulary if config.tied else 0
    expected = count.total - count.embedding + read_as_head
    assert sum(cost.read_bytes for cost in costs.values()) - looked_up == 2 * expected


@pytest.mark.parametrize("name", [name for name in PRESETS if PRESETS[name].moe])
def test_one_token_reads_the_active_weights_and_a_huge_batch_all(name):
    config, count = preset(name), parameter_count(preset(name))

    def weights_read(tokens: int) -> float:
        costs = step_costs(config, [Segment(tokens)])
        return sum(cost.read_bytes for part, cost in costs.items() if part != "embedding") / 2

    assert weights_read(1) == pytest.approx(count.active - count.embedding, rel=1e-12)
    assert weights_read(100_000) == pytest.approx(count.total - count.embedding, rel=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_a_token_costs_two_flops_a_parameter_of_the_matrices_it_meets(name):
    """The rule of thumb 2N, in its exact form: without norms, biases, sinks and tables; attention is on top."""
    config, count = preset(name), parameter_count(preset(name))
    costs = step_costs(config, decode(0))
    flops = sum(cost.flops for part, cost in costs.items() if part != "attention")
    head = config.width * config.vocabulary
    assert flops == pytest.approx(2 * (count.active - count.embedding - count.head + head), rel=2e-3)
    assert flops <= 2 * (count.active - count.embedding - count.head + head)


def test_logits_cost_only_for_sampled_tokens():
    all_rows = step_costs(SMALL, [Segment(6, sampled=6)])
    last_row = step_costs(SMALL, [Segment(6)])
    no_row = step_costs(SMALL, [Segment(6, sampled=0)])
    assert all_rows["head"].flops == 6 * last_row["head"].flops
    assert last_row["head"].read_bytes == 8 * 20 * 2
    assert no_row["head"].bytes == no_row["head"].flops == 0


def test_a_chunked_prompt_costs_the_flops_of_the_whole_but_reads_the_weights_again():
    whole = step_costs(SMALL, prefill(10))
    chunks = [step_costs(SMALL, [Segment(6, 0, sampled=0)]), step_costs(SMALL, [Segment(4, 6)])]
    assert sum(c["attention"].flops for c in chunks) == whole["attention"].flops
    assert sum(c["qkv"].flops for c in chunks) == whole["qkv"].flops
    assert sum(c["qkv"].read_bytes for c in chunks) == 2 * whole["qkv"].read_bytes


def test_batching_reads_weights_once_and_every_cache():
    one, many = step_costs(SMALL, decode(9)), step_costs(SMALL, decode(9, batch=5))
    assert many["qkv"].read_bytes == one["qkv"].read_bytes
    assert many["attention"].read_bytes == 5 * one["attention"].read_bytes
    assert many["qkv"].flops == 5 * one["qkv"].flops


def test_a_window_bounds_what_a_decode_reads_and_computes():
    config = replace(SMALL, windows=(4, None))
    token_bytes = layer_kv_bytes(config, 0)
    cost = step_costs(config, decode(50))["attention"]
    assert cost.read_bytes == token_bytes * (3 + 50)  # the window holds the new token itself
    assert cost.flops == 2 * 4 * (6 + 6) * (4 + 51)


def test_sharing_key_heads_shrinks_the_cache_and_not_the_arithmetic():
    shared, own = step_costs(SMALL, decode(50)), step_costs(replace(SMALL, kv_heads=4), decode(50))
    assert own["attention"].flops == shared["attention"].flops
    assert own["attention"].read_bytes == 2 * shared["attention"].read_bytes


def test_mla_keeps_one_latent_a_token_whatever_the_heads():
    config = preset("deepseek-v3")
    assert layer_kv_bytes(config, 0) == (512 + 64) * 2
    assert layer_kv_bytes(replace(config, heads=16, kv_heads=16), 0) == (512 + 64) * 2


def test_mla_decodes_absorbed_and_prefills_unfolded():
    config = replace(preset("deepseek-v3"), layers=1, moe=None)
    one = step_costs(config, decode(4096))
    prompt = step_costs(config, prefill(4096))
    assert one["attention"].flops == 2 * 128 * (2 * 512 + 64) * 4097
    assert one["k_up"].flops == 2 * 128 * 128 * 512
    assert prompt["attention"].flops == 2 * 128 * (192 + 128) * visible_pairs(4096)
    assert prompt["k_up"].flops == 4096 * one["k_up"].flops


@given(st.integers(1, 3000), st.integers(0, 100_000))
def test_mla_takes_the_form_with_fewer_flops(tokens, context):
    config = replace(PRESETS["deepseek-v3"], layers=1, moe=None)
    mla, pairs = config.mla, visible_pairs(tokens, context)
    up = 2 * 128 * mla.kv_rank * (mla.nope_width + mla.value_width)
    absorbed = tokens * up + 2 * 128 * (2 * mla.kv_rank + mla.rope_width) * pairs
    unfolded = (context + tokens) * up + 2 * 128 * (mla.nope_width + mla.rope_width + mla.value_width) * pairs
    costs = step_costs(config, [Segment(tokens, context)])
    assert sum(costs[part].flops for part in ("k_up", "v_up", "attention")) == min(absorbed, unfolded)


def test_expected_experts_agrees_with_drawing_them():
    rng = np.random.default_rng(0)
    drawn = [len({e for _ in range(6) for e in rng.permutation(32)[:4]}) for _ in range(4000)]
    assert expected_experts(32, 4, 6) == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(4000))


def test_one_token_touches_top_k_experts_and_many_touch_all():
    assert expected_experts(128, 8, 1) == pytest.approx(8)
    assert expected_experts(128, 8, 0) == 0
    assert expected_experts(128, 8, 10_000) == pytest.approx(128)
    assert expected_experts(8, 8, 1) == 8


def test_experts_cost_the_flops_of_the_chosen_and_the_bytes_of_the_touched():
    config = replace(SMALL, moe=MoeSpec(experts=8, top_k=2, expert_width=10, shared_width=5, first_layer=1))
    costs = step_costs(config, decode(0, batch=3), weights="float32")
    assert costs["gate_up"].read_bytes == 8 * 20 * 4  # layer 0 is dense
    assert costs["experts.gate_up"].flops == 3 * 2 * (2 * 8 * 20)
    assert costs["experts.gate_up"].read_bytes == pytest.approx((1 - 0.75**3) * 8 * (8 * 20 * 4))
    assert costs["shared.down"].flops == 3 * 2 * 5 * 8
    assert costs["router"].flops == 3 * 2 * 8 * 8


def test_biases_are_read_and_cost_no_flops():
    plain, biased = (step_costs(replace(SMALL, qkv_bias=bias), decode(0))["qkv"] for bias in (False, True))
    assert biased.flops == plain.flops
    assert biased.read_bytes - plain.read_bytes == 2 * (4 + 2 * 2) * 6 * 2


def test_biases_of_experts_are_read_and_cost_no_flops():
    moe = MoeSpec(experts=8, top_k=2, expert_width=10)
    plain, biased = (
        step_costs(replace(SMALL, moe=replace(moe, expert_bias=bias)), decode(0))["experts.down"]
        for bias in (False, True)
    )
    assert biased.flops == plain.flops
    assert biased.read_bytes - plain.read_bytes == pytest.approx(2 * 2 * 8 * 2)  # layers, chosen, D, bytes


def test_sinks_and_biases_are_read_with_the_part_they_belong_to():
    parts = step_costs(preset("gpt-oss-20b"), decode(0)).keys()
    matrices = {"qkv", "output", "router", "experts.gate_up", "experts.down", "head"}
    assert parts == matrices | {"embedding", "norms", "attention"}


def test_learned_positions_are_looked_up_too():
    learned = replace(SMALL, positions="learned")
    assert step_costs(learned, prefill(5))["embedding"].read_bytes == 2 * step_costs(SMALL, prefill(5))[
        "embedding"
    ].read_bytes  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 4), ("bfloat16", 2), ("bf16", 2), ("fp16", 2), ("float8_e4m3fn", 1), ("int8", 1), ("uint4", 0.5),
     ("fp4", 0.5), (18 / 32, 18 / 32)],
)  # fmt: skip
def test_an_element_takes_the_bytes_its_type_names(dtype, size):
    assert element_bytes(dtype) == size


@pytest.mark.parametrize(
    "dtype", ["Q4_0", "half", "", "bfloat", "int0", "fp1000000", "fp\u0668", 0.0, -1.0, float("nan"), float("inf")]
)
def test_a_type_without_a_width_is_refused_with_the_way_out(dtype):
    with pytest.raises(ValueError, match="18 / 32 for Q4_0"):
        element_bytes(dtype)


def test_bytes_follow_the_types_of_weights_and_cache_alone():
    half, quarter = step_costs(SMALL, MIXED), step_costs(SMALL, MIXED, weights="int4", kv="int8")
    assert quarter["down"].bytes == half["down"].bytes / 4
    assert quarter["attention"].bytes == half["attention"].bytes / 2
    assert quarter["down"].flops == half["down"].flops


@pytest.mark.parametrize("arguments", [(0,), (1, -1), (1, 0, 2), (1, 0, -1)])
def test_a_segment_refuses_numbers_that_contradict_each_other(arguments):
    with pytest.raises(ValueError, match="got"):
        Segment(*arguments)


def test_a_step_without_segments_is_refused():
    with pytest.raises(ValueError, match="at least one segment"):
        step_cost(SMALL, [])


def test_top_k_beyond_the_experts_is_refused():
    with pytest.raises(ValueError, match=r"1\.\.4 \(the experts\), got 5"):
        expected_experts(4, 5, 1)


def test_layers_of_one_kind_are_counted_once_and_multiplied():
    config = replace(preset("gemma-3-4b"), mla=None)
    kinds = dict(steps._kinds_of_layers(config))
    assert kinds == {0: 29, 5: 5}
    assert dict(steps._kinds_of_layers(replace(SMALL, mla=MlaSpec(4, 2, 2, 2)))) == {0: 2}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prefill(4, -1), "batch must be finite and at least 1, got -1"),
        (lambda: decode(4, 0), "batch must be finite and at least 1, got 0"),
        (lambda: visible_pairs(-1), "new_tokens must be finite and at least 0, got -1"),
        (lambda: visible_pairs(1, -1), "context must be finite and at least 0, got -1"),
        (lambda: visible_pairs(3, 0, 0), "window must be finite and at least 1, got 0"),
        (lambda: expected_experts(8, 8, -1), "tokens must be finite and at least 0, got -1"),
    ],
)
def test_counts_that_cannot_be_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
