"""A small line plot as SVG: logarithmic on both axes, drawn without a library so that it needs none."""

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 90, 210, 48, 60
COLOURS = ("#0b6e4f", "#c8553d", "#5b6c9e", "#8a7a3d")
Points = Sequence[tuple[float, float]]


def log_plot(title: str, axes: tuple[str, str], ticks: Mapping[float, str], lines: Mapping[str, Points]) -> str:
    """`axes` are the names of x and y, `ticks` the labels of x. Each line is named at its end."""
    frame = _Frame.around(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 26, title, size=16),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, axes[0], anchor="middle"),
        f'<text transform="translate(20 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(axes[1])}</text>',
        *(_grid(frame.x(at), TOP, frame.x(at), HEIGHT - BOTTOM) for at in ticks),
        *(_text(frame.x(at), HEIGHT - BOTTOM + 20, label, anchor="middle") for at, label in ticks.items()),
        *(_grid(LEFT, frame.y(at), WIDTH - RIGHT, frame.y(at)) for at in frame.decades()),
        *(_text(LEFT - 8, frame.y(at) + 4, f"{at:g}", anchor="end") for at in frame.decades()),
    ]
    for colour, (name, points) in zip(COLOURS, lines.items(), strict=False):
        parts += _line(frame, colour, name, points)
    return "\n".join((*parts, "</svg>")) + "\n"


class _Frame:
    """Where values lie in the picture."""

    def __init__(self, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
        self._x, self._y = x_range, y_range

    @classmethod
    def around(cls, lines: Mapping[str, Points]) -> "_Frame":
        xs = [x for points in lines.values() for x, _ in points]
        ys = [y for points in lines.values() for _, y in points]
        return cls((min(xs), max(xs)), (10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)))))

    def x(self, value: float) -> float:
        return LEFT + _share(value, self._x) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - _share(value, self._y) * (HEIGHT - TOP - BOTTOM)

    def decades(self) -> list[float]:
        low, high = (round(math.log10(bound)) for bound in self._y)
        return [10.0**power for power in range(low, high + 1)]


def _share(value: float, bounds: tuple[float, float]) -> float:
    low, high = map(math.log10, bounds)
    return (math.log10(value) - low) / (high - low)


def _line(frame: _Frame, colour: str, name: str, points: Points) -> list[str]:
    places = [(frame.x(x), frame.y(y)) for x, y in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
    end_x, end_y = places[-1]
    label = _text(end_x + 10, end_y + 4, name, colour=colour)
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, label]


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 13, colour: str = "#222222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
    )
