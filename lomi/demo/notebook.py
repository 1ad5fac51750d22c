"""Where a run is written down as it goes; whoever shows progress listens here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from lomi.demo.picture import png_size
from lomi.demo.plan import PLAN
from lomi.demo.record import CallRecord, DemoFailedError, Picture, Side, Step


class Listener(Protocol):
    """Shows how a run goes on."""

    def began(self, step: Step) -> None:
        """A step has begun."""

    def called(self, step: Step, call: CallRecord) -> None:
        """A call of the step has been answered."""

    def ended(self, step: Step) -> None:
        """A step has ended, well or with a problem."""


@dataclass(slots=True, kw_only=True)
class Notebook:
    """The steps so far. `since` is the clock's reading at the start of the run, in seconds."""

    listener: Listener
    clock: Callable[[], float]
    since: float
    steps: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, key: str) -> Iterator[Step]:
        """A step of the plan; a failure is noted in it and passed on."""
        planned = next(planned for planned in PLAN if planned.key == key)
        step = Step(key=key, title=planned.title, told=planned.told, started_s=self.clock() - self.since)
        self.steps.append(step)
        self.listener.began(step)
        try:
            yield step
        except DemoFailedError as error:
            step.problem = str(error)
            raise
        except BaseException as error:
            step.problem = f"interrupted ({type(error).__name__})"
            raise
        finally:
            step.ended_s = self.clock() - self.since
            self.listener.ended(step)

    def heard(self, call: CallRecord) -> None:
        """Note a call under the step that runs."""
        step = self.steps[-1]
        step.calls.append(call)
        self.listener.called(step, call)

    def seen(self, side: Side, png: bytes) -> None:
        """Note the picture with which the step that runs ends.

        Raises:
            DemoFailedError: it is no PNG.
        """
        width, height = png_size(png)
        step = self.steps[-1]
        name = f"{len(self.steps):02d}-{step.key}-{side}.png"
        step.pictures[side] = Picture(side=side, name=name, png=png, width=width, height=height)
