"""Delete a folder that a stranger has filled."""

import os
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Delete everything below, of any depth and with any modes. Links are removed and not followed.

    Whoever filled the folder must have ended. Folders are emptied one by one and moved up before that: a path of a
    thousand folders is too long to be named, and recursion into it would not come back. Raises OSError if it fails.
    """
    waiting, moved = [folder], 0
    while waiting:
        place = waiting.pop()
        for entry in list(os.scandir(place)):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)  # a folder may be closed to its owner, too
                moved += 1
                waiting.append(folder.with_name(f"{folder.name}-{moved}"))
                os.rename(entry.path, waiting[-1])
            else:
                os.unlink(entry.path)
        os.rmdir(place)
