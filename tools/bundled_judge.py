"""What a trained model is worth: bits per byte on held-out text beside xz, and a sample to look at."""

import lzma
import math

import numpy as np
import tiktoken
import torch
from bundled_corpus import Document, bytes_in
from bundled_llama import Llama
from torch.nn import functional as F


def judge(
    model: Llama, training: list[Document], held_out: list[Document], encoding: tiktoken.Encoding
) -> dict[str, int | float | dict[str, dict[str, float]]]:
    """Held-out bits per byte of the model and of xz: on one stream, file by file, and after the training text.

    The last one is the fair opponent of a model that has read the training text: what xz needs more for training and
    held-out text in one stream than for the training text alone (both lie inside its window of 64 MiB).
    """
    context = model.shape.max_position_embeddings
    model_bits = [
        bits_of(model, [encoding.eot_token, *encoding.encode_ordinary(d.text)], context, stride=context // 2)
        for d in held_out
    ]
    texts = [d.text.encode() for d in held_out]
    xz_each = [xz_bits(text) for text in texts]
    stream, before = b"".join(texts), "".join(d.text for d in training).encode()
    size = len(stream)
    return {
        "held_out_bytes": size,
        "context": context,
        "stride": context // 2,
        "model_bits_per_byte": round(sum(model_bits) / size, 4),
        "xz_bits_per_byte": round(xz_bits(stream) / size, 4),
        "xz_file_by_file_bits_per_byte": round(sum(xz_each) / size, 4),
        "xz_after_training_text_bits_per_byte": round((xz_bits(before + stream) - xz_bits(before)) / size, 4),
        "files": {
            d.name: {
                "bytes": bytes_in([d]),
                "model_bits_per_byte": round(bits / bytes_in([d]), 4),
                "xz_bits_per_byte": round(xz / bytes_in([d]), 4),
            }
            for d, bits, xz in zip(held_out, model_bits, xz_each, strict=True)
        },
    }


@torch.inference_mode()
def bits_of(model: Llama, ids: list[int], context: int, stride: int) -> float:
    """Bits the model needs for ids[1:], each predicted from the tokens before it inside a sliding window.

    Windows of `context` tokens move on by `stride`; only what the window before did not score is scored, so every
    token after the first window has at least `context - stride` tokens in front of it.
    """
    nats, scored = 0.0, 0  # ids[1 : scored + 1] are done
    while scored < len(ids) - 1:
        end = min(scored + (context if scored == 0 else stride), len(ids) - 1)
        window = torch.tensor(ids[max(0, end - context) : end + 1])
        logits = model(window[None, :-1])[0]  # [S, V]
        fresh = end - scored
        nats += F.cross_entropy(logits[-fresh:], window[-fresh:], reduction="sum").item()
        scored = end
    return nats / math.log(2)


def xz_bits(text: bytes) -> int:
    """Bits of `xz -9e` without a checksum: the format's best."""
    return 8 * len(lzma.compress(text, check=lzma.CHECK_NONE, preset=9 | lzma.PRESET_EXTREME))


@torch.inference_mode()
def sample(
    model: Llama, encoding: tiktoken.Encoding, prompt: str, tokens: int, temperature: float, seed: int
) -> dict[str, str | int | float]:
    """`tokens` tokens after `prompt`, drawn at `temperature`, with what is needed to draw them again."""
    rng = np.random.default_rng(seed)
    ids = [encoding.eot_token, *encoding.encode_ordinary(prompt)]
    for _ in range(tokens):
        logits = model(torch.tensor([ids[-model.shape.max_position_embeddings :]]))[0, -1].double()  # [V]
        probabilities = torch.softmax(logits / temperature, dim=-1).numpy()
        ids.append(int(rng.choice(len(probabilities), p=probabilities)))
    text = encoding.decode(ids[1:])
    return {"prompt": prompt, "tokens": tokens, "temperature": temperature, "seed": seed, "text": text}
