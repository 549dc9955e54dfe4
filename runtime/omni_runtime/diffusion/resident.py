"""A stage's model and where it is: on its device, in host memory, or only in its folder."""

from collections.abc import Iterator

from diffusers import ModularPipeline

from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_runtime.diffusion import weights
from omni_runtime.diffusion.loading import LoadPlan, load_blocks
from omni_runtime.diffusion.pipeline import PhasePipeline
from omni_runtime.engines.protocol import SleepLevel
from omni_runtime.families.protocol import DiffusionFamily


class ResidentModel:
    """Apart from `pipeline`, which is None unless requests can run, everything happens on the step thread.

    For a stage on the CPU, host memory is the device: it drops its weights at either level of sleep.
    """

    def __init__(self, family: DiffusionFamily, phases: tuple[DiffusionPhase, ...], plan: LoadPlan) -> None:
        self.pipeline: PhasePipeline | None = None
        self._family = family
        self._phases = phases
        self._plan = plan
        self._blocks: ModularPipeline | None = None
        """While it sleeps, there only if the weights are in host memory."""

    def load_turns(self) -> Iterator[str | None]:
        blocks = yield from load_blocks(self._family, self._phases, self._plan)
        yield from self._test_turns(blocks)

    def rest(self, level: SleepLevel) -> int:
        """The bytes that left the device. Nothing may run."""
        assert self._blocks is not None, "the worker lets only an engine sleep that is awake"
        freed = weights.size_bytes(self._blocks)
        if level == 1 and self._plan.device != weights.HOST:
            weights.move(self._blocks, weights.HOST)
        else:
            weights.drop(self._blocks)
            self._blocks = None
        self.pipeline = None
        weights.give_back(self._plan.device)
        return freed

    def wake_turns(self) -> Iterator[str | None]:
        if self._blocks is None:
            yield from self.load_turns()
            return
        yield f"moving the weights to {self._plan.device}"
        weights.move(self._blocks, self._plan.device)
        yield from self._test_turns(self._blocks)

    def undo_rest(self) -> None:
        """Host memory did not suffice: what went there comes back."""
        assert self._blocks is not None
        weights.move(self._blocks, self._plan.device)

    def undo_wake(self) -> None:
        """It could not wake: what has come to the device leaves it again."""
        if self._blocks is not None:
            weights.move(self._blocks, weights.HOST)
        weights.give_back(self._plan.device)

    def forget(self) -> None:
        """The thread has ended, and nobody needs the model any more."""
        self.pipeline = self._blocks = None

    def _test_turns(self, blocks: ModularPipeline) -> Iterator[str | None]:
        pipeline = PhasePipeline(self._family, self._phases, blocks, self._plan.device)
        yield "running a self-test"
        for _ in pipeline.probe_turns():
            pass
        self._blocks, self.pipeline = blocks, pipeline
