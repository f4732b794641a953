"""Chapter 3.1, memories and latencies: every number in the text is what the functions give.

CLAIMS, PARTS and GIVEN as in `test_3_1_basics`.
"""

import math
from pathlib import Path

import numpy as np
import pytest

from llminfer.basics import (
    MLPERF_SLOS,
    Chunk,
    RequestTrace,
    decode,
    decode_ceiling,
    device,
    e2e,
    goodput,
    itls,
    layer_crossings,
    layer_weight_bytes,
    max_batch,
    mean_itl,
    memory_levels,
    prefill,
    preset,
    samples_needed,
    scheduled_e2e,
    step_cost,
    step_time,
    tool_readings,
    tpot,
    ttft,
)
from llminfer.basics.tool_definitions import aiperf_itl

CHAPTER = Path(__file__).parents[2] / "chapters" / "3.1-basics.md"
PARTS = ("3.1.5", "3.1.8")

LLAMA, H100, RTX = preset("llama-3-8b"), device("h100-sxm"), device("rtx-4070")
MOVED = layer_weight_bytes(LLAMA)
LEVELS = {level.name: level for level in memory_levels(H100)}
TIMES = {crossing.level.name: crossing.time_s for crossing in layer_crossings(LLAMA, H100)}
PCIE_S = layer_crossings(LLAMA, RTX)[-1].time_s
RIDGES = {name: H100.flops() / level.bandwidth for name, level in LEVELS.items() if level.bandwidth}
TILE = math.ceil(2 * RIDGES["main memory"])  # t / 2 FLOPs a byte in bfloat16

# Due at -0.25 s, sent at 0; 3 tokens at 0.5 s, then one every 0.25 s up to 2.5 s.
WORKED = RequestTrace(-0.25, 0.0, (Chunk(0.5, 3), *(Chunk(0.5 + 0.25 * i) for i in range(1, 9))), 2.5)
READINGS = {reading.tool: reading for reading in tool_readings(WORKED)}

PREFILL_MS = 1e3 * step_time(LLAMA, prefill(2048), H100)
LIMIT = MLPERF_SLOS["llama3.1-8b", "interactive"]
ANSWER = 256


def decode_ms(batch: int) -> float:
    return 1e3 * step_time(LLAMA, decode(2048, batch), H100)


def with_prefills_ms(batch: int) -> float:
    """The mean time of a token when every answer of 256 tokens is preceded by a prefill that all others wait for."""
    return decode_ms(batch) + batch / ANSWER * PREFILL_MS


def requests_per_s(batch: int) -> float:
    return 1e3 * batch / (ANSWER * with_prefills_ms(batch))


def served(batch: int) -> tuple:
    good = with_prefills_ms(batch) <= 1e3 * LIMIT.tpot_s
    return (
        f"| {batch} | {{:.3g}} | {{:.1f}} | {{:.1f}} | {{:{'.1f' if good else '.0f'}}} |",
        decode_ms(batch), with_prefills_ms(batch), requests_per_s(batch), requests_per_s(batch) * good,
    )  # fmt: skip


def stalled() -> list[RequestTrace]:
    """Ten requests due a second apart, one connection, 0.1 s each but 5 s for the first."""
    traces, free_s = [], 0.0
    for due_s in range(10):
        sent_s = max(due_s, free_s)
        free_s = sent_s + (5.0 if due_s == 0 else 0.1)
        traces.append(RequestTrace(due_s, sent_s, (Chunk(free_s),), free_s))
    return traces


def tool_row(tool: str, what: str) -> tuple:
    """A row of the table: four latencies in ms, a median of pooled gaps, nothing for what the tool does not have."""
    reading = READINGS[tool]
    itl = None if reading.itl_s is None else float(np.median(reading.itl_s))
    values = (reading.ttft_s, reading.tpot_s, itl, reading.e2e_s)
    cells = ["" if value is None else f" {1e3 * value:.4g}" for value in values]
    return (f"| {tool} |{cells[0]} |{cells[1]} |{cells[2]} |{cells[3]} | {what}",)


FIVE = len([trace for trace in stalled() if scheduled_e2e(trace) > 1])
WORDS = {1: "one request", 5: "five"}

CLAIMS = [
    # 3.1.5
    ("one layer of Llama-3-8B, {:,.0f} bytes in bfloat16", MOVED),
    ("| registers, {} × {:.0f} KiB | {:.1f} MB | at least {:.0f} TB/s | {:.2f} | {:.2f} µs |",
     H100.sms, H100.register_file_bytes / 2**10, LEVELS["registers"].capacity_bytes / 1e6,
     LEVELS["registers"].bandwidth / 1e12, RIDGES["registers"], 1e6 * TIMES["registers"]),
    ("| shared memory, {} × {:.0f} KiB | {:.1f} MB | {:.1f} TB/s | {:.1f} | {:.1f} µs |",
     H100.sms, H100.shared_memory_bytes / 2**10, LEVELS["shared memory"].capacity_bytes / 1e6,
     LEVELS["shared memory"].bandwidth / 1e12, RIDGES["shared memory"], 1e6 * TIMES["shared memory"]),
    ("| L2 | {:.1f} MB | not published | | |", LEVELS["L2"].capacity_bytes / 1e6),
    ("| main memory (HBM) | {:.0f} GB | {:.2f} TB/s | {:.0f} | {:.0f} µs |",
     H100.memory_bytes / 1e9, H100.bandwidth / 1e12, RIDGES["main memory"], 1e6 * TIMES["main memory"]),
    ("| link (NVLink 4), each way | | {:.0f} GB/s | {:,.0f} | {:.0f} µs |",
     H100.link_bandwidth / 1e9, RIDGES["link"], 1e6 * TIMES["link"]),
    ("6 × {:.0f} = {:.0f} TB/s when float32 runs at its peak of {:.0f} TFLOP/s",
     H100.flops("float32") / 1e12, 6 * H100.flops("float32") / 1e12, H100.flops("float32") / 1e12),
    ("Each of {} multiprocessors has {} banks of shared memory that give {} bytes a clock of {:.2f} GHz",
     H100.sms, 32, 4, H100.shared_memory_bandwidth / (H100.sms * 32 * 4) / 1e9),
    ("a layer is {:.1f} times the L2", MOVED / H100.l2_bytes),
    ("{} layers of {:.0f} µs are {:.2f} ms of the {:.2f} ms that a decode took above",
     LLAMA.layers, 1e6 * TIMES["main memory"], 1e3 * LLAMA.layers * TIMES["main memory"],
     1e3 / decode_ceiling(LLAMA, H100, 1)),
    ("from main memory it would take {} × {}, whose {:,} sums in float32 are more than the {:,.0f} that",
     TILE, TILE, TILE**2, H100.register_file_bytes / 4),
    ("A layer takes {:.1f} times as long over NVLink", TIMES["link"] / TIMES["main memory"]),
    ("the stream of a token is {:,} bytes", 2 * LLAMA.width),
    ("over the {} GB/s of an RTX 4070's PCIe a layer takes {:.1f} ms and {} of them {:.0f} ms, at most {:.2f} tokens/s",
     RTX.link_bandwidth / 1e9, 1e3 * PCIE_S, LLAMA.layers, 1e3 * LLAMA.layers * PCIE_S, 1 / (LLAMA.layers * PCIE_S)),
    # 3.1.8
    ("a TTFT of at least {:.1f} ms on an H100, a batch of 64 a TPOT of {:.2f} ms", PREFILL_MS, decode_ms(64)),
    ("one wait becomes {:.1f} ms, but over 256 tokens the TPOT only goes from {:.2f} to {:.2f} ms",
     decode_ms(64) + PREFILL_MS, decode_ms(64), decode_ms(64) + PREFILL_MS / (ANSWER - 1)),
    ("brings {} of its {} tokens in the first chunk, at {:.0f} ms; the other {} follow in {:.0f} seconds. TPOT divides "
     "these by {}; the reader waited {} times",
     WORKED.chunks[0].tokens, WORKED.output_tokens, 1e3 * ttft(WORKED), WORKED.output_tokens - 3,
     e2e(WORKED) - ttft(WORKED), WORKED.output_tokens - 1, len(itls(WORKED))),
    tool_row("vLLM", "ITL: all gaps between chunks;"),
    tool_row("SGLang", "ITL: all gaps between chunks with text |"),
    (*tool_row("AIPerf", "ITL is the TPOT of others; {:.0f} when"), 1e3 * aiperf_itl(WORKED, per_chunk_usage=True)[0]),
    tool_row("GuideLLM", "TPOT is E2E / N"),
    (*tool_row("inference-perf", "gaps of 0 within a chunk; E2E / N, {:.1f}, as"),
     1e3 * READINGS["inference-perf"].normalized_tpot_s),
    tool_row("llmperf", "its ITL is E2E / N |"),
    tool_row("MLPerf", "counts from when"),
    ("Counted from sending, {} took longer than a second; counted from when each was due, {} did",
     WORDS[len([trace for trace in stalled() if e2e(trace) > 1])], WORDS[FIVE]),
    ("\\ln 0.99}} = {:.2f}$$ so from {} requests on, and from {} on", math.log(0.05) / math.log(0.99),
     samples_needed(99, sided=1), samples_needed(99)),
    ("too small in {:.0f} % of all runs", 100 * 0.99**100),
    ("plus B/256 × {:.1f} ms", PREFILL_MS),
    served(64),
    served(128),
    served(238),
    ("{} is what fits. {:.0f} ms is MLPerf's interactive limit", max_batch(LLAMA, H100, 2048), 1e3 * LIMIT.tpot_s),
    ("The last {} sequences bring {:.0f} % more throughput", 238 - 128,
     100 * (requests_per_s(238) / requests_per_s(128) - 1)),
]  # fmt: skip

GIVEN = {
    *("256", "2048", "64"),  # lengths, a batch and a tile that we chose
    *("0.1", "99", "0.99", "95", "0.05", "0.025", "100"),  # the stalled server; percentile, confidence and its halves
    "30",  # MLPerf's limit again, in the head of the table
}


def test_the_text_says_what_the_functions_give(text, claim):
    template, *values = claim
    assert template.format(*values) in text


def test_no_number_in_the_text_is_without_a_source(text, unproved_numbers):
    assert unproved_numbers(text, [template.format(*values) for template, *values in CLAIMS], GIVEN) == []


# 3.1.5


def test_the_intensity_of_a_tile_counted_by_hand():
    """Per step of the inner sum a tile of 3 × 5 multiplies and adds 15 times and reads 8 numbers of 2 bytes."""
    a, b, w = 3, 5, 2
    flops = sum(2 for _ in range(a) for _ in range(b))
    assert flops / (w * (a + b)) == 2 * a * b / ((a + b) * w)


def test_a_tile_of_64_is_fed_from_shared_memory():
    assert 64 / 2 >= RIDGES["shared memory"] > 63 / 2


def test_no_tile_of_one_row_does_more_than_a_flop_a_byte():
    assert max(2 * b / ((1 + b) * 2) for b in (1, 16, 1024, 10**6)) < 1
    assert step_cost(LLAMA, decode(0)).intensity == pytest.approx(1, rel=0.01)  # what 3.1.3 counted


def test_register_files_are_larger_than_shared_memories():
    for name in ("h100-sxm", "a100-80gb", "mi300x", "rtx-4070"):
        registers, shared, *_ = memory_levels(device(name))
        assert registers.capacity_bytes > shared.capacity_bytes


# 3.1.8


def test_e2e_is_ttft_and_the_rest_of_the_tokens():
    assert e2e(WORKED) == pytest.approx(ttft(WORKED) + (WORKED.output_tokens - 1) * tpot(WORKED))


def test_waits_add_up_to_the_time_they_took():
    bundled = RequestTrace(0.0, 0.0, (Chunk(0.5), *(Chunk(0.5 + 0.2 * i, 4) for i in range(1, 11))), 2.5)
    for trace in (WORKED, bundled):
        assert itls(trace).sum() == pytest.approx(trace.chunks[-1].time_s - trace.chunks[0].time_s)
    assert mean_itl(bundled) == pytest.approx(tpot(bundled)) == pytest.approx(0.05)


def test_names_of_latencies_have_three_numbers():
    medians = {round(1e3 * float(np.median(r.itl_s)), 1) for r in READINGS.values() if r.itl_s is not None}
    assert medians == {200, 227.3, 250}


def test_the_table_of_goodput_is_that_of_the_librarys_goodput():
    """A second of requests that all have the mean time per token of a batch, judged by the library."""
    for batch, good in ((64, True), (128, True), (238, False)):
        seconds = with_prefills_ms(batch) / 1e3
        chunks = tuple(Chunk(0.1 + seconds * i) for i in range(ANSWER))
        trace = RequestTrace(0.0, 0.0, chunks, chunks[-1].time_s)
        assert (goodput([trace], LIMIT).good == 1) is good
