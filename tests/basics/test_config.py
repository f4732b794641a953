"""ModelConfig: what follows from its numbers, and which numbers contradict each other."""

from dataclasses import FrozenInstanceError, replace

import pytest

from llminfer.basics.config import MlaSpec, ModelConfig, MoeSpec, RopeSpec

PLAIN = ModelConfig("plain", layers=4, width=64, heads=8, kv_heads=2, head_width=8, feed_forward=128, vocabulary=100,
                    context=512)  # fmt: skip


def test_a_group_of_query_heads_shares_a_key_head():
    assert PLAIN.group == 4


def test_a_config_never_changes():
    with pytest.raises(FrozenInstanceError):
        PLAIN.layers = 5


def test_configs_serve_as_keys():
    assert {PLAIN: 1}[replace(PLAIN)] == 1


def test_attention_scales_by_the_root_of_the_key_width():
    spec = PLAIN.attention(0)
    assert (spec.kv_heads, spec.key_width, spec.value_width, spec.scale) == (2, 8, 8, 8**-0.5)


def test_a_query_scale_of_its_own_wins():
    assert replace(PLAIN, query_scale=0.25).attention(0).scale == 0.25


def test_each_layer_has_its_own_window():
    config = replace(PLAIN, windows=(16, None, 16, None), sinks=True, attention_soft_cap=50.0)
    assert [config.attention(layer).window for layer in range(4)] == [16, None, 16, None]
    assert config.attention(1).sinks
    assert config.attention(1).soft_cap == 50.0


def test_layers_with_a_window_turn_by_the_local_rope():
    far, near = RopeSpec(theta=1e6), RopeSpec(theta=1e4)
    config = replace(PLAIN, windows=(16, None, 16, None), rope=far, local_rope=near)
    assert [config.rope_of(layer) for layer in range(4)] == [near, far, near, far]
    assert replace(config, local_rope=None).rope_of(0) == far


def test_experts_start_at_the_first_moe_layer():
    config = replace(PLAIN, moe=MoeSpec(experts=8, top_k=2, expert_width=32, first_layer=3))
    assert [config.is_moe(layer) for layer in range(4)] == [False, False, False, True]
    assert not PLAIN.is_moe(0)


def test_mla_attends_to_one_latent_whose_front_is_the_value():
    config = replace(PLAIN, mla=MlaSpec(kv_rank=16, rope_width=4, nope_width=8, value_width=6))
    spec = config.attention(0)
    assert (spec.kv_heads, spec.key_width, spec.value_width, spec.shared_kv) == (1, 20, 16, True)
    assert spec.scale == 12**-0.5  # of the key as it is before absorption: 8 unrotated elements and 4 rotated
    assert config.rope_width == 4


@pytest.mark.parametrize("field", ["layers", "width", "heads", "kv_heads", "head_width", "feed_forward", "context"])
def test_a_count_below_one_is_refused_by_name(field):
    with pytest.raises(ValueError, match=f"{field} of 'plain' must be at least 1, got 0"):
        replace(PLAIN, **{field: 0})


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match="multiple of kv_heads, got 8 and 3"):
        replace(PLAIN, kv_heads=3)


def test_rope_wants_an_even_width():
    with pytest.raises(ValueError, match="even, got 7"):
        replace(PLAIN, head_width=7)
    assert replace(PLAIN, head_width=7, positions="learned").head_width == 7


def test_windows_want_one_entry_a_layer():
    with pytest.raises(ValueError, match=r"one entry per layer, got 2 for 4 layers"):
        replace(PLAIN, windows=(16, None))


def test_a_window_sees_at_least_the_token_itself():
    with pytest.raises(ValueError, match="at least 1 token"):
        replace(PLAIN, windows=(0, 1, 1, 1))


@pytest.mark.parametrize("top_k", [0, 9])
def test_a_token_chooses_among_the_experts_there_are(top_k):
    with pytest.raises(ValueError, match=rf"1\.\.8 \(the experts\), got {top_k}"):
        replace(PLAIN, moe=MoeSpec(experts=8, top_k=top_k, expert_width=32))


MOE = MoeSpec(experts=8, top_k=4, expert_width=32)
MLA = MlaSpec(kv_rank=16, rope_width=4, nope_width=8, value_width=6)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("spec", "changes", "message"),
    [
        (PLAIN, {"norm": "x"}, "norm must be one of 'rmsnorm', 'layernorm', got 'x'"),
        (PLAIN, {"positions": "abs"}, "positions must be one of 'rope', 'learned', got 'abs'"),
        (PLAIN, {"layers": 1.5}, "layers of 'plain' must be at least 1, got 1.5; counts are whole numbers"),
        (PLAIN, {"norm_eps": 0.0}, "norm_eps of 'plain' must be positive and finite, got 0"),
        (PLAIN, {"norm_eps": float("nan")}, "norm_eps of 'plain' must be positive and finite, got nan"),
        (PLAIN, {"attention_soft_cap": -1.0}, "attention_soft_cap of 'plain' must be positive and finite, got -1"),
        (PLAIN, {"final_soft_cap": 0.0}, "final_soft_cap of 'plain' must be positive and finite, got 0"),
        (MLA, {"kv_rank": 0}, "kv_rank of 'MlaSpec' must be at least 1, got 0"),
        (MLA, {"q_rank": 0}, "q_rank of 'MlaSpec' must be at least 1, got 0"),
        (MOE, {"expert_width": -1}, "expert_width of 'MoeSpec' must be at least 1, got -1"),
        (MOE, {"shared_width": -1}, "shared_width of 'MoeSpec' must be at least 0, got -1"),
        (MOE, {"scoring": "argmax"}, "scoring must be one of .* got 'argmax'"),
        (MOE, {"groups": 3}, "8 experts, 3 groups and 1 top_groups"),
        (MOE, {"groups": 2, "top_groups": 3}, "8 experts, 2 groups and 3 top_groups"),
        (MOE, {"groups": 4, "top_groups": 1}, "1 of 4 groups hold 2 of 8 experts, too few for top_k 4"),
        (RopeSpec(), {"scaling": "ntk"}, "scaling must be one of .* got 'ntk'"),
        (RopeSpec(), {"factor": 0.0}, "factor of a RopeSpec must be positive and finite, got 0"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(spec, changes, message):
    with pytest.raises(ValueError, match=message):
        replace(PLAIN, moe=replace(spec, **changes)) if spec is MOE else replace(spec, **changes)
