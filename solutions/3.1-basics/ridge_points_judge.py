"""Judge's side of ridge_points: seconds for a byte, seconds for a FLOP, and where they meet."""

from llminfer.grading.spec import Mutant, Tolerance, Variant

VERSION = 1
TOLERANCE = Tolerance(relative=2e-3, dtype="any")  # three digits; the smallest mistake with units, GiB for GB, is 7e-2


def draw(rng):
    drawn = {
        "A": {"sparse_tflops": int(rng.integers(80, 400)) * 10, "bandwidth_gb_s": int(rng.integers(30, 80)) * 50},
        "B": {
            "dense_tflops": int(rng.integers(50, 250)),
            "bus_bits": int(rng.choice([192, 256, 320, 384])),
            "gigatransfers": int(rng.integers(14, 29)),
        },
        "C": {
            "units": int(rng.integers(30, 70)) * 4,
            "ghz": int(rng.integers(15, 25)) / 10,
            "flops_per_clock": int(rng.choice([2048, 4096])),
            "stacks": int(rng.integers(4, 9)),
            "gb_s_per_stack": int(rng.integers(20, 45)) * 20,
        },
        "weight_bits": float(rng.choice([4.25, 4.5, 6.5, 8.5])),
        "experts": int(rng.choice([32, 64, 128])),
        "chosen": int(rng.integers(3, 9)),
        "batch": 1,
    }
    turns = sorted(reference(drawn)["critical_batches"])
    return drawn | {"batch": round((turns[0] * turns[-1]) ** 0.5)}  # on both sides of the ridge


def reference(drawn):
    A, B, C = (drawn[name] for name in "ABC")
    ns_per_flop = (
        2e-3 / A["sparse_tflops"],
        1e-3 / B["dense_tflops"],
        1 / (C["units"] * C["ghz"] * C["flops_per_clock"]),
    )
    ns_per_byte = (
        1 / A["bandwidth_gb_s"],
        8 / (B["bus_bits"] * B["gigatransfers"]),
        1 / (C["stacks"] * C["gb_s_per_stack"]),
    )
    both = list(zip(ns_per_flop, ns_per_byte, strict=True))
    reading = drawn["weight_bits"] / 8
    critical = [reading * byte / (2 * flop) for flop, byte in both]
    spread = drawn["chosen"] / drawn["experts"]  # an expert's share of the tokens
    computing = [(2 * drawn["batch"] * flop, reading * byte) for flop, byte in both]
    return {
        "ridges": [byte / flop for flop, byte in both],
        "critical_batches": critical,
        "experts": [tokens / spread for tokens in critical],
        "shares": [compute / max(compute, read) for compute, read in computing],
    }


def _like(device="", **changes):
    """What the sheets give to somebody who reads entries in another way: new value = change(old value)."""

    def answers(drawn):
        sheet = drawn[device] if device else drawn
        read = sheet | {key: change(drawn, sheet[key]) for key, change in changes.items()}
        return reference(drawn | ({device: read} if device else read))

    return answers


def _smaller(answers, factor):
    scaled = {key: [factor * number for number in answers[key]] for key in ("ridges", "critical_batches", "experts")}
    return scaled | {"shares": [min(1.0, share / factor) for share in answers["shares"]]}


MUTANTS = (
    Mutant(
        "with sparsity",
        (('A["sparse_tflops"] / 2 * 1e12', 'A["sparse_tflops"] * 1e12'),),
        like=_like("A", sparse_tflops=lambda drawn, old: 2 * old),
        hint="The ridge of A is twice what it should be. Which of its matrices reach the printed rate?",
    ),
    Mutant(
        "bits for bytes",
        (('B["bus_bits"] / 8 * B', 'B["bus_bits"] * B'),),
        like=_like("B", bus_bits=lambda drawn, old: 8 * old),
        hint="The ridge of B is an eighth of what it should be. What crosses one wire of the bus in one transfer?",
    ),
    Mutant(
        "one stack",
        (('C["stacks"] * C["gb_s_per_stack"]', 'C["gb_s_per_stack"]'),),
        like=_like("C", stacks=lambda drawn, old: 1),
        hint="The ridge of C is too high by the number of its stacks. Do they work one after another?",
    ),
    Mutant(
        "one unit",
        (('C["units"] * C["ghz"]', 'C["ghz"]'),),
        like=_like("C", units=lambda drawn, old: 1),
        hint="The ridge of C is too low by the number of its units. What does its sheet say the FLOPs are of?",
    ),
    Mutant(
        "the ridge again",
        (('SHEETS["weight_bits"] / 16', "1"),),
        like=_like(weight_bits=lambda drawn, old: 16),
        hint="Your critical batches are your ridges. That is so for weights of 16 bits. Are yours?",
    ),
    Mutant(
        "one FLOP a weight",
        (('SHEETS["weight_bits"] / 16', 'SHEETS["weight_bits"] / 8'),),
        like=_like(weight_bits=lambda drawn, old: 2 * old),
        hint="Your critical batches are twice what they should be. How many FLOPs does a token spend on a weight?",
    ),
    Mutant(
        "upside down",
        (('SHEETS["weight_bits"] / 16', '16 / SHEETS["weight_bits"]'),),
        like=_like(weight_bits=lambda drawn, old: 256 / old),
        hint="Smaller weights are read sooner. Does a device then need more tokens to be kept busy, or fewer?",
    ),
    Mutant(
        "more tokens an expert",
        (('SHEETS["experts"] / SHEETS["chosen"]', 'SHEETS["chosen"] / SHEETS["experts"]'),),
        like=_like(
            experts=lambda drawn, old: drawn["chosen"],
            chosen=lambda drawn, old: drawn["experts"],
        ),
        hint="You say that experts are kept busy by fewer tokens than one matrix is. How many of the tokens reach an "
        "expert?",
    ),
    Mutant(
        "one expert a token",
        (('SHEETS["experts"] / SHEETS["chosen"]', 'SHEETS["experts"]'),),
        like=_like(chosen=lambda drawn, old: 1),
        hint="Your numbers for experts are too high: every token goes to several of them.",
    ),
    Mutant(
        "GiB for GB",
        (("GB = 1e9", "GB = 2**30"),),
        like=lambda drawn: _smaller(reference(drawn), 1e9 / 2**30),
        hint="All your ridges are 7 % too low. How many bytes are a GB?",
    ),
)

ROUNDED = """
    rounded = {"ridges": ridges, "critical_batches": critical, "experts": experts, "shares": shares}
    return {name: [float(f"{number:.4g}") for number in numbers] for name, numbers in rounded.items()}
"""

HONEST = (
    Variant(
        "rounded to four digits",
        (
            (
                'return {"ridges": ridges, "critical_batches": critical, "experts": experts, "shares": shares}',
                ROUNDED.strip(),
            ),
        ),
    ),
    Variant(
        "from seconds",
        (
            ("ridge * SHEETS", "1 / (2 / ridge) * SHEETS"),
            ('["weight_bits"] / 16', '["weight_bits"] / 8'),
        ),
    ),
    Variant("a whole 1 at the roof", (("min(1.0, SHEETS", "min(1, SHEETS"),)),
)
