"""Small random models of families that keep a running state, or whose layers are of several kinds."""

from __future__ import annotations

import torch
from sampling_cases import CONTEXT, END, SpelledCodec
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig

from partway.models.loading import LanguageModel

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "bos_token_id": None, "pad_token_id": None}
SIZES |= {"eos_token_id": END, "tie_word_embeddings": False}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
LINEAR_HEADS = {"linear_num_key_heads": 2, "linear_num_value_heads": 4}
LINEAR_HEADS |= {"linear_key_head_dim": 8, "linear_value_head_dim": 8, "head_dim": 8}
MIXED = {"layer_types": ["linear_attention", "full_attention"]}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
EXPERTS |= {"shared_expert_intermediate_size": 16}
SSM = {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 8}
FAMILIES = {
    "bamba": {**HEADS, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "attn_layer_indices": [1]},
    "falcon_h1": {**HEADS, **SSM, "head_dim": 8},
    "falcon_mamba": {"state_size": 8},
    "granitemoehybrid": {
        **HEADS,
        "mamba_n_heads": 4,
        "mamba_d_head": 16,
        "mamba_d_state": 8,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 16,
        "layer_types": ["mamba", "attention"],
    },
    "jamba": {
        **HEADS,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "mamba_d_state": 8,
        "mamba_dt_rank": 4,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "use_mamba_kernels": False,
    },
    "lfm2": {**HEADS, "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    "mamba": {"state_size": 8},
    "mamba2": {"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1, "chunk_size": 8},
    "minimax": {**HEADS, "num_local_experts": 4, "head_dim": 8, "block_size": 4, **MIXED},
    "olmo_hybrid": {**HEADS, **MIXED, **LINEAR_HEADS},
    "qwen3_5_text": {**HEADS, **MIXED, **LINEAR_HEADS},
    "qwen3_next": {**HEADS, **MIXED, **LINEAR_HEADS, **EXPERTS},
    "recurrent_gemma": {**HEADS, "lru_width": 32, "attention_window_size": 16, "num_hidden_layers": 3},
    "rwkv": {"attention_hidden_size": 32, "context_length": CONTEXT, "intermediate_size": 48},
    "zamba2": {
        **HEADS,
        "mamba_d_state": 8,
        "n_mamba_heads": 4,
        "mamba_headdim": 16,
        "mamba_ngroups": 1,
        "chunk_size": 8,
        "layers_block_type": ["mamba", "hybrid"],
        "num_mem_blocks": 1,
        "adapter_rank": 4,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
    },
}

PROMISED = ("falcon_h1", "jamba", "lfm2", "mamba", "qwen3_5_text", "qwen3_next", "rwkv")


def config_of(family: str, vocabulary: int) -> PreTrainedConfig:
    """A config of the family with sizes for a test."""
    sizes = SIZES | {"vocab_size": vocabulary} | FAMILIES[family]
    return AutoConfig.for_model(family, **sizes)


def stateful_model(family: str, vocabulary: int = 61) -> LanguageModel:
    """A random model that is given and gives numbers of tokens; what it read makes a difference."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config_of(family, vocabulary)).eval()
        with torch.no_grad():
            for weights in model.parameters():
                if weights.dim() > 1:
                    weights.add_(torch.randn_like(weights), alpha=0.12)
    return LanguageModel(model, SpelledCodec(tokenizer=None, eos_id=END, pad_id=END), CONTEXT)
