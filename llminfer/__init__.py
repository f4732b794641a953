"""llminfer: every idea of LLM inference as a readable NumPy reference beside a Triton kernel.

One package a chapter, in the order of the book: `basics` (3.1), then those still to come. `core` holds what all
chapters share. Importing this package loads none of them; `llminfer where` lists what each section of the book offers.
"""

__version__ = "0.1.0"
