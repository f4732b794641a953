"""A picture in characters of which elements of an array are wrong, and the pattern in words.

        0    5
    0   ........      . right   x wrong   N NaN or infinite
    1   ....xxxx
    2   ....xxxx

A larger array is drawn in tiles: o stands for a tile with some wrong elements, x for one without a right one.
"""

from math import ceil

import numpy as np

ROWS, COLUMNS = 12, 56
LEGEND = ". right   x wrong"


def mismatch_map(wrong: np.ndarray, lost: np.ndarray | None = None) -> str:
    """Rows are the leading axes, columns the last. lost: which of the wrong elements are NaN or infinite."""
    grid = wrong.reshape(-1, wrong.shape[-1])  # [..., C] -> [R, C]
    holes = np.zeros_like(grid) if lost is None else lost.reshape(grid.shape) & grid
    tall, wide = ceil(grid.shape[0] / ROWS), ceil(grid.shape[1] / COLUMNS)
    tiled = tall * wide > 1
    labels = [_row_label(row, wrong.shape) for row in range(0, grid.shape[0], tall)]
    margin = max(map(len, labels))
    lines = [" " * (margin + 2) + _ruler(grid.shape[1], wide)]
    for label, row in zip(labels, range(0, grid.shape[0], tall), strict=True):
        tiles = [
            _character(grid[row : row + tall, column : column + wide], holes[row : row + tall, column : column + wide])
            for column in range(0, grid.shape[1], wide)
        ]
        lines.append(f"{label:>{margin}}  {''.join(tiles)}")
    legend = LEGEND + ("   o some wrong" if tiled else "") + ("   N NaN or infinite" if holes.any() else "")
    size = f"   one character: {tall} x {wide} elements" if tiled else ""
    return "\n".join([*lines, " " * (margin + 2) + legend + size])


def pattern(wrong: np.ndarray) -> str:
    """What the wrong elements have in common, in words; empty if they are everywhere or nothing is to be seen."""
    if wrong.all() or wrong.size < 2:
        return ""
    if wrong.ndim >= 2 and min(wrong.shape[-2:]) > 1:
        rows, columns = np.indices(wrong.shape)[-2:]
        for name, part in (
            ("above", columns > rows),
            ("on", columns == rows),
            ("below", columns < rows),
            ("on or above", columns >= rows),
            ("on or below", columns <= rows),
        ):
            if np.array_equal(wrong, part):
                return f"exactly those {name} the diagonal"
    parts = []
    for axis, length in enumerate(wrong.shape):
        hit = np.flatnonzero(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        if len(hit) < length:
            parts.append(f"{_axis_name(axis, wrong.ndim)}{'s' if len(hit) > 1 else ''} {_ranges(hit)}")
    return "only in " + " of ".join(reversed(parts)) if parts else ""


def _axis_name(axis: int, ndim: int) -> str:
    if ndim == 1:
        return "place"
    return {ndim - 1: "column", ndim - 2: "row"}.get(axis, f"axis-{axis} place")


def _ranges(places: np.ndarray) -> str:
    """[0, 1, 2, 5] as "0-2, 5", and [1, 3, 5, 7] as "1, 3, 5, ..."."""
    steps = np.diff(places)
    if len(places) > 3 and steps[0] > 1 and (steps == steps[0]).all():
        return ", ".join(map(str, places[:3])) + ", ..."
    runs = np.split(places, np.flatnonzero(steps != 1) + 1)
    words = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ", ".join(words[:5]) + (", ..." if len(words) > 5 else "")


def _row_label(row: int, shape: tuple[int, ...]) -> str:
    if len(shape) <= 2:
        return str(row)
    return ",".join(map(str, np.unravel_index(row, shape[:-1])))


def _ruler(columns: int, wide: int) -> str:
    """Column numbers over every tenth character, over every fifth where all fit."""
    shown = ceil(columns / wide)
    step = 5 if shown <= 20 else 10
    return "".join(f"{place * wide:<{step}}" for place in range(0, shown, step)).rstrip()


def _character(tile: np.ndarray, holes: np.ndarray) -> str:
    if holes.any():
        return "N"
    return "x" if tile.all() else "o" if tile.any() else "."
