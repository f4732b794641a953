"""Shapes cannot lie: every annotated function of the package is checked at run time while the tests run.

Kernel files are left out, because a jitted kernel must reach Triton as it was written.
"""

import os
import pkgutil
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import beartype
from jaxtyping import install_import_hook

PACKAGE = Path(__file__).parent.parent / "llminfer"


def reference_modules() -> list[str]:
    """Every leaf module of the package that is not a kernel file."""
    found = pkgutil.walk_packages([str(PACKAGE)], prefix="llminfer.")
    return [module.name for module in found if not module.ispkg and not module.name.endswith(("_triton", "_torch"))]


# In annotations an int is a float (PEP 484, "The numeric tower"), which beartype grants only when asked. The hook takes
# the checker by its dotted name, so the configured one is given a name.
beartype.with_numeric_tower = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
install_import_hook(reference_modules(), "beartype.with_numeric_tower")
