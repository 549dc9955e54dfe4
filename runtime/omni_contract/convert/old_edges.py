"""The edges of an old file, from every place where it may name them, each with its connector."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from omni_contract.api.nearest import did_you_mean
from omni_contract.api.problems import Path
from omni_contract.api.v1alpha1.connector import ConnectorKind
from omni_contract.convert.addresses import reachable
from omni_contract.convert.file_keys import CONNECTOR, CONNECTOR_KINDS, EDGE, EXTRAS, LINK
from omni_contract.convert.old_stages import OldStage
from omni_contract.convert.sieve import Kept, Sieve, shown, stage_ids, text


@dataclass(frozen=True, eq=False)
class OldConnector:
    """A declared connector; its settings are those keys of `extra` that can be kept."""

    path: Path
    name: str
    kind: ConnectorKind
    extra: Kept


@dataclass(frozen=True)
class OldEdge:
    source: OldStage
    target: OldStage
    connector: OldConnector | None
    says_whole: bool
    """Whether the file says in so many words that the consumer waits for all of the payload."""


def old_connectors(data: JsonValue, sieve: Sieve) -> Mapping[str, OldConnector]:
    """What runtime.connectors declares, by name."""
    declared = data if isinstance(data, dict) else {}
    path: Path = ("runtime", "connectors")
    found = {name: _connector(name, item, (*path, name), sieve) for name, item in declared.items()}
    return {name: connector for name, connector in found.items() if connector}


@dataclass(frozen=True)
class OldLinks:
    """Everything outside and inside the stages that says what flows from where to where, and how."""

    stages: Sequence[OldStage]
    connectors: Mapping[str, OldConnector]
    sieve: Sieve

    def edges(self, listed: JsonValue, linked: JsonValue, is_whole: bool) -> tuple[OldEdge, ...]:
        """The union of all; `is_whole` is what the file says of edges without a window of their own."""
        windows = dict(self._listed(listed))
        pairs = dict.fromkeys([*windows, *self._sources()])
        chosen = self._chosen(linked)
        for pair in chosen.keys() - pairs.keys():
            told = f"no edge leads from stage {pair[0]} to stage {pair[1]}; add engine_input_source, or remove this"
            self.sieve.wrong(chosen[pair][0], told)
        by_id = {stage.id: stage for stage in self.stages}
        return tuple(
            OldEdge(by_id[source], by_id[target], chosen.get((source, target), (None, None))[1], whole)
            for source, target in pairs
            for whole in [windows.get((source, target), False) or is_whole]
        )

    def _listed(self, data: JsonValue) -> Iterator[tuple[tuple[int, int], bool]]:
        for path, item in self.sieve.items(data, ("runtime", "edges")):
            keys = self.sieve.kept(item, EDGE, path)
            if pair := self._pair(keys, ("from", "to"), path, item):
                yield pair, "window_size" in keys

    def _sources(self) -> Iterator[tuple[int, int]]:
        for stage in self.stages:
            for source in stage_ids(stage.keys.get("engine_input_source")):
                if self._exists(source, (*stage.path, "engine_input_source")):
                    yield source, stage.id

    def _chosen(self, linked: JsonValue) -> dict[tuple[int, int], tuple[Path, OldConnector]]:
        """The connector of each edge, and where it is chosen."""
        chosen: dict[tuple[int, int], tuple[Path, OldConnector]] = {}
        for path, pair, connector in [*self._wired(), *self._linked(linked)]:
            _, other = chosen.setdefault(pair, (path, connector))
            if other != connector:
                told = f'the edge has connector "{other.name}" already and gets "{connector.name}" here; keep one'
                self.sieve.wrong(path, told)
        return chosen

    def _wired(self) -> Iterator[tuple[Path, tuple[int, int], OldConnector]]:
        for stage in self.stages:
            for table, prefix in (("output_connectors", "to_stage_"), ("input_connectors", "from_stage_")):
                wires = stage.keys.get(table)
                for key, name in wires.items() if isinstance(wires, dict) else ():
                    path = (*stage.path, table, key)
                    other, connector = self._other(key, prefix, path), self._named(name, path)
                    if other is not None and connector:
                        yield path, (stage.id, other) if prefix == "to_stage_" else (other, stage.id), connector

    def _other(self, key: str, prefix: str, path: Path) -> int | None:
        number = key.removeprefix(prefix)
        if not key.startswith(prefix) or not number.isdecimal():
            self.sieve.wrong(path, f'unknown key "{key}"; the keys here are {prefix}0, {prefix}1 and so on')
            return None
        return int(number) if self._exists(int(number), path) else None

    def _named(self, name: JsonValue, path: Path) -> OldConnector | None:
        if isinstance(name, str) and name in self.connectors:
            return self.connectors[name]
        declared = ", ".join(self.connectors) or "none"
        hint = did_you_mean(str(name), self.connectors)
        self.sieve.wrong(path, f"{shown(name)} is no connector of runtime.connectors{hint}; they are: {declared}")
        return None

    def _linked(self, data: JsonValue) -> Iterator[tuple[Path, tuple[int, int], OldConnector]]:
        for path, item in self.sieve.items(data, ("connectors",)):
            keys = self.sieve.kept(item, LINK, path)
            if pair := self._pair(keys, ("from_stage", "to_stage"), path, item):
                name = "-".join(map(str, pair))
                connector = _connector(f"edge-{name}", keys.get("spec"), (*path, "spec"), self.sieve)
                if connector:
                    yield path, pair, connector

    def _pair(self, keys: Kept, names: tuple[str, str], path: Path, item: JsonValue) -> tuple[int, int] | None:
        ends = []
        for name in names:
            if isinstance(item, dict) and name not in item:
                self.sieve.wrong(path, f'the key "{name}" is missing')
            ends += [end for end in stage_ids(keys.get(name)) if self._exists(end, (*path, name))]
        return (ends[0], ends[1]) if len(ends) == len(names) else None

    def _exists(self, number: int, path: Path) -> bool:
        numbers = [stage.id for stage in self.stages]
        if number not in numbers:
            known = ", ".join(map(str, numbers))
            self.sieve.wrong(path, f"there is no stage with stage_id {number}; the stages are: {known}")
        return number in numbers


def _connector(name: str, data: JsonValue, path: Path, sieve: Sieve) -> OldConnector | None:
    keys = sieve.kept(data, CONNECTOR, path)
    old = text(keys, "name")
    if old is None or old not in CONNECTOR_KINDS:
        known = ", ".join(CONNECTOR_KINDS)
        said = "the key name is missing" if old is None else f"{shown(old)} is no connector"
        sieve.wrong(
            (*path, "name") if old else path, f"{said}{did_you_mean(old or '', CONNECTOR_KINDS)}; they are: {known}"
        )
        return None
    kind = CONNECTOR_KINDS[old]
    inner = (*path, "extra")
    extra = sieve.kept(keys.get("extra"), EXTRAS[kind], inner)
    return OldConnector(path, name, kind, reachable(extra, inner, sieve))
