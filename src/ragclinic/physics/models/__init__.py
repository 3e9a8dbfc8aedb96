"""Models: their layers, widths and parameters, from a config.json, a GGUF header or the table of known ones."""

from ragclinic.physics.models.config import from_config
from ragclinic.physics.models.from_gguf import from_gguf
from ragclinic.physics.models.layer import Layer
from ragclinic.physics.models.model import Model, Parameters, touched_share
from ragclinic.physics.models.table import known_models, named_model

__all__ = [
    "Layer",
    "Model",
    "Parameters",
    "from_config",
    "from_gguf",
    "known_models",
    "named_model",
    "touched_share",
]
