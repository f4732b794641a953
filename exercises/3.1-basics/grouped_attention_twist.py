"""The attention of one Heron layer: groups, anchors, and heads that feel distance.

Heron is the made-up family of `parameter_count`. Its attention is grouped, as in Llama, but it has no RoPE, and two
rules of its own. Long texts taught engineers that the first tokens must stay in sight, whatever else is forgotten: so a
query sees the latest tokens and a few anchors. And each head has a slope by which it prefers what is near; one with a
steep slope reads the last words, one with a flat slope the whole window. The gates come later, and are not your task.

Task: write `grouped_attention_twist`.

Shapes: q [T, H, E]; k and v [S, K, E]; slopes [H] -> [T, H, E]. H is a multiple of K, and S at least T.
Book section 3.1.2. About 35 minutes.
"""

import numpy as np
from jaxtyping import Float


def grouped_attention_twist(
    q: Float[np.ndarray, "T H E"],
    k: Float[np.ndarray, "S K E"],
    v: Float[np.ndarray, "S K E"],
    slopes: Float[np.ndarray, "H"],
    window: int,
    anchors: int,
) -> Float[np.ndarray, "T H E"]:
    """What each query head takes from the values that its token sees.

    The text has S tokens. The queries are those of its last T: query i stands at position t = S - T + i.

    - Query head h reads key/value head h // (H / K).
    - A query sees a key at position s if the key is not later (s <= t), and is one of the latest `window` (t - s <
      window) or one of the first `anchors` (s < anchors). `window` is at least 1: every query sees its own key.
    - The score of a key is q·k / sqrt(E), less slopes[h] * (t - s); anchors pay nothing for their distance.
    - The softmax of the scores over the visible keys weighs their values.

    Scores may reach 10,000. The result has the dtype of `q`; no argument is changed.
    """
    raise NotImplementedError("your turn")
