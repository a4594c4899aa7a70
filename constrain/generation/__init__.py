"""From a prompt to text that the grammar allows."""

# ruff: noqa: E402 (numpy before what imports it)

from constrain.uninterrupted import load_numpy

load_numpy()

from constrain.generation.batch import BatchGeneration, generate_batch
from constrain.generation.beams import Beam, beam_search
from constrain.generation.interfaces import BatchModel, Encoder, Model
from constrain.generation.loop import Generation, generate
from constrain.generation.prompt_scores import PromptToken, prompt_log_probabilities
from constrain.generation.prompts import encode_chat, encode_prompt
from constrain.generation.row import Step
from constrain.generation.statistics import Statistics

__all__ = [
    "BatchGeneration",
    "BatchModel",
    "Beam",
    "Encoder",
    "Generation",
    "Model",
    "PromptToken",
    "Statistics",
    "Step",
    "beam_search",
    "encode_chat",
    "encode_prompt",
    "generate",
    "generate_batch",
    "prompt_log_probabilities",
]
