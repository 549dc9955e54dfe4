"""Registry of things that are plugged in by name (connectors, engines): imported when first used, never before."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

Factory = TypeVar("Factory", bound=Callable[..., object])


class MissingExtraError(RuntimeError):
    """A plug-in's library is not installed; the message names the extra that brings it."""


class UnknownPluginError(LookupError):
    """No plug-in has this name; the message lists those that exist."""


@dataclass(frozen=True)
class Plugin:
    """Where a plug-in's factory is; `extra` is the optional dependency group that its module needs."""

    module: str
    factory: str
    extra: str | None = None


class Registry(Generic[Factory]):
    """Plug-ins of one kind by name; `noun` is what messages call one of them."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._plugins: dict[str, Plugin] = {}

    def register(self, name: str, plugin: Plugin) -> None:
        if name in self._plugins:
            raise ValueError(
                f'{self._noun} "{name}" is registered twice: {self._plugins[name].module}, {plugin.module}'
            )
        self._plugins[name] = plugin

    def names(self) -> tuple[str, ...]:
        return tuple(self._plugins)

    def factory(self, name: str) -> Factory:
        """Imports the plug-in; raises MissingExtraError if a library it needs is absent."""
        if name not in self._plugins:
            raise UnknownPluginError(f'no {self._noun} is named "{name}"; known are {", ".join(self._plugins)}')
        plugin = self._plugins[name]
        try:
            module = importlib.import_module(plugin.module)
        except ModuleNotFoundError as error:
            if plugin.extra is None or _is_inside(error.name, plugin.module):
                raise
            raise MissingExtraError(
                f'{self._noun} "{name}" needs the package "{error.name}"; install omni-operator[{plugin.extra}]'
            ) from error
        return cast(Factory, getattr(module, plugin.factory))


def _is_inside(missing: str | None, module: str) -> bool:
    """A missing module of our own is a defect, not a missing extra."""
    return missing is not None and missing.split(".")[0] == module.split(".")[0]
