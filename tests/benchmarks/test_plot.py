from xml.etree import ElementTree

from benchmarks.plot import log_plot

SVG = "{http://www.w3.org/2000/svg}"


def _plot() -> ElementTree.Element:
    lines = {"ours & fast": [(64, 0.2), (1024, 3.0)], "peer": [(64, 2.0), (1024, 40.0)]}
    return ElementTree.fromstring(log_plot("Sizes", ("size", "ms"), {64: "64 B", 1024: "1 KiB"}, lines))


def _points(line: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = [point.split(",") for point in line.attrib["points"].split()]
    return [(float(x), float(y)) for x, y in pairs]


def test_a_plot_names_its_lines_axes_and_ticks() -> None:
    texts = {text.text for text in _plot().iter(f"{SVG}text")}

    assert {"Sizes", "size", "ms", "64 B", "1 KiB", "ours & fast", "peer", "0.1", "1", "10", "100"} == texts


def test_larger_values_lie_higher_and_further_right_on_logarithmic_axes() -> None:
    ours, peer = (_points(line) for line in _plot().iter(f"{SVG}polyline"))

    assert ours[0][0] < ours[1][0]
    assert ours[0][1] > ours[1][1] > peer[1][1]
    decade = (ours[0][1] - peer[0][1], ours[1][1] - peer[1][1])
    assert abs(decade[0] - (peer[0][1] - peer[1][1]) / 1.30103) < 0.2
