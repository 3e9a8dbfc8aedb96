"""Opens what a person hands over: a recording as it is, anything else through a recording made for the moment."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ragclinic.signals.importing import import_paths
from ragclinic.signals.load import load
from ragclinic.signals.recording import is_recording
from ragclinic.signals.seen import Seen


def read_sources(sources: Sequence[str], where: str | None = None) -> tuple[Seen, Path | None]:
    """What was seen, and the recording's folder where it was one.

    Raises:
        BadInput: nothing there, nothing that any reader knows, or a damaged recording.
    """
    from ragclinic.cli.bytes_progress import BytesProgress
    from ragclinic.signals.importing import ImportOptions

    if len(sources) == 1 and is_recording(Path(sources[0])):
        return load(Path(sources[0]), where), Path(sources[0])
    with tempfile.TemporaryDirectory(prefix="ragclinic-") as folder:
        with BytesProgress() as progress:
            import_paths(list(sources), Path(folder) / "recording", ImportOptions(), progress)
        return load(Path(folder) / "recording", where), None
