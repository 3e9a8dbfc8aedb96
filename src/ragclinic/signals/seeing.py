"""What a diagnosis looks at, from a recording or straight from the files that people have."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ragclinic.signals.importing import ImportOptions, ImportReport, Progress, import_paths
from ragclinic.signals.load import load
from ragclinic.signals.recording import is_recording
from ragclinic.signals.seen import Seen


class Sight(NamedTuple):
    """What was seen, and the account of the import where files were read."""

    seen: Seen
    report: ImportReport | None = None


def see(
    paths: Sequence[str | Path],
    where: str | None = None,
    options: ImportOptions | None = None,
    progress: Progress | None = None,
) -> Sight:
    """What a recording holds, or what files hold once imported into a recording that is thrown away.

    Raises:
        BadInput: nothing there that can be read, or a condition that is not SQL.
    """
    if len(paths) == 1 and is_recording(Path(paths[0])):
        return Sight(load(Path(paths[0]), where))
    with tempfile.TemporaryDirectory(prefix="ragclinic-") as folder:
        report = import_paths(paths, Path(folder) / "rec", options, progress)
        seen = load(report.folder, where)
    return Sight(replace(seen, source=", ".join(map(str, paths))), report)
