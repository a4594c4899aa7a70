"""From a prompt to text that the grammar allows."""

from constrain.generation.batch import BatchGeneration, generate_batch
from constrain.generation.interfaces import BatchModel, Encoder, Model
from constrain.generation.loop import Generation, generate
from constrain.generation.prompts import encode_chat, encode_prompt
from constrain.generation.row import Step
from constrain.generation.statistics import Statistics

__all__ = [
    "BatchGeneration",
    "BatchModel",
    "Encoder",
    "Generation",
    "Model",
    "Statistics",
    "Step",
    "encode_chat",
    "encode_prompt",
    "generate",
    "generate_batch",
]
