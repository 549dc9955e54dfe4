"""A stage's model and where it is: on its device, in host memory, or only in its folder."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

import torch

from omni_runtime.engines.protocol import SleepLevel
from omni_runtime.stepping import weights


class StageModel(Protocol):
    """What runs a stage's requests once it is loaded."""

    @property
    def modules(self) -> Sequence[torch.nn.Module]:
        """All that has weights."""
        ...

    def test_turns(self) -> Iterable[object]:
        """Work for the step thread: a small request on made-up input; raises if the model is not usable."""
        ...


M = TypeVar("M", bound=StageModel)
Loading: TypeAlias = Generator[str | None, None, M]
"""Work for the step thread, a line for each part; it returns the model."""


class ResidentModel(Generic[M]):
    """Apart from `ready`, which is None unless requests can run, and `weights_bytes` all happens on the step thread.

    For a stage on the CPU, host memory is the device: it drops its weights at either level of sleep.
    """

    def __init__(self, load: Callable[[], Loading[M]], device: torch.device) -> None:
        self.ready: M | None = None
        self.weights_bytes = 0
        """On the device."""
        self._load = load
        self._device = device
        self._model: M | None = None
        """While it sleeps, there only if the weights are in host memory."""

    def load_turns(self) -> Iterator[str | None]:
        model = yield from self._load()
        yield from self._test_turns(model)

    def rest(self, level: SleepLevel) -> int:
        """The bytes that left the device. Nothing may run."""
        assert self._model is not None, "the worker lets only an engine sleep that is awake"
        freed = weights.size_bytes(self._model.modules)
        if level == 1 and self._device != weights.HOST:
            weights.move(self._model.modules, weights.HOST)
        else:
            weights.drop(self._model.modules)
            self._model = None
        self.ready, self.weights_bytes = None, 0
        weights.give_back(self._device)
        return freed

    def wake_turns(self) -> Iterator[str | None]:
        if self._model is None:
            yield from self.load_turns()
            return
        yield f"moving the weights to {self._device}"
        weights.move(self._model.modules, self._device)
        yield from self._test_turns(self._model)

    def undo_rest(self) -> None:
        """Host memory did not suffice: what went there comes back."""
        assert self._model is not None
        weights.move(self._model.modules, self._device)

    def undo_wake(self) -> None:
        """It could not wake: what has come to the device leaves it again."""
        if self._model is not None:
            weights.move(self._model.modules, weights.HOST)
        weights.give_back(self._device)

    def forget(self) -> None:
        """The thread has ended, and nobody needs the model any more."""
        self.ready = self._model = None

    def _test_turns(self, model: M) -> Iterator[str | None]:
        yield "running a self-test"
        for _ in model.test_turns():
            pass
        self._model = self.ready = model
        self.weights_bytes = weights.size_bytes(model.modules)
