"""The models endpoint's answers."""

from typing import Literal

from pydantic import BaseModel


class Model(BaseModel):
    """`modalities` says what the model answers with, `endpoints` where it is asked for that, `voices` in whose name it
    may speak; they are ours, the rest is the SDK's."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    modalities: list[str]
    endpoints: list[str]
    voices: list[str]


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]
