"""Signals and physics in, a `Diagnosis` out; no I/O.

The verbs: `diagnose` a recording, `prescribe` for what was found, `predict` what settings would do; `heat_map`,
`price_chunks` and `point` are what a report draws besides.
"""

from ragclinic.diagnosis.axes import request_axes
from ragclinic.diagnosis.heatmap import heat_map
from ragclinic.diagnosis.latency_model import fit_latency
from ragclinic.diagnosis.prefix import point
from ragclinic.diagnosis.prescribe import prescribe
from ragclinic.diagnosis.prescription import Prescription
from ragclinic.diagnosis.prices import price_chunks
from ragclinic.diagnosis.replay import predict
from ragclinic.diagnosis.say import in_language
from ragclinic.diagnosis.verdict import diagnose

__all__ = [
    "Prescription",
    "diagnose",
    "fit_latency",
    "heat_map",
    "in_language",
    "point",
    "predict",
    "prescribe",
    "price_chunks",
    "request_axes",
]
