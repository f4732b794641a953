"""Train `tiny`, the model in the box, from text that every Python has.

    python tools/train_bundled.py            the whole thing, into llminfer/assets/tiny, and its card
    python tools/train_bundled.py --smoke    a minuscule model in seconds, to see that every step works

Documents (bundled_corpus) -> tokens (bundled_tokenizer) -> a Llama (bundled_llama) -> three files in the Hugging Face
layout -> what they are worth (bundled_judge), in `training.json` and the card. A stopped run goes on where it was.
"""

import argparse
import json
import math
import platform
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import tiktoken
import torch
from bundled_card import write_card
from bundled_corpus import Document, bytes_in, read_documents, split
from bundled_judge import judge, sample
from bundled_llama import Llama, Shape
from bundled_tokenizer import as_tiktoken, train_tokenizer
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional as F

REPOSITORY = Path(__file__).resolve().parent.parent
SAMPLE_PROMPT = "import os\n\n\ndef"  # no space at the end: it belongs to the token that comes next


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to learn. One step reads `batch_size` windows of the model's whole context."""

    steps: int = 1200
    batch_size: int = 8
    warmup_steps: int = 60
    matrix_lr: float = 1e-2  # Muon, scaled to the size of an AdamW update
    other_lr: float = 6e-3  # AdamW: embedding and norm gains
    weight_decay: float = 0.1
    reports: int = 8  # points of the loss curve
    seed: int = 20260101


# --- the text as one row of tokens ----------------------------------------------------------------------------


def tokens_of(documents: list[Document], encoding: tiktoken.Encoding) -> np.ndarray:
    """All documents in one row, `<|endoftext|>` in front of each: [T] uint16."""
    ids = []
    for document in documents:
        ids.append(encoding.eot_token)
        ids.extend(encoding.encode_ordinary(document.text))
    return np.array(ids, dtype=np.uint16)


def windows_at(starts: np.ndarray, tokens: np.ndarray, context: int) -> Tensor:
    """A window and the token after it for every start: [len(starts), context + 1]."""
    return torch.from_numpy(tokens[starts[:, None] + np.arange(context + 1)].astype(np.int64))


def batch_at(step: int, tokens: np.ndarray, recipe: Recipe, context: int) -> Tensor:
    """Windows [batch_size, context + 1] of one step; a function of the step alone, so a run can be taken up again.

    Each epoch cuts the row at a new random offset and reads the windows in a new random order.
    """
    windows = (len(tokens) - 1) // context - 1  # room for any offset below `context`
    epoch, position = divmod(step, windows // recipe.batch_size)
    rng = np.random.default_rng([recipe.seed, epoch])
    offset = rng.integers(context)
    order = rng.permutation(windows)[position * recipe.batch_size :][: recipe.batch_size]
    return windows_at(offset + order * context, tokens, context)


def batches_in_order(tokens: np.ndarray, batch_size: int, context: int) -> list[Tensor]:
    """The row cut into windows without overlap, `batch_size` at a time; the tail is left out."""
    starts = np.arange((len(tokens) - 1) // context) * context
    whole = len(starts) // batch_size * batch_size
    return [windows_at(group, tokens, context) for group in starts[:whole].reshape(-1, batch_size)]


# --- learning -------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A training run between two steps: all that a checkpoint holds."""

    recipe: Recipe
    model: Llama
    optimizers: list[torch.optim.Optimizer]
    step: int = 0
    seconds: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        content = {"recipe": asdict(self.recipe), "step": self.step, "seconds": self.seconds, "curve": self.curve}
        content["model"] = self.model.state_dict()
        content["optimizers"] = [optimizer.state_dict() for optimizer in self.optimizers]
        unfinished = path.with_suffix(".part")
        torch.save(content, unfinished)
        unfinished.replace(path)  # a checkpoint is there as a whole or not at all

    def restore(self, path: Path) -> None:
        """Raises ValueError if the checkpoint belongs to another recipe."""
        content = torch.load(path, weights_only=True)
        if content["recipe"] != asdict(self.recipe):
            raise ValueError(f"{path} has the recipe {content['recipe']}, expected {asdict(self.recipe)}; delete it")
        self.step, self.seconds, self.curve = content["step"], content["seconds"], content["curve"]
        self.model.load_state_dict(content["model"])
        for optimizer, state in zip(self.optimizers, content["optimizers"], strict=True):
            optimizer.load_state_dict(state)


def make_optimizers(model: Llama, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for the embedding and the gains."""
    matrices = [p for p in model.layers.parameters() if p.ndim == 2]
    gains = [p for p in model.layers.parameters() if p.ndim == 1]
    muon = torch.optim.Muon(
        matrices, lr=recipe.matrix_lr, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw"
    )
    others = [*gains, model.embed_tokens.weight, *model.norm.parameters()]
    return [muon, torch.optim.AdamW(others, lr=recipe.other_lr, betas=(0.9, 0.95), weight_decay=0.0)]


def rate_share(step: int, recipe: Recipe) -> float:
    """Share of the peak learning rate at a step: a short rise, a gentle slope until half time, then down to zero."""
    corners = (-1, recipe.warmup_steps, recipe.steps / 2, recipe.steps)
    return float(np.interp(step, corners, (0.0, 1.0, 0.69, 0.0)))


def train(
    run: Run, tokens: np.ndarray, held_out: list[Tensor], tokens_per_byte: float, checkpoint: Path, fuse: bool
) -> None:
    """Take `run` to its last step; reports to the loss curve, and saves, every `steps / reports` steps.

    `held_out` are batches in order, for a rough figure on the way: their windows do not overlap.
    """
    recipe, context = run.recipe, run.model.shape.max_position_embeddings
    report_every = max(1, recipe.steps // recipe.reports)

    def loss_of(batch: Tensor) -> Tensor:
        logits = run.model(batch[:, :-1])  # [B, S, V]
        return F.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())

    if fuse:
        loss_of = torch.compile(loss_of)
    losses, clock = [], time.perf_counter()
    while run.step < recipe.steps:
        for optimizer, peak in zip(run.optimizers, (recipe.matrix_lr, recipe.other_lr), strict=True):
            optimizer.param_groups[0]["lr"] = peak * rate_share(run.step, recipe)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(batch_at(run.step, tokens, recipe, context))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
        for optimizer in run.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
        run.step += 1

        if run.step % report_every == 0 or run.step == recipe.steps:
            with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                nats = sum(loss_of(batch).item() for batch in held_out) / len(held_out)
            point = {"step": run.step, "tokens": run.step * recipe.batch_size * context}
            point["train_nats_per_token"] = round(sum(losses) / len(losses), 4)
            point["held_out_bits_per_byte"] = round(nats / math.log(2) * tokens_per_byte, 4)
            run.curve.append(point)
            run.seconds += time.perf_counter() - clock
            losses, clock = [], time.perf_counter()
            run.save(checkpoint)
            print(f"{run.seconds:6.0f} s  {point}", flush=True)


# --- the three files ------------------------------------------------------------------------------------------


def export(model: Llama, end_of_text: int, folder: Path) -> None:
    """config.json and model.safetensors (float16) as Hugging Face's LlamaForCausalLM reads them."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **asdict(model.shape),
        "head_dim": model.shape.head_dim,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "torch_dtype": "float16",
    }
    write_json(config, folder / "config.json")
    weights = {f"model.{name}": tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def reload(folder: Path, shape: Shape) -> Llama:
    """The exported weights in float32: what is judged is what is shipped."""
    weights = load_file(folder / "model.safetensors")
    model = Llama(shape)
    model.load_state_dict({name.removeprefix("model."): weight.float() for name, weight in weights.items()})
    return model.eval()


def write_json(content: dict, path: Path) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


# --- the command ----------------------------------------------------------------------------------------------


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=Recipe.steps, help="training steps (default %(default)s)")
    parser.add_argument(
        "--threads", type=int, default=torch.get_num_threads(), help="CPU threads (default %(default)s)"
    )
    parser.add_argument("--compile", action="store_true", help="fuse with torch.compile; needs a C++ compiler")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "llminfer" / "assets" / "tiny")
    parser.add_argument("--checkpoint", type=Path, default=REPOSITORY / "_build" / "tiny.pt")
    parser.add_argument("--smoke", action="store_true", help="a minuscule model on a few files, in seconds; no card")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    shape, recipe, documents = Shape(), replace(Recipe(), steps=options.steps), read_documents()
    if options.smoke:
        shape = Shape(512, 64, 128, 1, 2, 1, max_position_embeddings=64)
        recipe = Recipe(steps=20, batch_size=2, warmup_steps=2, reports=4)
        documents = documents[:40]
    torch.set_num_threads(options.threads)
    torch.manual_seed(recipe.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    options.checkpoint.parent.mkdir(parents=True, exist_ok=True)

    training, held_out = split(documents)
    train_tokenizer((d.text for d in training), shape.vocab_size).save(str(options.out / "tokenizer.json"))
    encoding = as_tiktoken(options.out / "tokenizer.json")
    tokens, held_out_tokens = tokens_of(training, encoding), tokens_of(held_out, encoding)

    model = Llama(shape)
    run = Run(recipe, model, make_optimizers(model, recipe))
    if options.checkpoint.exists():
        run.restore(options.checkpoint)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters:,} parameters, {len(training)} documents, {len(tokens):,} tokens, from step {run.step}")
    held_out_batches = batches_in_order(held_out_tokens, recipe.batch_size, shape.max_position_embeddings)
    tokens_per_byte = len(held_out_tokens) / bytes_in(held_out)
    train(run, tokens, held_out_batches, tokens_per_byte, options.checkpoint, options.compile)

    export(model, encoding.eot_token, options.out)
    shipped = reload(options.out, shape)
    tokens_read = recipe.steps * recipe.batch_size * shape.max_position_embeddings
    record = {
        "command": " ".join(["python", "tools/train_bundled.py", *without_folders(sys.argv[1:])]),
        "parameters": parameters,
        "recipe": asdict(recipe),
        "tokens_read": tokens_read,
        "epochs": round(tokens_read / len(tokens), 2),
        "training_documents": len(training),
        "training_bytes": bytes_in(training),
        "training_tokens": len(tokens),
        "wall_time_s": round(run.seconds),
        "versions": {"python": platform.python_version(), "torch": torch.__version__.split("+")[0]},
        "held_out": judge(shipped, training, held_out, encoding),
        "sample": sample(shipped, encoding, SAMPLE_PROMPT, tokens=200, temperature=0.8, seed=1),
        "loss_curve": run.curve,
    }
    write_json(record, options.out / "training.json")
    if not options.smoke:
        write_card(options.out)


def without_folders(arguments: list[str]) -> list[str]:
    """The command line as another machine would give it."""
    kept = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        if before not in ("--out", "--checkpoint") and not argument.startswith(("--out", "--checkpoint")):
            kept.append(argument)
    return kept


if __name__ == "__main__":
    main()
