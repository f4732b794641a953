"""Predict, then measure: what a decode step costs as the batch grows.

First for a machine on paper, drawn from your student id, then for your own. A step of decoding reads all weights once,
whatever the batch, and does 2 FLOPs a weight and sequence; the two go on at once, so it takes the longer of them. Then
attention reads the context of every sequence, for which nothing is shared; of its FLOPs there are too few to count. It
begins when the weights are through.

1. Predict. Print the numbers of your machine on paper, and paste them below as MACHINE: how many billion weights, the
   bytes of one, the megabytes of context that a step reads for each sequence, gigabytes and TFLOPs a second, and some
   batches. A GB is 1e9 bytes, an MB 1e6. Write `step_s`, and give the seconds of a step for each batch, to four digits
   at least.

       llminfer exercises show 3.1/predict_then_measure --student YOUR-ID

2. Before you go on: at which batch will a step on your own computer begin to take longer? Guess, and write it down.

3. Measure. Run this file: it finds the roofs of your computer, then times a matrix of 268 MB with a growing number of
   rows, as a decode step does for one of its matrices. It takes a minute; close what else is running. Paste what it
   prints as MEASURED. The judge cannot see your computer, and no speed earns a point: it asks whether your numbers
   fit together.

       python predict_then_measure.py

4. Compare. Where is your computer furthest from its roof, and do you see why? Give your numbers again with these four:

       predicted_s      what step_s says for your computer and each batch (4 bytes a weight, no context)
       critical_batch   the batch at which computing takes as long as reading
       worst_batch      the batch with the largest measured_s / predicted_s
       gain             how many times as many rows a second batch 32 gets through as batch 1, as measured

Book section 3.1.4. About 30 minutes.
"""

from pprint import pprint
from typing import Any

import numpy as np

from llminfer.core.measurement import fastest_s, measure_device

MACHINE: dict[str, Any] = {
    "billion_weights": 16,
    "weight_bytes": 0.5,
    "context_mb": 176,
    "gb_s": 2750,
    "tflops": 1661,
    "batches": [1, 16, 324, 1024],
}
MEASURED: dict[str, Any] = {  # a virtual machine with two cores, while other programs ran
    "bandwidth": 15010000000.0,
    "peak_flops": 21600000000.0,
    "weights": 67108864,
    "batches": [1, 2, 4, 8, 16, 32, 64, 128],
    "measured_s": [0.01578, 0.156, 0.144, 0.152, 0.18, 0.3173, 0.4835, 0.84],
}


def step_s(
    batch: int, weights: float, weight_bytes: float, context_bytes: float, bandwidth: float, peak_flops: float
) -> float:
    """Seconds that a step takes at least. bandwidth in bytes/s, peak_flops in FLOP/s."""
    computing_s = 2 * batch * weights / peak_flops
    reading_s = weights * weight_bytes / bandwidth
    context_s = batch * context_bytes / bandwidth
    return max(computing_s, reading_s) + context_s


def answer() -> dict[str, Any]:
    """The seconds of "prediction", the "measurement", and the "conclusion": the measurement and four entries more."""
    weights, bandwidth, peak = 1e9 * MACHINE["billion_weights"], 1e9 * MACHINE["gb_s"], 1e12 * MACHINE["tflops"]
    context = 1e6 * MACHINE["context_mb"]
    on_paper = [
        step_s(batch, weights, MACHINE["weight_bytes"], context, bandwidth, peak) for batch in MACHINE["batches"]
    ]
    bandwidth, peak = MEASURED["bandwidth"], MEASURED["peak_flops"]
    predicted = [step_s(batch, MEASURED["weights"], 4, 0, bandwidth, peak) for batch in MEASURED["batches"]]
    seconds = dict(zip(MEASURED["batches"], MEASURED["measured_s"], strict=True))
    beyond = {batch: seconds[batch] / least for batch, least in zip(seconds, predicted, strict=True)}
    comparison = {
        "predicted_s": predicted,
        "critical_batch": peak * 4 / (2 * bandwidth),
        "worst_batch": max(beyond, key=beyond.get),
        "gain": 32 * seconds[1] / seconds[32],
    }
    return {"prediction": on_paper, "measurement": MEASURED, "conclusion": MEASURED | comparison}


def measure(rows: int = 4096, columns: int = 16384) -> dict[str, Any]:
    """The roofs of this computer, and the seconds that NumPy takes for x [B, rows] @ weights [rows, columns]."""
    device = measure_device()
    weights = np.full((rows, columns), 1 / rows, dtype=np.float32)
    batches = [1, 2, 4, 8, 16, 32, 64, 128]
    measured_s = []
    for batch in batches:
        x, out = np.ones((batch, rows), np.float32), np.empty((batch, columns), np.float32)
        measured_s.append(fastest_s(lambda x=x, out=out: np.matmul(x, weights, out=out)))
    return {
        "bandwidth": device.bandwidth,
        "peak_flops": device.flops("float32"),
        "weights": rows * columns,
        "batches": batches,
        "measured_s": measured_s,
    }


if __name__ == "__main__":
    pprint(measure(), sort_dicts=False)
