"""What a family's talker offers the talker engine."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from omni_contract.wire.payload import Payload, Value
from omni_runtime.stepping.resident import StageModel


class Talker(StageModel, Protocol):
    """A speech is what the talker knows of one request; only the talker looks into it."""

    def begin(self, parameters: Mapping[str, Value]) -> Any:
        """A new speech; OmniError naming the parameter that it cannot use."""
        ...

    def hear(self, speech: Any, item: Payload) -> None:
        """What the thinker has said, or the whole request; OmniError if it is nothing that the talker can speak."""
        ...

    def heard_all(self, speech: Any) -> None:
        """The thinker has ended."""
        ...

    def can_speak(self, speech: Any) -> bool:
        """Whether enough was heard for the next step."""
        ...

    def input_tokens(self, speech: Any) -> int:
        """What the request counts for, once all is heard; 0 if a stage before has counted it."""
        ...

    def speak(self, speech: Any) -> Payload | None:
        """A step, on the step thread: the item that it made; None if the speech has ended."""
        ...


@runtime_checkable
class SpeaksTogether(Talker, Protocol):
    """A talker whose speeches can share a step, each from its second step on."""

    def speak_together(self, speeches: Sequence[Any]) -> Sequence[Payload | None]:
        """As `speak`, for each of them. If it raises, all are as before."""
        ...
