"""Diagnose this roofline: six runs on one accelerator, and one of them cannot be true.

The picture is diagnose_roofline.svg (and .png) beside this file: a roofline, both axes logarithmic, of a device with
400 TFLOP/s in bfloat16 and 2 TB/s, and six runs, each as it was measured. In numbers:

| point | what ran | FLOP/byte | TFLOP/s |
| --- | --- | --- | --- |
| A | decode, batch 1 | 1 | 1.8 |
| B | decode, batch 32 | 32 | 20 |
| C | prefill, its matrices | 1000 | 340 |
| D | prefill, its attention | 800 | 100 |
| E | a gate on 8 MB, again and again | 0.25 | 1.2 |
| F | decode, batch 160 | 150 | 291 |

From left to right: E lies above the slope of the memory, A just below it, B far below it, F close below it near the
ridge; D and C lie right of the ridge, D far below the flat roof and C a little.

Answer five questions; letters are capitals, in alphabetical order where there are several.

memory_bound   Which points lie where the memory sets the roof? Such as "CD".
headroom       How many times as fast could the run become that has most to gain at its present intensity?
larger_batch   F gets a batch four times as large, which makes its intensity four times as high, and keeps its share of
               the roof. How many times as many tokens a second does it make?
impossible     Which point cannot be, and what is the likely reason? A letter and a digit, such as "B3".
               1  The peak is the one for sparse matrices.
               2  The bytes came from a cache, and the roof is that of the memory.
               3  The batch is too small for this device.
               4  The clock ran only while the kernel computed, not while it read.
remedies       Where would you begin with A, with B and with D? Three letters in this order, such as "aab".
               a  Find out why the memory is not kept busy: strided reads, too few bytes in flight, gaps.
               b  Buy a device with a higher peak.
               c  Nothing is wrong with the kernel: read fewer bytes a token, by a larger batch or by smaller weights.
               d  Find out why the multipliers are not kept busy: tile sizes, waiting for loads, no tensor cores.

Book section 3.1.4. About 25 minutes.
"""


def answer() -> dict[str, str | float]:
    """The five answers by name: texts, and numbers within 2 %."""
    raise NotImplementedError("your turn")
