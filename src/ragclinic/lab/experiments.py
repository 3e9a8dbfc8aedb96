"""The experiments, written out: a new one is a file here that ends in `EXPERIMENT`, and its line below.

The file to copy is `kv_growth.py`; the tests in `tests/lab` run every entry twice and render it.
"""

from ragclinic.errors import BadInput
from ragclinic.lab import contention, kv_growth, loading, pool_conflict, quantization
from ragclinic.lab.experiment import Experiment
from ragclinic.physics.nearest import nearest

EXPERIMENTS: tuple[Experiment, ...] = (
    kv_growth.EXPERIMENT,
    loading.EXPERIMENT,
    pool_conflict.EXPERIMENT,
    quantization.EXPERIMENT,
    contention.EXPERIMENT,
)


def named_experiment(name: str) -> Experiment:
    """The experiment of this id.

    Raises:
        BadInput: there is none; the message names the nearest and lists all.
    """
    by_id = {e.id: e for e in EXPERIMENTS}
    if name not in by_id:
        raise BadInput(
            f"experiment {name}: not known; the nearest is {nearest(name, by_id, 1)[0]}; "
            f"expected one of {', '.join(by_id)}"
        )
    return by_id[name]
