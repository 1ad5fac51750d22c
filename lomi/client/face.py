"""How a blocking class shows the methods of an asynchronous one: named one by one, with their exact types."""

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from lomi.client.loop_thread import LoopThread

P = ParamSpec("P")
T = TypeVar("T")
SourceT = TypeVar("SourceT")
SourceT_co = TypeVar("SourceT_co", covariant=True)


class Face(Generic[SourceT_co]):
    """A blocking view of one asynchronous object, whose work runs on a loop in another thread."""

    def __init__(self, source: SourceT_co, thread: LoopThread[Any]) -> None:
        self._source = source
        self._thread = thread


class Shown(Generic[SourceT, P, T]):
    """One method of the source, as a blocking method: `tap = Shown(aio.Phone.tap)`."""

    def __init__(self, method: Callable[Concatenate[SourceT, P], Coroutine[Any, Any, T]]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, face: None, owner: type) -> "Shown[SourceT, P, T]": ...
    @overload
    def __get__(self, face: Face[SourceT], owner: type) -> Callable[P, T]: ...
    def __get__(self, face: Face[SourceT] | None, owner: type) -> "Shown[SourceT, P, T] | Callable[P, T]":
        """The method itself on the class, and on an instance what calls it and waits."""
        if face is None:
            return self
        source, thread, method = face._source, face._thread, self._method  # noqa: SLF001  # the two halves of one face

        def call(*given: P.args, **named: P.kwargs) -> T:
            return thread.run(method(source, *given, **named))

        return update_wrapper(call, method)
