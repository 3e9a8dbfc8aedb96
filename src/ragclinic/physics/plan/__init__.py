"""Plans: one setting's memory, speed, breaking load and cheapest cure."""

from ragclinic.physics.plan.cheapest import Change
from ragclinic.physics.plan.plan import Plan, make_plan
from ragclinic.physics.plan.predict import Break, Load, even_load, trace_load, under_load
from ragclinic.physics.plan.setting import Setting

__all__ = ["Break", "Change", "Load", "Plan", "Setting", "even_load", "make_plan", "trace_load", "under_load"]
