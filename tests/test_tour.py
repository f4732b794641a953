"""The first minute. What this machine measures is replaced by a made-up device: no test depends on a time."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from llminfer import tour, tour_page
from llminfer.basics.checkpoints import load_model
from llminfer.basics.parameters import parameter_count
from llminfer.core.cost import Cost
from llminfer.core.measurement import MeasuredDevice
from llminfer.core.plots import alt_text, data_table
from llminfer.tour import DecodeStep, explain, measure_step, run_tour

MACHINE = MeasuredDevice(
    name="A Processor [with brackets] @ 3.00GHz",
    peak_flops={"float32": 2e11, "float64": 1e11},
    memory_bytes=32e9,
    bandwidth=2e10,
    source="a test",
    engine="numpy",
    threads=2,
    working_set_bytes=2**28,
    copy_bandwidth=2e10,
    read_bandwidth=1.8e10,
    gemv_bandwidth=1.7e10,
    call_overhead_s=5e-7,
    last_level_cache_bytes=2**25,
    measured_on="2026-01-01",
)
COST = Cost(8.4e6, 16.8e6, 4096)


def a_step(measured_s: float, reading_s: float) -> DecodeStep:
    return DecodeStep(COST, predicted_s=0.84e-3, measured_s=measured_s, overhead_s=0.3e-3, reading_s=reading_s)


FROM_CACHE = a_step(measured_s=0.75e-3, reading_s=0.42e-3)
FROM_MEMORY = a_step(measured_s=1.2e-3, reading_s=0.87e-3)
DISTURBED = a_step(measured_s=24e-3, reading_s=22e-3)


@pytest.fixture(scope="module")
def tiny():
    return load_model("tiny")


@pytest.fixture(autouse=True)
def a_short_text(monkeypatch):
    monkeypatch.setattr(tour, "SAMPLING", replace(tour.SAMPLING, max_tokens=6))
    monkeypatch.setattr(tour, "PATIENCE_S", float("inf"))


@pytest.fixture
def on_a_made_up_machine(monkeypatch):
    monkeypatch.setattr(tour, "measure_device", lambda refresh: MACHINE)
    monkeypatch.setattr(tour, "measure_step", partial(measure_step, seconds=0.01))


@pytest.fixture
def without_the_page(monkeypatch):
    monkeypatch.setattr(tour_page, "save_page", lambda *_: _[-1])


def test_the_tour_speaks_predicts_measures_explains_and_draws(on_a_made_up_machine, tmp_path, capsys):
    console = Console(width=1000, highlight=False)
    found = run_tour(tmp_path, console)
    told = capsys.readouterr().out
    assert found.text and f"{found.prompt}{found.text}" in told
    assert found.picture == tmp_path / "llminfer-tour.png"
    assert found.picture.read_bytes().startswith(b"\x89PNG")
    assert "A Processor [with brackets] @ 3.00GHz" in told
    assert f"at most {1 / found.step.predicted_s:.0f} tokens/s" in told
    assert f"{1 / found.step.measured_s:.0f} tokens/s" in told
    assert all(sentence in told for sentence in found.explanation)
    headings = re.findall(r"^(\d)  [A-Z]", told.replace(found.text, ""), re.MULTILINE)
    assert headings == list("123456")


def test_a_quiet_console_hears_nothing(on_a_made_up_machine, without_the_page, tmp_path, capsys):
    run_tour(tmp_path, Console(quiet=True))
    assert capsys.readouterr().out == ""


def test_a_busy_machine_is_mentioned(on_a_made_up_machine, without_the_page, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tour, "measure_device", lambda refresh: replace(MACHINE, processor_share=0.5))
    run_tour(tmp_path, Console(width=1000))
    assert "Other programs were busy" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_said_before_anything_runs(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder .*nowhere"):
        run_tour(tmp_path / "nowhere")


def test_the_text_is_the_same_every_time(tiny):
    tokenizer = tour.load_tokenizer("tiny")
    heard: list[str] = []
    first, _ = tour.speak(tiny, tokenizer, heard.append)
    again, _ = tour.speak(tiny, tokenizer, lambda text: None)
    assert first == again
    assert "".join(heard) == tour.PROMPT + first


def test_a_slow_machine_is_not_asked_for_the_whole_text(tiny, monkeypatch):
    monkeypatch.setattr(tour, "PATIENCE_S", 0.0)
    heard: list[str] = []
    tour.speak(tiny, tour.load_tokenizer("tiny"), heard.append)
    assert len(heard) == 2


def test_a_token_needs_every_weight_once(tiny):
    step = measure_step(tiny, MACHINE, seconds=0.0)
    assert step.cost.bytes == pytest.approx(4 * parameter_count(tiny.config).total, rel=1e-3)
    assert step.predicted_s == pytest.approx(step.cost.bytes / MACHINE.bandwidth, rel=1e-9)
    assert min(step.measured_s, step.overhead_s, step.reading_s) > 0


def test_the_overhead_is_that_of_the_same_layers_without_their_weights(tiny):
    weightless = tour._next_to_weightless(tiny)
    assert weightless.weights.keys() == tiny.weights.keys()
    assert parameter_count(weightless.config).total < parameter_count(tiny.config).total / 1000


def test_reading_the_weights_means_each_once(tiny):
    read: list[int] = []

    class Recording:
        def __init__(self, weight):
            self.shape, self.nbytes = weight.shape, weight.nbytes

        __array_ufunc__ = None

        def __rmatmul__(self, x):
            assert x.shape == (1, self.shape[0])
            read.append(self.nbytes)

    weights = {name: w if isinstance(w, np.ndarray) else Recording(w) for name, w in tiny.weights.items()}
    recorded = SimpleNamespace(weights=weights, unembedding=Recording(tiny.unembedding), config=tiny.config)
    getattr(tour._read_weights, "__wrapped__", tour._read_weights)(recorded)
    assert sum(read) == pytest.approx(4 * parameter_count(tiny.config).total, rel=1e-3)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (
            FROM_CACHE,
            "40.0 GB/s: faster than memory, because a model so small stays in the processor's cache of 32 MiB",
        ),
        (FROM_MEMORY, "19.3 GB/s: what memory gives"),
        (DISTURBED, "0.8 GB/s, 4% of what memory gives"),
    ],
)
def test_the_difference_is_explained_in_two_sentences(step, reason):
    sentences = explain(step, MACHINE)
    assert all(sentence.endswith(".") and ". " not in sentence for sentence in sentences)
    assert "0.30 ms is Python and NumPy" in sentences[0]
    assert reason in sentences[1]


@pytest.mark.parametrize("step", [FROM_CACHE, FROM_MEMORY, DISTURBED])
def test_the_page_shows_any_machine_whole_and_without_overlaps(step):
    figure = tour_page.draw_page(MACHINE, "tiny", step)
    figure.canvas.draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert 0 <= box.x0 <= box.x1 <= width and 0 <= box.y0 <= box.y1 <= height
    for axes in figure.axes:
        texts = [text.get_window_extent() for text in (*axes.texts, *axes.get_yticklabels()) if text.get_text()]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(texts, 2))


def test_what_comes_from_the_cache_stands_under_a_roof_of_its_own():
    above, _ = tour_page.draw_page(MACHINE, "tiny", FROM_CACHE).axes
    roofs = [row[0] for row in data_table(above).rows]
    assert "ridge of your machine, from its cache" in roofs
    assert len(data_table(tour_page.draw_page(MACHINE, "tiny", FROM_MEMORY).axes[0]).rows) == len(roofs) - 1


def test_the_page_says_which_models_do_not_fit():
    _, below = tour_page.draw_page(MACHINE, "tiny", FROM_MEMORY).axes
    speed = {row[:2]: row[3] for row in data_table(below).rows}
    assert speed["llama-3.1-8b", "RTX 4070"] is None  # 16 GB of weights, 12 GB of memory
    assert speed["llama-3.1-70b", "H100 SXM"] is None  # 141 GB and 80
    # 15.01 GB are read for a token: all weights but the embedding table, of which one row is.
    assert speed["llama-3.1-8b", "H100 SXM"] == pytest.approx(3.35e12 / 15.01e9, rel=1e-3)


def test_the_page_is_told_in_words():
    words = alt_text(tour_page.draw_page(MACHINE, "tiny", FROM_MEMORY))
    assert "This machine reads 20 GB/s" in words
    assert "H100 SXM 168 times, RTX 4070 25 times, MI300X 265 times" in words


def test_the_tour_waits_for_neither_torch_nor_matplotlib():
    program = "import sys, llminfer.tour; print([m for m in ('torch', 'triton', 'matplotlib') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_a_step_faster_than_a_disturbed_measurement_is_drawn_all_the_same():
    slow_when_measured = replace(MACHINE, peak_flops={"float32": 3.8e9}, bandwidth=5e10)
    assert tour_page.draw_page(slow_when_measured, "tiny", FROM_CACHE)
