"""What cannot be meant is refused at once, by name and with the value; what is not said is off."""

import pickle
from dataclasses import asdict, replace

import numpy as np
import pytest

from llminfer.basics.logit_processors import process_logits
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.truncations import apply_top_k


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"temperature": -1.0}, "temperature must be a finite number of at least 0 .*, got -1.0"),
        ({"temperature": np.inf}, "temperature must be a finite number of at least 0 .*, got inf"),
        ({"temperature": np.nan}, "temperature must be a finite number of at least 0 .*, got nan"),
        ({"top_k": 0}, "top_k must be at least 1 .*, got 0"),
        ({"top_p": 0.0}, "top_p must lie above 0 and at most at 1 .*, got 0.0"),
        ({"top_p": 1.01}, "top_p must lie above 0 and at most at 1 .*, got 1.01"),
        ({"min_p": -0.1}, "min_p must lie in 0..1 .*, got -0.1"),
        ({"min_p": np.nan}, "min_p must lie in 0..1 .*, got nan"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be a finite number above 0 .*, got 0.0"),
        ({"presence_penalty": 2.5}, "presence_penalty must lie in -2..2 .*, got 2.5"),
        ({"frequency_penalty": np.nan}, "frequency_penalty must lie in -2..2 .*, got nan"),
        ({"logit_bias": {7: np.inf}}, "logit_bias of token 7 must be a number or -inf .*, got inf"),
        ({"logit_bias": {7: np.nan}}, "logit_bias of token 7 must be a number or -inf .*, got nan"),
        ({"bad_words": ((1, 2), ())}, r"a bad word needs at least one token, got \(\(1, 2\), \(\)\)"),
        ({"n": 0}, "n must be at least 1, got 0"),
        ({"n": 2}, "2 texts of temperature 0 would all be the same"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
        ({"min_tokens": -1}, r"min_tokens must lie in 0..128 \(max_tokens\), got -1"),
        ({"max_tokens": 3, "min_tokens": 4}, r"min_tokens must lie in 0..3 \(max_tokens\), got 4"),
        ({"stop": ("a", "")}, "stop string needs at least one character"),
        ({"logprobs": -1}, "logprobs must be at least 0"),
        ({"seed": 2**63}, r"seed must fit in 64 bits, -2\*\*63..2\*\*63 - 1, got 9223372036854775808"),
        ({"seed": -(2**63) - 1}, "seed must fit in 64 bits, .*, got -9223372036854775809"),
    ],
)
def test_params_that_cannot_be_meant_are_refused(params, complaint):
    with pytest.raises(ValueError, match=complaint):
        SamplingParams(**params)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"stop": "end"}, r"stop is a tuple of strings, got the string 'end'; write \('end',\)"),
        ({"bad_words": (7,)}, r"bad_words holds sequences of tokens, got the token 7; write \(7,\)"),
        ({"max_tokens": 2.5}, "max_tokens must be a whole number, got 2.5"),
        ({"max_tokens": True}, "max_tokens must be a whole number, got True"),
        ({"min_tokens": False}, "min_tokens must be a whole number, got False"),
        ({"top_k": 1.5}, "top_k must be a whole number, got 1.5"),
        ({"top_k": True}, "top_k must be a whole number, got True"),
        ({"seed": 1.0}, "seed must be a whole number, got 1.0"),
        ({"seed": None}, "seed must be a whole number, got None"),
        ({"n": "2"}, "n must be a whole number, got '2'"),
        ({"logprobs": True}, "logprobs must be a whole number, got True"),
        ({"temperature": True}, "temperature must be a number, got True"),
        ({"top_p": "0.9"}, "top_p must be a number, got '0.9'"),
        ({"repetition_penalty": None}, "repetition_penalty must be a number, got None"),
    ],
)
def test_values_of_another_kind_are_refused(params, complaint):
    with pytest.raises(TypeError, match=complaint):
        SamplingParams(**params)


@pytest.mark.usefixtures("without_shape_checks")
def test_top_k_by_itself_keeps_a_whole_number_of_tokens():
    with pytest.raises(TypeError, match="top_k must be a whole number, got 1.5"):
        apply_top_k(np.zeros(4), 1.5)


def test_what_is_not_said_is_off():
    logits = np.array([3.0, -np.inf, 2.0, 2.0, -5.0])
    np.testing.assert_array_equal(process_logits(logits, SamplingParams(), [0, 2], [2, 4]), logits)
    drawn = process_logits(logits, SamplingParams(temperature=1.0), [0, 2], [2, 4])
    np.testing.assert_array_equal(drawn, logits - 3.0)


def test_params_travel_to_other_processes_and_into_sets():
    params = SamplingParams(temperature=1.0, logit_bias={3: -1.0}, bad_words=((1, 2),))
    assert pickle.loads(pickle.dumps(params)) == params
    assert SamplingParams(**asdict(params)) == params
    assert len({params, replace(params), replace(params, seed=1)}) == 2


def test_what_the_ends_of_the_ranges_mean_is_allowed():
    SamplingParams(temperature=1e-9, top_k=1, top_p=1.0, min_p=1.0, presence_penalty=-2.0, frequency_penalty=2.0)
    for seed in (-(2**63), 2**63 - 1):
        assert SamplingParams(seed=seed).seed == seed


@pytest.mark.usefixtures("without_shape_checks")
def test_numbers_of_numpy_are_numbers():
    SamplingParams(temperature=np.float32(0.5), top_k=np.int64(3), seed=np.int64(7), max_tokens=np.int32(2))
