"""The first minute: a model speaks, this machine is measured, and one prediction is made, tested and explained.

Needs the base dependencies and the bundled model, nothing else. What is predicted is the heart of chapter 3.1: to
choose one token every weight must come from memory once, so bandwidth over bytes is a speed that decoding cannot pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.markup import escape

from llminfer.basics.checkpoints import load_model, load_tokenizer
from llminfer.basics.console import prompt_ids
from llminfer.basics.generation import LanguageModel, stream
from llminfer.basics.memory import NoCache
from llminfer.basics.parameters import parameter_count, weight_shapes
from llminfer.basics.rooflines import decode_ceiling
from llminfer.basics.sampling_params import SamplingParams
from llminfer.basics.steps import decode, step_cost
from llminfer.basics.tokenization import Tokenizer
from llminfer.basics.transformer import Transformer
from llminfer.core.cost import Cost
from llminfer.core.measurement import MeasuredDevice, measure_device

PROMPT = '"""Tools for reading and writing'
SAMPLING = SamplingParams(temperature=0.5, seed=2, max_tokens=64)
PATIENCE_S = 8.0  # on a very slow machine the text ends early


@dataclass(frozen=True)
class DecodeStep:
    """One step that chooses one token: what it must do, what memory allows, and what it took, in seconds.

    predicted_s: the least it can take when every weight comes from memory. measured_s: what it took.
    overhead_s: what the same step takes with next to no weights. reading_s: what the products with all the weights
    take, one after another, without anything between them. All are the fastest of many, as bandwidths are.
    """

    cost: Cost
    predicted_s: float
    measured_s: float
    overhead_s: float
    reading_s: float

    @property
    def reading_bandwidth(self) -> float:
        """Bytes/s at which the weights come from where they lie, memory or a cache."""
        return self.cost.bytes / self.reading_s


@dataclass(frozen=True)
class Tour:
    """What the tour found. `explanation` is two sentences; `tokens_per_s` is the speed of the text, without a cache."""

    prompt: str
    text: str
    tokens_per_s: float
    device: MeasuredDevice
    step: DecodeStep
    explanation: tuple[str, str]
    picture: Path


def run_tour(folder: str | Path = ".", console: Console | None = None, refresh: bool = False) -> Tour:
    """Take the tour, telling it on `console`, and save the picture as llminfer-tour.png in `folder`.

    `refresh` measures the machine again, although it was measured before. Raises FileNotFoundError without the folder.
    """
    folder, console = Path(folder), console or Console(highlight=False)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder} to save the picture in; create it, or name another one")
    model, tokenizer = load_model("tiny"), load_tokenizer("tiny")
    parameters = parameter_count(model.config).total

    _head(console, "1  A model speaks", f"tiny, {parameters / 1e6:.1f} million parameters, NumPy alone")
    text, tokens_per_s = speak(model, tokenizer, partial(console.out, end="", highlight=False))
    console.print(f"\n[dim]{tokens_per_s:.0f} tokens/s; each step computed all earlier tokens again (see 3.2).[/]")

    _head(console, "2  Your memory", "the best of many runs, arrays larger than the caches")
    with console.status("measuring, a few seconds the first time ..."):
        device = measure_device(refresh=refresh)
        step = measure_step(model, device)
    console.print(
        f"{escape(device.name)}, {device.threads} threads: copy {_gb(device.copy_bandwidth)}, "
        f"read {_gb(device.read_bandwidth)}, matrix x vector {_gb(device.gemv_bandwidth)}"
    )
    if device.processor_share < 0.9:
        console.print(
            "[yellow]Other programs were busy meanwhile; on a quiet machine, take the tour with --refresh.[/]"
        )

    _head(console, "3  A prediction", "choosing a token needs every weight once")
    console.print(
        f"{step.cost.bytes / 1e6:.1f} MB / {_gb(device.bandwidth)} = {_ms(step.predicted_s)} a token: "
        f"at most [bold]{1 / step.predicted_s:.0f} tokens/s[/]"
    )
    _head(console, "4  And really", "a step for one token, with nothing before it")
    console.print(f"{_ms(step.measured_s)} a token: [bold]{1 / step.measured_s:.0f} tokens/s[/]")

    rest = max(step.measured_s - step.overhead_s - step.reading_s, 0)
    _head(console, "5  Why", f"{_ms(step.overhead_s)} + {_ms(step.reading_s)}, as follows, and {_ms(rest)} unexplained")
    explanation = explain(step, device)
    console.print(" ".join(explanation))

    from llminfer.tour_page import save_page  # matplotlib is loaded only now

    _head(console, "6  Your machine beside an H100, an RTX 4070 and an MI300X", "")
    picture = save_page(device, model.config.name, step, folder / "llminfer-tour.png")
    console.print(f"{escape(str(picture))}\n\n[dim]Next: llminfer where 3.1, and the notebook of chapter 3.1.[/]")
    return Tour(PROMPT, text, tokens_per_s, device, step, explanation, picture)


def speak(model: LanguageModel, tokenizer: Tokenizer, write: Callable[[str], object]) -> tuple[str, float]:
    """Continue PROMPT on `write` as the text comes, for PATIENCE_S at most; returns the text and tokens per second."""
    write(PROMPT)
    pieces = []
    start = perf_counter()
    for token in stream(model, tokenizer, prompt_ids(tokenizer, PROMPT), SAMPLING):
        write(token.text)
        pieces.append(token.text)
        if perf_counter() - start > PATIENCE_S:
            break
    return "".join(pieces), len(pieces) / (perf_counter() - start)


def measure_step(model: Transformer, device: MeasuredDevice, seconds: float = 2.0) -> DecodeStep:
    """Predict the step that chooses one token with nothing before it, measure it, and measure its two parts.

    The three take turns, so that whatever else the machine does meets all of them.
    """
    weightless = _next_to_weightless(model)
    actions = (partial(_step, model), partial(_step, weightless), partial(_read_weights, model))
    times: list[list[float]] = []
    while len(times) < 20 or np.sum(times) < seconds:
        times.append([_elapsed(action) for action in actions])
    measured_s, overhead_s, reading_s = map(min, zip(*times, strict=True))
    types = {"weights": "float32", "kv": "float32"}
    return DecodeStep(
        cost=step_cost(model.config, decode(context=0), **types),
        predicted_s=1 / decode_ceiling(model.config, device, **types, math="float32"),
        measured_s=measured_s,
        overhead_s=overhead_s,
        reading_s=reading_s,
    )


def explain(step: DecodeStep, device: MeasuredDevice) -> tuple[str, str]:
    """Two sentences on why the prediction and the measurement differ: overhead, and where the weights come from."""
    first = (
        f"{_ms(step.overhead_s)} is Python and NumPy finding out what to do, which a roofline leaves out: the same "
        "step with next to no weights takes that long."
    )
    weights = f"{_ms(step.reading_s)} is the products with the weights, which come at {_gb(step.reading_bandwidth)}"
    share = step.reading_bandwidth / device.bandwidth
    if share > 1.2:
        cache = device.last_level_cache_bytes or 0
        of = f" of {cache / 2**20:.0f} MiB" if cache > step.cost.bytes else ""
        return first, f"{weights}: faster than memory, because a model so small stays in the processor's cache{of}."
    if share > 0.8:
        return first, f"{weights}: what memory gives, and what no program can pass once a model outgrows the cache."
    return first, (
        f"{weights}, {share:.0%} of what memory gives: each matrix is small, threads start and stop for every one, "
        "and other programs may want the processor too."
    )


def _step(model: Transformer) -> None:
    """From one id to the logits of its successor."""
    view = NoCache(model.config).step([0], [1])
    hidden = model.hidden(np.array([0]), np.array([0]), view)  # [1] -> [1, D]
    view.commit()
    model.head(hidden)  # [1, D] -> [1, V]


def _read_weights(model: Transformer) -> None:
    """Each matrix of the model times a vector. A tied embedding is read once, as the head."""
    for name, weight in model.weights.items():
        if len(weight.shape) == 2 and name != "embedding":
            np.ones((1, weight.shape[0]), np.float32) @ weight
    np.ones((1, model.config.width), np.float32) @ model.unembedding


def _next_to_weightless(model: Transformer) -> Transformer:
    """The same layers and calls with matrices of a few numbers each."""
    small = replace(model.config, name="weightless", width=8, head_width=2, feed_forward=8, vocabulary=8)
    return Transformer(small, {name: np.ones(shape, np.float32) for name, shape in weight_shapes(small).items()})


def _elapsed(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def _head(console: Console, title: str, remark: str) -> None:
    console.print(f"\n[bold]{title}[/]  [dim]{remark}[/]")


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms"


def _gb(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.1f} GB/s"
