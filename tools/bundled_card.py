"""The card of `tiny`: bundled_card.md filled in from `config.json` and `training.json`, so that the two cannot part.

python tools/bundled_card.py             write llminfer/assets/README.md anew
"""

import json
from pathlib import Path

TEMPLATE = Path(__file__).with_suffix(".md")


def write_card(folder: Path) -> None:
    """Write `README.md` beside the model's folder from what the folder says about itself."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    held_out, drawn = record["held_out"], record["sample"]
    values = config | record | record["recipe"] | held_out
    values |= {
        "held_out_files": len(held_out["files"]),
        "held_out_list": ", ".join(f"`{name}`" for name in held_out["files"]),
        "python": ".".join(record["versions"]["python"].split(".")[:2]),
        "petaflops": 6 * record["parameters"] * record["tokens_read"] / 1e15,
        "curve": "\n".join(_row(point) for point in record["loss_curve"]),
        "prompt": repr(drawn["prompt"]),
        "sample_tokens": drawn["tokens"],
        "sample_seed": drawn["seed"],
        "sample_text": drawn["text"],
        "temperature": drawn["temperature"],
    }
    (folder.parent / "README.md").write_text(TEMPLATE.read_text(encoding="utf-8").format_map(values), encoding="utf-8")


def _row(point: dict[str, float]) -> str:
    losses = f"{point['train_nats_per_token']:.4f} | {point['held_out_bits_per_byte']:.4f}"
    return f"| {point['step']:,} | {point['tokens']:,} | {losses} |"


if __name__ == "__main__":
    write_card(Path(__file__).resolve().parent.parent / "llminfer" / "assets" / "tiny")
