"""`Omni`: a model from Python without asyncio. The event loop of an `AsyncOmni` runs in a thread of its own."""

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, Self, Unpack, overload

from omni_runtime.administration.calls import DEFAULT_STEPS
from omni_runtime.offline.async_omni import AsyncOmni
from omni_runtime.offline.loop_thread import LoopThread
from omni_runtime.offline.outputs import OmniRequestOutput
from omni_runtime.offline.prompts import Prompt
from omni_runtime.offline.sampling import SamplingParamsList
from omni_runtime.offline.settings import Options, Volumes


class Omni:
    """`Omni("model.yaml", volumes={"models": "DIR"})` returns once every stage is ready, or raises ServeError.

    The stages are processes of their own. They end at `close`, at the end of a `with` block, with the last reference
    or with this process, however that ends.
    """

    def __init__(
        self, model: str | os.PathLike[str], volumes: Volumes | None = None, **options: Unpack[Options]
    ) -> None:
        self._omni = AsyncOmni(model, volumes, **options)
        self._loop = LoopThread("omni")
        self._closing = weakref.finalize(self, _close, self._omni, self._loop)
        with ExitStack() as undoing:
            undoing.callback(self.close)
            self._loop.run(self._omni.start())
            undoing.pop_all()

    @overload
    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params_list: SamplingParamsList | None = None,
        use_tqdm: bool = True,
        py_generator: Literal[False] = False,
        **sampling: Any,
    ) -> list[OmniRequestOutput]: ...

    @overload
    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params_list: SamplingParamsList | None = None,
        use_tqdm: bool = True,
        *,
        py_generator: Literal[True],
        **sampling: Any,
    ) -> Iterator[OmniRequestOutput]: ...

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params_list: SamplingParamsList | None = None,
        use_tqdm: bool = True,
        py_generator: bool = False,
        **sampling: Any,
    ) -> list[OmniRequestOutput] | Iterator[OmniRequestOutput]:
        """One output for each prompt and modality, in order; of a prompt that fails, its outputs carry the error.

        With `py_generator`, as soon as they are there. Raises OmniError for sampling that the model does not know.
        """
        asked = [prompts] if isinstance(prompts, str) or not isinstance(prompts, Sequence) else prompts
        if py_generator:
            return self._as_they_come(asked, sampling_params_list, use_tqdm, sampling)
        return self._loop.run(self._omni.generate_all(asked, sampling_params_list, use_tqdm, **sampling))

    @property
    def modalities(self) -> tuple[str, ...]:
        """What the model answers with, in the order of the outputs of a prompt."""
        return self._omni.modalities

    @property
    def stages(self) -> tuple[str, ...]:
        """Their names, in the order of `sampling_params_list`."""
        return self._omni.stages

    def start_profile(self, stages: Sequence[str] | None = None, steps: int = DEFAULT_STEPS) -> None:
        """Record the next steps of the stages named, of all if none is; needs `profile_dir`."""
        self._loop.run(self._omni.control.start_profile(stages, steps))

    def stop_profile(self) -> list[str]:
        """Write what was recorded; the files, a Chrome trace for each replica."""
        return self._loop.run(self._omni.control.stop_profile())

    def sleep(self, stages: Sequence[str] | None = None, level: int = 1) -> int:
        """Give the devices' memory back until `wake`; how many bytes. Level 1 keeps the weights in host memory."""
        return self._loop.run(self._omni.control.sleep(stages, level))

    def wake(self, stages: Sequence[str] | None = None) -> None:
        self._loop.run(self._omni.control.wake(stages))

    def close(self) -> None:
        """Aborts what still runs and ends the stages' processes; calling it again does nothing."""
        self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _as_they_come(
        self,
        prompts: Sequence[Prompt],
        sampling_params_list: SamplingParamsList | None,
        use_tqdm: bool,
        sampling: dict[str, Any],
    ) -> Iterator[OmniRequestOutput]:
        answers = self._omni.answers(prompts, sampling_params_list, use_tqdm, **sampling)
        for answer in self._loop.iterate(answers):
            yield from answer


def _close(omni: AsyncOmni, loop: LoopThread) -> None:
    """Holds no reference to the `Omni`, whose end is what calls it."""
    if not loop.is_closed:
        loop.run(omni.close())
        loop.close()
