"""Pictures of chapter 3.1: an automaton, the walk of a vocabulary's trie through it, and the mask that comes out."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from llminfer.basics import Grammar
from llminfer.basics.automata import DEAD
from llminfer.basics.vocabulary_tries import ROOT, build_trie
from llminfer.core.plot_style import describe, new_axes, styled

INTEGER = "-?(0|[1-9][0-9]*)"
TOKENS = ("a", "ab", "an", "and", "ant", "1", "10", "103", "108", "1e", "1e1", "1e2")  # of the guidance cookbook
ALIVE, OUT = "#A6D9C8", "#FFFFFF"

STATES = {1: (11, 43), 2: (24, 55), 3: (39, 52), 4: (37, 34)}  # state -> where it is drawn
LABELS = {  # (from, to) -> where the bytes of the edge are written
    (1, 2): (15, 51.5), (1, 3): (25, 46), (1, 4): (23, 35.5), (2, 3): (31.5, 56), (2, 4): (34.2, 44.5),
    (4, 4): (45.5, 30),
}  # fmt: skip


@styled
def automaton() -> Axes:
    """The automaton of whole numbers, the trie of twelve tokens with a state at each node, and the mask."""
    axes = new_axes(7.6, 4.7)
    axes.set(xlim=(0, 100), ylim=(2, 64), title=f"The mask of  {INTEGER}  at the beginning of a text")
    axes.set_aspect("equal")
    axes.axis("off")
    found = Grammar.from_regex(INTEGER).automaton
    trie = build_trie([token.encode() for token in TOKENS], list(range(len(TOKENS))), len(TOKENS))
    states = trie.states_from_root(found.starts[0], lambda at, nodes: found.table[at, found.class_of[trie.byte[nodes]]])
    _draw_automaton(axes, found)
    _draw_trie(axes, trie, states)
    allowed = trie.tokens_at(states != DEAD)
    _draw_mask(axes, allowed)
    rows = [(token, int(states[trie.node_of[i]]) or "dead", bool(allowed[i])) for i, token in enumerate(TOKENS)]
    describe(
        axes,
        "Left, the automaton of whole numbers with four states: a start, one behind a minus sign, one behind a zero, "
        "one behind other digits; the last two may end the text. Right, a trie of twelve tokens with the state at each "
        "node: all that begins with a or 1e is dead. Below, the mask: 1, 10, 103 and 108 may come next.",
        ("token", "state behind it", "allowed"),
        [(token, state, "yes" if yes else "no") for token, state, yes in rows],
    )
    return axes


def _draw_automaton(axes: Axes, found) -> None:
    _arrow(axes, (2, 43), STATES[1], start_radius=0)
    for (here, there), (x, y) in LABELS.items():
        bytes_ = np.flatnonzero(found.table[here, found.class_of] == there)
        if here == there:
            axes.add_patch(
                FancyArrowPatch((39.8, 35.5), (39.8, 32.5), connectionstyle="arc3,rad=-2.1", arrowstyle="-|>",
                                mutation_scale=11, color="black", shrinkA=0, shrinkB=0)
            )  # fmt: skip
        else:
            _arrow(axes, STATES[here], STATES[there])
        axes.text(x, y, _ranges(bytes_), ha="center", va="center", fontsize=9, family="monospace")
    for state, place in STATES.items():
        _node(axes, place, str(state), 3.0, alive=True, ring=bool(found.accepting[state]))
    axes.text(24, 24, "double ring: the text may end", ha="center", va="center", fontsize=8.5, style="italic")


def _draw_trie(axes: Axes, trie, states: np.ndarray) -> None:
    """Levels from left to right, leaves from top to bottom; each node shows its byte, and above it its state."""
    place = _places(trie)
    for node in range(1, trie.nodes):
        dead = states[node] == DEAD
        _arrow(axes, place[trie.parent[node]], place[node], 2.1, 2.1, linestyle=(0, (2, 2)) if dead else "-")
    for node, at in enumerate(place):
        dead = states[node] == DEAD
        label = "" if node == ROOT else chr(trie.byte[node])
        _node(axes, at, label, 2.1, alive=not dead, ring=False, cross=dead)
        if not dead:
            aside = not (trie.parent[1:] == node).any()  # leaves stand too close for a word between them
            x, y, side = (at[0] + 2.9, at[1], "left") if aside else (at[0], at[1] + 3.4, "center")
            axes.text(x, y, f"state {states[node]}", ha=side, va="center", fontsize=7.5)


def _places(trie) -> list[tuple[float, float]]:
    children = [np.flatnonzero(trie.parent[1:] == node) + 1 for node in range(trie.nodes)]
    x, y, next_leaf = np.zeros(trie.nodes), np.zeros(trie.nodes), 58.0

    def put(node: int, depth: int) -> None:
        nonlocal next_leaf
        x[node] = 55 + 12.5 * depth
        for child in sorted(children[node], key=lambda child: -trie.byte[child]):  # letters above digits
            put(child, depth + 1)
        if len(children[node]):
            y[node] = np.mean(y[children[node]])
        else:
            y[node] = next_leaf
            next_leaf -= 6.4

    put(ROOT, 0)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def _draw_mask(axes: Axes, allowed: np.ndarray) -> None:
    width, left = 7.4, 10.5
    axes.text(left - 1.2, 8, "mask", ha="right", va="center", fontsize=9.5, fontweight="bold")
    for place, (token, yes) in enumerate(zip(TOKENS, allowed, strict=True)):
        at = left + place * width
        axes.add_patch(
            Rectangle((at, 5), width, 6, facecolor=ALIVE if yes else OUT, edgecolor="black", linewidth=0.8,
                      hatch="" if yes else "////", alpha=1)
        )  # fmt: skip
        axes.text(
            at + width / 2, 8, token, ha="center", va="center", fontsize=9, family="monospace",
            fontweight="bold" if yes else "normal",
            bbox={"facecolor": ALIVE if yes else OUT, "edgecolor": "none", "pad": 1.2},
        )  # fmt: skip
        axes.text(at + width / 2, 13, "1" if yes else "0", ha="center", va="center", fontsize=9)


def _ranges(bytes_: np.ndarray) -> str:
    """Bytes as a reader writes them: "-", "1-9"."""
    low, high = chr(bytes_[0]), chr(bytes_[-1])
    return low if len(bytes_) == 1 else f"{low}–{high}"


def _node(
    axes: Axes, place: tuple[float, float], label: str, radius: float, alive: bool, ring: bool, cross: bool = False
) -> None:
    colour = ALIVE if alive else OUT
    axes.add_patch(Circle(place, radius, facecolor=colour, edgecolor="black", linewidth=1.1, zorder=3))
    if ring:
        axes.add_patch(Circle(place, radius - 0.6, facecolor="none", edgecolor="black", linewidth=0.9, zorder=3))
    axes.text(*place, label, ha="center", va="center", fontsize=9.5, zorder=5)
    if cross:
        axes.text(place[0] + 2.0, place[1] + 2.0, "×", ha="center", va="center", fontsize=11, zorder=5)


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    radius: float = 3.0,
    start_radius: float = 3.0,
    linestyle: object = "-",
) -> None:
    """From the rim of one node to the rim of another."""
    from_, to = np.array(start), np.array(end)
    direction = (to - from_) / np.hypot(*(to - from_))
    axes.add_patch(
        FancyArrowPatch(from_ + start_radius * direction, to - radius * direction, arrowstyle="-|>", color="black",
                        mutation_scale=9, linewidth=1, linestyle=linestyle, shrinkA=0, shrinkB=0, zorder=2)
    )  # fmt: skip


FIGURES = {"automaton": automaton}
