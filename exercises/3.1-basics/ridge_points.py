"""Where three devices turn: ridges and critical batches, from data sheets as they are printed.

The two numbers of a roofline, FLOP/s and bytes/s, seldom stand side by side in a data sheet. Yours describe three
made-up devices, each in a manner that real makers have:

- A prints its bfloat16 rate "with sparsity": for matrices with two zeros in every four weights, at twice the dense
  rate. Yours are dense. Its bandwidth is plain.
- B prints its dense rate, but of its memory the width of the bus in bits, and how often each of its wires switches, in
  gigatransfers a second.
- C prints neither: it has so many units, a clock, and dense FLOPs a unit and clock; and so many stacks of memory, with
  the bandwidth of one.

They are drawn from your student id. Print them, and paste them below as SHEETS:

    llminfer exercises show 3.1/ridge_points --student YOUR-ID

Task: give twelve numbers, by pencil or by program. GB is 1e9 bytes, as in every data sheet; three digits are enough.

Book section 3.1.4. About 20 minutes.
"""

from typing import Any

SHEETS: dict[str, Any] = {}


def answer() -> dict[str, list[float]]:
    """Four lists with a number each for A, B and C. All arithmetic is in bfloat16.

    "ridges": FLOPs per byte at which computing takes as long as moving. "critical_batches": tokens a step at which a
    weight matrix turns from memory-bound to compute-bound if a weight is stored in SHEETS["weight_bits"] bits.
    "experts": the same for the experts of a layer, if every token is sent to "chosen" of "experts" of them, evenly.
    "shares": the share of its peak that the device can reach at most in a weight matrix, with SHEETS["batch"] tokens a
    step.
    """
    raise NotImplementedError("your turn")
