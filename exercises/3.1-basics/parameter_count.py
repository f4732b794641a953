"""How many parameters? A model that no table knows.

Heron is a made-up family of models. It is built like Llama, RMSNorm before each block, grouped-query attention and
SwiGLU, no biases, with four differences:

1. Its layers come in pairs. The first of a pair makes keys and values from its input; the second has queries of its own
   but no key and value matrices: it attends to the keys and values of the first.
2. Every query head has a gate: a matrix [D, H] makes one number a head, whose sigmoid multiplies the head's result.
3. In place of one feed-forward block a layer has X experts, each a SwiGLU of width F (three matrices), and a router
   [D, X] that sends every token to k of them.
4. The embedding table serves as head a second time.

Your own Heron is drawn from your student id. Print it, and paste it below as MODEL:

    llminfer exercises show 3.1/parameter_count --student YOUR-ID

Task: give three numbers, by pencil or by program. With the book's letters, MODEL holds L "layers" (an even number), D
"width", H "heads", K "kv_heads", E "head_width" (H * E need not be D), X "experts", k "chosen", F "expert_width", V
"vocabulary".

Book section 3.1.2. About 20 minutes.
"""

MODEL: dict[str, int] = {}


def answer() -> dict[str, int]:
    """Your numbers of parameters, exactly.

    "attention": the matrices of all attention blocks, gates included, without norms. "total": all parameters of the
    model. "active": those on the path of one token, that is "total" without the experts that it is not sent to.
    """
    raise NotImplementedError("your turn")
