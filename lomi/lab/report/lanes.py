"""Where each device's time went: a picture over the whole run, and a table whose rows add up to it."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, get_args

from lomi.lab.report.model import RunReport
from lomi.lab.shard import Part, Segment
from lomi.report.markup import element, inert, listed

PARTS: tuple[Part, ...] = get_args(Part)
_WIDE = 1000.0
_LEAST = 0.3
_SAME_S = 0.1
_MOST_MARKS = 4000
"""Marks of one lane; with more tests than that, neighbours of one part are drawn as one."""


class LaneTime(NamedTuple):
    """One device's seconds by part, over the wall time of the run."""

    host: str
    lane: str
    seconds: dict[Part, float]

    @property
    def total_s(self) -> float:
        """Their sum: the time that this lane was there."""
        return sum(self.seconds.values())


def lane_times(segments: Iterable[Segment]) -> list[LaneTime]:
    """Every lane with its seconds by part."""
    return [
        LaneTime(host, lane, {part: sum(s.ended - s.began for s in some if s.part == part) for part in PARTS})
        for (host, lane), some in _by_lane(segments)
    ]


def _by_lane(segments: Iterable[Segment]) -> list[tuple[tuple[str, str], list[Segment]]]:
    ordered = sorted(segments, key=lambda one: (one.host, one.lane, one.began))
    return [(name, list(some)) for name, some in groupby(ordered, key=lambda one: (one.host, one.lane))]


def lane_chart(run: RunReport) -> str:
    """A row a lane, from the run's beginning to its end."""
    if not run.segments:
        return element("p", "Nothing ran.")
    hosts = {segment.host for segment in run.segments}
    numbers = {test.id: test.number for test in run.tests}
    rows = [
        _row(lane if len(hosts) == 1 else f"{host} {lane}", some, run, numbers)
        for (host, lane), some in _by_lane(run.segments)
    ]
    legend = "".join(element("span", inert(part), class_=f"key {part}") for part in PARTS)
    scale = element("span", "0 s") + element("span", f"{run.wall_s:.1f} s")
    return (
        listed("ol", rows, class_="timeline lanes")
        + element("p", scale, class_="scale")
        + element("p", legend, class_="legend")
    )


def _row(name: str, segments: Sequence[Segment], run: RunReport, numbers: dict[str, int]) -> str:
    marks = "".join(_mark(segment, run, numbers) for segment in _fewer(segments))
    picture = element(
        "svg", marks, viewBox=f"0 0 {_WIDE:.0f} 14", preserveAspectRatio="none", role="img", aria_label=name
    )
    busy = sum(one.ended - one.began for one in segments if one.part != "idle")
    return element("li", element("span", inert(name), class_="lane") + picture + element("span", f"{busy:.1f} s"))


def _fewer(segments: Sequence[Segment]) -> Iterable[Segment]:
    if len(segments) <= _MOST_MARKS:
        return segments
    runs = [list(some) for _, some in groupby(segments, key=lambda one: (one.part in ("idle", "boot"), one.shard))]
    return [
        Segment(
            host=some[0].host,
            lane=some[0].lane,
            part=some[0].part if some[0].part in ("idle", "boot") else "test",
            began=some[0].began,
            ended=some[-1].ended,
            shard=some[0].shard,
        )
        for some in runs
    ]


def _mark(segment: Segment, run: RunReport, numbers: dict[str, int]) -> str:
    if segment.part == "idle":
        return ""
    wall = max(run.wall_s, 0.001)
    x = (segment.began - run.began) / wall * _WIDE
    wide = max(_LEAST, (segment.ended - segment.began) / wall * _WIDE)
    told = f"{segment.part}, {segment.ended - segment.began:.2f} s"
    told += f", shard {segment.shard}" if segment.shard is not None else ""
    told += f": {segment.test}" if segment.test is not None else ""
    mark = (
        f'<rect class="{segment.part}" x="{x:.2f}" y="0" width="{wide:.2f}" height="14">'
        f"<title>{inert(told)}</title></rect>"
    )
    number = numbers.get(segment.test or "")
    return mark if number is None else element("a", mark, href=f"#test-{number}")


def lane_table(run: RunReport) -> str:
    """Seconds by lane and part; each row's sum is the time that the lane was there, on one host that of the run."""
    head = element("tr", "".join(element("th", inert(name)) for name in ("device", *PARTS, "sum")))
    rows = [head]
    lanes = lane_times(run.segments)
    whole = all(abs(lane.total_s - run.wall_s) < _SAME_S for lane in lanes)
    for lane in lanes:
        cells = [element("td", inert(f"{lane.host} {lane.lane}"))]
        cells += [element("td", f"{lane.seconds[part]:.2f}") for part in PARTS]
        rows.append(element("tr", "".join([*cells, element("td", f"{lane.total_s:.2f}")])))
    waited = sum(shard.waited_s for shard in run.shards)
    each = "the run" if whole else "the time that its device was there, of the run"
    note = (
        f"Seconds; each row adds up to {each}: {run.wall_s:.2f} s. Before that, listing the tests took "
        f"{run.listed_s:.2f} s. {len(run.shards)} shards waited {waited:.2f} s for what they needed."
    )
    return element("div", listed("table", rows), class_="wide") + element("p", inert(note), class_="told")
