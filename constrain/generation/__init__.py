"""From a prompt to text that the grammar allows."""

from constrain.generation.loop import Generation, Model, Step, generate
from constrain.generation.statistics import Statistics

__all__ = ["Generation", "Model", "Statistics", "Step", "generate"]
