"""The loop and what stands around it, on models whose every answer is known, and on Transformers.

`Scripted` says a text that was written down for it, letter by letter; its tokenizer has a token for each byte.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from llminfer.basics.checkpoints import load_model
from llminfer.basics.config import ModelConfig
from llminfer.basics.continuations import Completion, Continuation, check_prompt, collect
from llminfer.basics.generation import LanguageModel, generate, stream, stream_many
from llminfer.basics.memory import NoCache, attend, causal
from llminfer.basics.parameters import weight_shapes
from llminfer.basics.pretokenizers import GPT2
from llminfer.basics.probabilities import log_softmax, softmax
from llminfer.basics.sampling import sample
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.transformer import Transformer
from llminfer.core.philox import token_uniform

END = 256
TOKENIZER = Tokenizer(
    "bytes", {bytes([i]): i for i in range(256)}, GPT2, special={"<end>": END}, added={}, eos_ids=(END,)
)
SMALL = ModelConfig(
    name="small",
    layers=2,
    width=24,
    heads=4,
    kv_heads=2,
    head_width=6,
    feed_forward=20,
    vocabulary=257,
    context=40,
    windows=(None, 5),
    eos_ids=(END,),
)


class Scripted:
    """After `start` tokens it says `script`, then <end>. The script's token has a logit of 1, <end> 0.5, others 0."""

    def __init__(self, start: int, script: bytes, context: int = 100) -> None:
        self.config = replace(SMALL, name="scripted", context=context)
        self.start = start
        self.script = [*script, *[END] * context]

    def hidden(self, tokens: np.ndarray, positions: np.ndarray, view: object) -> np.ndarray:
        return positions[:, None].astype(np.float64)

    def head(self, hidden: np.ndarray) -> np.ndarray:
        logits = np.zeros((len(hidden), 257))
        logits[:, END] = 0.5
        for row, (position,) in enumerate(hidden.astype(int)):
            logits[row, self.script[position - self.start + 1]] = 1.0
        return logits


def said(script: str, **params) -> Completion:
    prompt = TOKENIZER.encode("ab")
    return collect(stream(Scripted(2, script.encode()), TOKENIZER, prompt, SamplingParams(**params)))


def random_transformer(config: ModelConfig = SMALL, seed: int = 0) -> Transformer:
    rng = np.random.default_rng(seed)
    return Transformer(config, {name: rng.normal(0, 0.3, shape) for name, shape in weight_shapes(config).items()})


@pytest.fixture(scope="module")
def small() -> Transformer:
    return random_transformer()


class TestGenerate:
    def test_says_what_the_model_finds_most_probable_and_ends_with_it(self):
        assert generate(Scripted(3, b"xyz"), [1, 2, 3], max_tokens=50) == [*b"xyz", END]

    def test_ends_after_max_tokens(self):
        assert generate(Scripted(3, b"xyz"), [1, 2, 3], max_tokens=2) == [*b"xy"]

    def test_ends_when_the_context_is_full(self):
        assert generate(Scripted(3, b"xyz", context=5), [1, 2, 3], max_tokens=50) == [*b"xy"]

    @pytest.mark.parametrize("tied", [True, False])
    def test_equals_transformers(self, tmp_path, tied):
        torch.manual_seed(0)
        theirs = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=97,
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=64,
                tie_word_embeddings=tied,
                initializer_range=0.3,
                eos_token_id=5,
            )
        ).eval()
        theirs.save_pretrained(tmp_path)
        ours = load_model(tmp_path)
        for prompt in ([7], [1, 2, 3, 4, 5, 6], [96] * 20):
            expected = theirs.generate(
                torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), do_sample=False, max_new_tokens=30
            )
            assert generate(ours, prompt, max_tokens=30) == expected[0, len(prompt) :].tolist()

    @pytest.mark.parametrize(
        ("prompt", "max_tokens", "complaint"),
        [
            ([], 1, "the prompt has no tokens"),
            ([1] * 40, 1, "the prompt has 40 tokens, and the context of 'small' has 40 .* at most 39"),
            ([1, 257], 1, r"prompt\[1\] is 257; the vocabulary has the tokens 0..256"),
            ([-1], 1, r"prompt\[0\] is -1"),
            ([1], 0, "max_tokens must be at least 1, got 0"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(self, small, prompt, max_tokens, complaint):
        with pytest.raises(ValueError, match=complaint):
            generate(small, prompt, max_tokens)


class TestEnding:
    def test_a_stop_id_ends_the_text_and_is_not_part_of_it(self):
        done = said("Hi.")
        assert (done.text, done.finish_reason) == ("Hi.", "stop")
        assert done.ids == [*b"Hi.", END]

    def test_stop_ids_of_a_request_replace_those_of_the_model(self):
        done = said("Hi.", stop_ids=frozenset([ord("i")]))
        assert (done.text, done.ids, done.finish_reason) == ("H", [*b"Hi"], "stop")
        assert said("Hi.", stop_ids=frozenset(), max_tokens=5).ids == [*b"Hi.", END, END]

    def test_stop_ids_of_model_and_tokenizer_both_count(self):
        model = Scripted(1, b"xyz")
        model.config = replace(model.config, eos_ids=(ord("z"),))
        assert collect(stream(model, TOKENIZER, [1])).ids == [*b"xyz"]
        assert collect(stream(Scripted(1, b"xy"), replace_eos(ord("y")), [1])).ids == [*b"xy"]

    def test_max_tokens_ends_with_length(self):
        done = said("Hello", max_tokens=3)
        assert (done.text, done.finish_reason) == ("Hel", "length")

    def test_a_full_context_ends_with_length(self):
        done = collect(stream(Scripted(2, b"Hello", context=6), TOKENIZER, [1, 2]))
        assert (done.text, done.finish_reason) == ("Hell", "length")

    def test_a_stop_string_is_cut_off_across_tokens(self):
        done = said("one two three", stop=("wo t",))
        assert (done.text, done.finish_reason) == ("one t", "stop")
        assert done.ids == [*b"one two t"]

    def test_what_might_become_a_stop_string_is_held_back(self):
        tokens = list(stream(Scripted(1, b"a<b<!"), TOKENIZER, [1], SamplingParams(stop=("<!",))))
        assert [token.text for token in tokens] == ["a", "", "<b", "", ""]

    def test_what_was_held_back_comes_out_when_the_text_ends(self):
        assert said("a<", stop=("<!",)).text == "a<"
        assert said("a<b", stop=("<!",), max_tokens=2).text == "a<"

    def test_characters_come_whole_and_an_unfinished_one_as_a_replacement(self):
        tokens = list(stream(Scripted(1, "é👍".encode()), TOKENIZER, [1], SamplingParams(max_tokens=5)))
        assert [token.text for token in tokens] == ["", "é", "", "", "\ufffd"]
        tokens = list(stream(Scripted(1, b"\xf0"), TOKENIZER, [1]))
        assert [token.text for token in tokens] == ["", "\ufffd"]

    def test_a_stop_string_inside_one_token_cuts_the_token(self):
        tokenizer = Tokenizer("x", {b"a": 0, b"b": 1, b"ab": 2}, GPT2, special={}, added={})
        continuation = Continuation(SMALL, tokenizer, [0], SamplingParams(stop=("b",), stop_ids=frozenset()))
        token = continuation.accept(np.array([0.0, 0.0, 1.0]))
        assert (token.id, token.text, token.finish_reason) == (2, "a", "stop")


class TestMinTokens:
    def test_no_stop_id_is_chosen_before(self):
        done = said("Hi", min_tokens=4)
        assert done.ids[:2] == [*b"Hi"]
        assert END not in done.ids[:4]
        assert done.ids[4] == END

    def test_a_stop_id_can_be_the_next_token_after_them(self):
        assert said("Hi", min_tokens=2).ids == [*b"Hi", END]

    def test_text_is_not_searched_before(self):
        assert said("a.b.c.", min_tokens=3, stop=(".",)).text == "a.b"
        assert said("a.b.c.", min_tokens=2, stop=(".",)).text == "a"

    def test_the_ban_is_that_of_transformers(self, small):
        prompt, stop_ids = [1, 2, 3], frozenset(generate(small, [1, 2, 3], 3))  # what it would say first of all
        ban = transformers.MinNewTokensLengthLogitsProcessor(len(prompt), 4, sorted(stop_ids))
        expected = list(prompt)
        for _ in range(4):
            view = NoCache(SMALL).step([0], [len(expected)])
            logits = small.head(small.hidden(np.array(expected), np.arange(len(expected)), view)[-1:])
            expected.append(int(ban(torch.tensor([expected]), torch.tensor(logits)).argmax()))
        params = SamplingParams(min_tokens=4, max_tokens=4, stop_ids=stop_ids)
        assert collect(stream(small, TOKENIZER, prompt, params)).ids == expected[3:]

    def test_log_probabilities_are_those_without_the_ban(self):
        banned = said("Hi", min_tokens=3, logprobs=1).tokens[2]
        assert banned.id != END
        assert banned.top_logprobs[0][0] == END


class TestLogProbabilities:
    def test_are_those_of_the_model_before_temperature_and_processors(self, small):
        prompt = [1, 2, 3]
        params = SamplingParams(
            temperature=2.0, max_tokens=3, logprobs=4, stop_ids=frozenset(), processors=(lambda tokens, x: x * 0.1,)
        )
        done = collect(stream(small, TOKENIZER, prompt, params))
        tokens = [*prompt, *done.ids]
        for step, token in enumerate(done.tokens):
            seen = np.array(tokens[: len(prompt) + step])
            view = NoCache(SMALL).step([0], [len(seen)])
            expected = log_softmax(small.head(small.hidden(seen, np.arange(len(seen)), view)[-1:]))[0]
            assert token.logprob == pytest.approx(expected[token.id], rel=1e-12)
            best = np.argsort(-expected)[:4]
            assert [i for i, _ in token.top_logprobs] == best.tolist()
            assert [p for _, p in token.top_logprobs] == pytest.approx(expected[best].tolist())

    def test_none_are_listed_unless_asked_for(self):
        assert all(token.top_logprobs == () for token in said("Hi").tokens)

    def test_rows_that_only_pad_the_vocabulary_are_never_chosen_nor_counted(self):
        tokenizer = Tokenizer("x", {b"a": 0, b"b": 1}, GPT2, special={}, added={})
        continuation = Continuation(SMALL, tokenizer, [0], SamplingParams(stop_ids=frozenset(), logprobs=9))
        token = continuation.accept(np.array([0.0, 1.0, 9.0, 9.0]))
        assert token.id == 1
        assert np.exp([p for _, p in token.top_logprobs]).sum() == pytest.approx(1)
        with pytest.raises(ValueError, match=r"stop_ids\[0\] is 2; the vocabulary has the tokens 0..1"):
            Continuation(SMALL, tokenizer, [0], SamplingParams(stop_ids=frozenset([2])))


class TestRandomness:
    params = SamplingParams(temperature=1.0, seed=1, max_tokens=20, stop_ids=frozenset())

    def ids(self, model: LanguageModel, sequence: int = 0, **changes) -> list[int]:
        params = replace(self.params, **changes)
        return collect(stream(model, TOKENIZER, [1, 2, 3], params, sequence=sequence)).ids

    def test_a_seed_gives_the_same_tokens_again(self, small):
        assert self.ids(small) == self.ids(small)

    def test_another_seed_or_sequence_gives_others(self, small):
        assert len({tuple(self.ids(small, seed=seed, sequence=s)) for seed in (1, 2) for s in (0, 1)}) == 4

    def test_the_noise_of_a_token_does_not_depend_on_those_before(self, small):
        whole = self.ids(small)
        rest = collect(stream(small, TOKENIZER, [1, 2, 3, *whole[:8]], replace(self.params, max_tokens=12))).ids
        assert whole[:8] + rest == whole

    def test_the_noise_of_a_token_is_that_of_its_place_in_the_text(self):
        logits = np.random.default_rng(0).standard_normal(257)
        continuation = Continuation(SMALL, TOKENIZER, [1, 2, 3], self.params, sequence=6)
        for place in (3, 4, 5):
            expected = sample(logits, 1.0, token_uniform(1, 6, place, 257))
            assert continuation.accept(logits).id == expected

    def test_low_temperature_is_greedy(self, small):
        greedy = generate(small, [1, 2, 3], 20)
        assert self.ids(small, temperature=1e-6, stop_ids=None) == greedy
        assert self.ids(small, temperature=0.0, stop_ids=None) == greedy

    def test_tokens_have_the_frequencies_of_the_softmax(self):
        model = Scripted(1, b"x")
        logits = model.head(model.hidden(np.array([1]), np.array([0]), None))[0]
        params = SamplingParams(temperature=0.25, max_tokens=1)
        firsts = [collect(stream(model, TOKENIZER, [1], params, sequence=i)).ids[0] for i in range(800)]
        names = [ord("x"), END]
        observed = [firsts.count(names[0]), firsts.count(names[1])]
        chosen = softmax(logits / 0.25)[names]
        expected = 800 * np.array([*chosen, 1 - chosen.sum()])
        assert scipy.stats.chisquare([*observed, 800 - sum(observed)], expected).pvalue > 1e-3


class TestManyTexts:
    params = SamplingParams(temperature=1.0, seed=1, n=3, max_tokens=12, stop_ids=frozenset(range(0, 250, 9)))
    prompt = (4, 5, 6)

    def texts(self, model: LanguageModel, **options) -> list[Completion]:
        tokens = list(stream_many(model, TOKENIZER, self.prompt, self.params, **options))
        return [collect(token for i, token in tokens if i == text) for text in range(self.params.n)]

    def test_each_is_the_text_that_its_sequence_gives_alone(self, small):
        many = self.texts(small, sequence=7)
        one = replace(self.params, n=1)
        for i, text in enumerate(many):
            alone = collect(stream(small, TOKENIZER, self.prompt, one, sequence=7 + i))
            assert (text.ids, text.text, text.finish_reason) == (alone.ids, alone.text, alone.finish_reason)
        assert len({len(text.tokens) for text in many}) > 1  # some end sooner, and the others go on

    def test_a_cache_changes_no_token_and_computes_each_only_once(self, small):
        cache = ContiguousCache(SMALL)
        cached = self.texts(small, cache=cache)
        assert [text.ids for text in cached] == [text.ids for text in self.texts(small)]
        assert cache.computed == sum(len(self.prompt) + len(text.tokens) - 1 for text in cached)

    def test_a_step_runs_once_for_all_texts(self, small):
        steps = []

        class Counting(NoCache):
            def step(self, sequences: Sequence[int], lengths: Sequence[int], parents: None = None):
                steps.append(list(sequences))
                return super().step(sequences, lengths, parents)

        longest = max(len(text.tokens) for text in self.texts(small, cache=Counting(SMALL)))
        assert len(steps) == longest
        assert steps[0] == [0, 1, 2]

    def test_stream_gives_only_one(self, small):
        with pytest.raises(ValueError, match="stream gives one text, and n is 3; stream_many gives them all"):
            stream(small, TOKENIZER, [1], self.params)

    def test_a_sequence_that_the_cache_holds_already_is_named(self, small):
        cache = ContiguousCache(SMALL)
        list(stream(small, TOKENIZER, self.prompt, SamplingParams(max_tokens=2), cache=cache, sequence=2))
        with pytest.raises(ValueError, match="the cache holds 4 tokens of sequence 2, the prompt has 3"):
            stream_many(small, TOKENIZER, self.prompt, self.params, cache=cache)


class ContiguousCache:
    """The smallest cache there is: keys and values of each sequence in one growing array a layer."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.stored: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self.computed = 0

    def length(self, sequence: int) -> int:
        return len(self.stored[sequence][0][0]) if sequence in self.stored else 0

    def free(self, sequence: int) -> None:
        self.stored.pop(sequence, None)

    def step(self, sequences: Sequence[int], lengths: Sequence[int], parents: None = None) -> "ContiguousView":
        self.computed += sum(lengths)
        return ContiguousView(self, sequences, lengths)


class ContiguousView:
    def __init__(self, cache: ContiguousCache, sequences: Sequence[int], lengths: Sequence[int]) -> None:
        self.config, self.cache, self.sequences = cache.config, cache, sequences
        self.cuts = np.cumsum(lengths)[:-1]
        self.new: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {sequence: [] for sequence in sequences}

    def attend(self, layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray, sinks: None = None) -> np.ndarray:
        spec, outputs = self.config.attention(layer), []
        parts = (np.split(array, self.cuts) for array in (q, k, v))
        for sequence, own_q, own_k, own_v in zip(self.sequences, *parts, strict=True):
            if sequence in self.cache.stored:
                old_k, old_v = self.cache.stored[sequence][layer]
                own_k, own_v = np.concatenate([old_k, own_k]), np.concatenate([old_v, own_v])
            self.new[sequence].append((own_k, own_v))
            outputs.append(attend(own_q, own_k, own_v, spec, causal(len(own_k), spec.window)[-len(own_q) :]))
        return np.concatenate(outputs)

    def commit(self, kept: None = None) -> None:
        self.cache.stored |= self.new


class TestCache:
    @pytest.mark.parametrize("temperature", [0.0, 1.0])
    def test_changes_no_token_and_computes_each_only_once(self, small, temperature):
        params = SamplingParams(temperature=temperature, max_tokens=25, stop_ids=frozenset(), logprobs=2)
        cache = ContiguousCache(SMALL)
        prompt = [5, 6, 7, 8]
        recomputed = collect(stream(small, TOKENIZER, prompt, params))
        cached = collect(stream(small, TOKENIZER, prompt, params, cache=cache))
        assert cached.ids == recomputed.ids
        assert cached.logprobs == pytest.approx(recomputed.logprobs, rel=1e-9)
        assert (
            cache.computed == cache.length(0) == len(prompt) + 25 - 1
        )  # the last token is never asked for a successor

    def test_what_it_already_holds_is_not_computed_again(self, small):
        params = SamplingParams(max_tokens=5, stop_ids=frozenset())
        cache = ContiguousCache(SMALL)
        first = collect(stream(small, TOKENIZER, [1, 2, 3], params, cache=cache, sequence=9)).ids
        whole = [1, 2, 3, *first, 20, 21]  # the cache has all but the last three
        before = cache.computed
        second = collect(stream(small, TOKENIZER, whole, params, cache=cache, sequence=9)).ids
        assert cache.computed - before == 7
        assert second == generate(small, whole, 5)

    def test_one_that_holds_the_whole_prompt_is_refused(self, small):
        cache = ContiguousCache(SMALL)
        list(stream(small, TOKENIZER, [1, 2, 3], SamplingParams(max_tokens=2), cache=cache))
        with pytest.raises(ValueError, match="the cache holds 4 tokens of sequence 0, the prompt has 3"):
            stream(small, TOKENIZER, [1, 2, 3], cache=cache)
        with pytest.raises(ValueError, match="the cache holds 4 tokens of sequence 0, the prompt has 4"):
            stream(small, TOKENIZER, [1, 2, 3, 4], cache=cache)
        cache.free(0)
        stream(small, TOKENIZER, [1, 2, 3], cache=cache)


class TestRequests:
    def test_processors_see_all_tokens_and_bend_the_logits_in_order(self):
        seen = []

        def forbid_the_last(tokens: Sequence[int], logits: np.ndarray) -> np.ndarray:
            seen.append(list(tokens))
            logits[tokens[-1]] = -np.inf
            return logits

        def add_to_a(tokens: Sequence[int], logits: np.ndarray) -> np.ndarray:
            return np.where(np.arange(len(logits)) == ord("a"), 5.0, logits)

        done = said("zz", max_tokens=2, processors=(add_to_a, forbid_the_last))
        assert done.ids == [ord("a"), ord("z")]
        assert seen == [[*b"ab"], [*b"aba"]]

    def test_bias_bad_words_and_penalties_reach_the_choice(self):
        assert said("Hi", max_tokens=1, logit_bias={ord("x"): 1.5}).ids == [*b"x"]
        assert said("Hi", max_tokens=1, bad_words=((*b"abH",),)).ids == [END]
        assert said("Hiii", max_tokens=3, frequency_penalty=0.6).ids == [*b"Hi", END]
        assert said("a", max_tokens=1, repetition_penalty=3.0).ids == [END]

    def test_penalties_of_frequency_and_presence_leave_the_prompt_alone(self):
        assert said("ab", max_tokens=2, frequency_penalty=2.0, presence_penalty=2.0).ids == [*b"ab"]

    def test_top_k_of_one_is_greedy_at_any_temperature(self, small):
        params = SamplingParams(temperature=5.0, top_k=1, max_tokens=10)
        assert collect(stream(small, TOKENIZER, [1, 2, 3], params)).ids == generate(small, [1, 2, 3], 10)

    @pytest.mark.parametrize(
        ("prompt", "params", "complaint"),
        [
            ([], {}, "the prompt has no tokens"),
            ([1] * 41, {}, "the prompt has 41 tokens"),
            ([999], {}, r"prompt\[0\] is 999"),
            ([1], {"stop_ids": frozenset([3, 257])}, r"stop_ids\[1\] is 257"),
            ([1], {"logit_bias": {2: 1.0, 300: 1.0}}, r"logit_bias\[1\] is 300"),
            ([1], {"bad_words": ((1,), (2, 300))}, r"bad_words\[1\] is 300"),
        ],
    )
    def test_what_cannot_be_asked_is_refused_at_the_call(self, small, prompt, params, complaint):
        with pytest.raises(ValueError, match=complaint):
            stream(small, TOKENIZER, prompt, SamplingParams(**params))

    def test_a_finished_continuation_takes_no_more_logits(self):
        continuation = Continuation(SMALL, TOKENIZER, [1], SamplingParams(max_tokens=1))
        continuation.accept(np.zeros(257))
        with pytest.raises(ValueError, match=r"ended after 2 tokens \(length\)"):
            continuation.accept(np.zeros(257))

    def test_logits_are_left_as_they_are(self):
        continuation = Continuation(SMALL, TOKENIZER, [1], SamplingParams(min_tokens=1))
        logits = np.zeros(257)
        continuation.accept(logits)
        assert not logits.any()

    @settings(deadline=None)
    @given(
        script=st.text("ab<\u00e9👍", max_size=15), stops=st.lists(st.text("ab<é", min_size=1, max_size=3), max_size=2)
    )
    def test_the_parts_of_a_stream_are_the_text_up_to_the_first_stop(self, script, stops):
        done = said(script, stop=tuple(stops), max_tokens=90)
        ends = [end for end in range(len(script) + 1) for stop in stops if script[:end].endswith(stop)]
        read = script[: min(ends)] if ends else script
        cut = max((stop for stop in stops if read.endswith(stop)), key=len, default="") if ends else ""
        assert done.text == read.removesuffix(cut)


def replace_eos(token: int) -> Tokenizer:
    return Tokenizer("bytes", TOKENIZER.ranks, GPT2, TOKENIZER.special, {}, eos_ids=(token,))


def test_float16_weights_say_what_float32_weights_say():
    """Hidden states of the tiny model reach 478; 576 such squares are far past the largest float16."""
    prompt = range(300, 310)
    short, long = (generate(load_model("tiny", dtype), prompt, 8) for dtype in ("float16", "float32"))
    assert short == long


def test_a_truth_value_is_no_token():  # floats are stopped by the tests' own type checks
    with pytest.raises(TypeError, match=r"prompt\[1\] is .*whole numbers"):
        check_prompt(SMALL, [1, True])
