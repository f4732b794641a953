"""Chapter 3.1, the basics: the generation loop, the model inside it, the machine below it, and the roofline between.

A way to read the files. The loop: `generation`, then what surrounds it, `sampling`, `continuations`, `stop_strings`.
Text to ids and back: `tokenization`, `chat_templates`. The model: `config`, `transformer` with its doors `ops`
(`norms`, `rotary`, `activations`, `probabilities`, `embeddings`, `projections`), `memory`, `weights` and `experts`.
Models as numbers: `presets`, `parameters`, then what a step costs, `steps`, and how long it takes at best, `rooflines`.
Models as files: `checkpoints`, `hugging_face`, `gguf_files`, `block_codecs`, `fetching`. A file that ends in `_triton`
is the kernel of the file beside it.
"""

from llminfer.core.public_names import Section, lazily

SECTIONS = (
    Section(
        "3.1.1",
        "The generation loop",
        {
            "generate": "generation",
            "stream": "generation",
            "SamplingParams": "sampling",
            "sample": "sampling",
            "GeneratedToken": "continuations",
            "Completion": "continuations",
            "collect": "continuations",
            "Tokenizer": "tokenization",
            "StreamDecoder": "tokenization",
            "load_model": "checkpoints",
            "load_tokenizer": "checkpoints",
            "available_models": "checkpoints",
            "fetch": "fetching",
            "read_gguf": "gguf_files",
            "dequantize": "block_codecs",
        },
    ),
    Section(
        "3.1.2",
        "Inside the model",
        {
            "ModelConfig": "config",
            "AttentionSpec": "config",
            "RopeSpec": "config",
            "MlaSpec": "config",
            "MoeSpec": "config",
            "Transformer": "transformer",
            "Weight": "weights",
            "DenseWeight": "weights",
            "View": "memory",
            "Cache": "memory",
            "NoCache": "memory",
            "attend": "memory",
            "route": "experts",
            "LoopExperts": "experts",
            "embed": "embeddings",
            "rmsnorm": "norms",
            "rmsnorm_residual": "norms",
            "layernorm": "norms",
            "rope_frequencies": "rotary",
            "rope": "rotary",
            "swiglu": "activations",
            "geglu": "activations",
            "gelu": "activations",
            "softmax": "probabilities",
            "log_softmax": "probabilities",
            "matvec": "projections",
            "PRESETS": "presets",
            "preset": "presets",
            "parameter_count": "parameters",
            "ParameterCount": "parameters",
        },
    ),
    Section(
        "3.1.3",
        "Prefill and decode: what a step costs",
        {
            "Segment": "steps",
            "prefill": "steps",
            "decode": "steps",
            "step_cost": "steps",
            "step_costs": "steps",
            "visible_pairs": "steps",
            "expected_experts": "steps",
        },
    ),
    Section(
        "3.1.4",
        "The roofline",
        {
            "Cost": "llminfer.core.cost",
            "Device": "llminfer.core.hardware",
            "DEVICES": "llminfer.core.hardware",
            "device": "llminfer.core.hardware",
            "measure_device": "llminfer.core.measurement",
            "attainable": "rooflines",
            "roofline_time": "rooflines",
            "critical_batch": "rooflines",
            "attention_intensity": "rooflines",
            "step_times": "rooflines",
            "step_time": "rooflines",
            "decode_ceiling": "rooflines",
            "max_batch": "rooflines",
        },
    ),
)

__getattr__, __dir__, __all__ = lazily(__name__, SECTIONS)
