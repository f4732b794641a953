"""A plain Llama in torch: what `tiny` is while it learns.

Modules carry Hugging Face's names, so exporting is a matter of writing the state dict down.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Shape:
    """Sizes of the model, in Hugging Face's words. Every matrix has rows of a multiple of 256 (K-quants need that)."""

    vocab_size: int = 4096
    hidden_size: int = 256
    intermediate_size: int = 768
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    max_position_embeddings: int = 512
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE in the half-split form: channel i turns together with channel i + E/2."""
    first, second = x.chunk(2, dim=-1)  # [B, H, S, E] -> two of [B, H, S, E/2]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        width, E = shape.hidden_size, shape.head_dim
        self.head_dim = E
        self.q_proj = nn.Linear(width, shape.num_attention_heads * E, bias=False)
        self.k_proj = nn.Linear(width, shape.num_key_value_heads * E, bias=False)
        self.v_proj = nn.Linear(width, shape.num_key_value_heads * E, bias=False)
        self.o_proj = nn.Linear(shape.num_attention_heads * E, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        B, S, _ = x.shape
        q, k, v = (
            projection(x).view(B, S, -1, self.head_dim).transpose(1, 2)  # [B, heads, S, E]
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)  # [B, H, S, E]
        return self.o_proj(out.transpose(1, 2).reshape(B, S, -1))


class MLP(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        self.mlp = MLP(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Token ids [B, S] in, logits [B, S, V] out; the embedding table is also the output matrix."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = nn.RMSNorm(shape.hidden_size, eps=shape.rms_norm_eps)
        frequency = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)  # [E/2]
        angle = torch.outer(torch.arange(shape.max_position_embeddings), frequency)  # [S, E/2]
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        """Normal(0, 0.02); what is added to the residual stream starts smaller, by 1/sqrt(2 L) (GPT-2)."""
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                writes_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = (2 * self.shape.num_hidden_layers) ** -0.5 if writes_residual else 1.0
                nn.init.normal_(weight, std=0.02 * scale)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed_tokens(tokens)  # [B, S, D]
        S = tokens.shape[1]
        cos, sin = self.cos[:S].to(x.dtype), self.sin[:S].to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return F.linear(self.norm(x), self.embed_tokens.weight)  # [B, S, V]
