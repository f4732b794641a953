"""Where the library keeps what it fetched or measured: one folder of the user's, where the system wants such things."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """The folder for downloaded models and measurements; it may not exist yet, and can be deleted at any time.

    LLMINFER_CACHE names it outright. Otherwise: ~/Library/Caches/llminfer on macOS, %LOCALAPPDATA%\\llminfer\\Cache on
    Windows, and $XDG_CACHE_HOME/llminfer (usually ~/.cache/llminfer) elsewhere. Raises ValueError when the variable
    names the home of somebody unknown.
    """
    if chosen := os.environ.get("LLMINFER_CACHE"):
        try:
            return Path(chosen).expanduser()
        except RuntimeError as problem:  # ~somebody, and nobody of that name has a home here
            raise ValueError(f"LLMINFER_CACHE is {chosen!r}: {problem}; set it to a folder of yours") from None
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "llminfer" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "llminfer"
    # The XDG specification says that a relative path is to be ignored.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache") / "llminfer"
