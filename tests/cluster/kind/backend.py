"""Where the kind cluster's containers run: the user's Docker with the published node image, or all of it our own."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.cluster.commands import run
from tests.cluster.errors import ClusterError
from tests.cluster.kind.node_image import NodeImage
from tests.cluster.kind.sandbox import Sandbox
from tests.cluster.packages import ensure_packages, require_debian, require_root
from tests.cluster.ports import require_free
from tests.cluster.processes import Background
from tests.cluster.programs import Programs, ensure
from tests.cluster.recipes import KIND, KUBECTL, NODE, SERVERS
from tests.cluster.settings import Settings
from tests.cluster.steps import Steps

PULL_TIMEOUT_S = 600
FORWARD_TIMEOUT_S = 10


class Backend(Protocol):
    """`start` makes Docker answer and returns the node image; `publish` makes its loopback ports the host's."""

    @property
    def name(self) -> str: ...

    @property
    def environment(self) -> Mapping[str, str]:
        """For the programs docker and kind."""

    def start(self) -> str: ...

    def publish(self, ports: Sequence[int]) -> None: ...

    def is_up(self) -> bool: ...

    def stop(self) -> None:
        """Leave nothing of this backend running; called after the cluster was deleted."""


@dataclass(frozen=True)
class PublishedBackend:
    """The user's Docker, which could get the node image that this kind release names."""

    image: str
    name: str = "docker"

    @property
    def environment(self) -> Mapping[str, str]:
        return os.environ

    def start(self) -> str:
        return self.image

    def publish(self, ports: Sequence[int]) -> None:
        """Docker publishes them itself."""

    def is_up(self) -> bool:
        return True

    def stop(self) -> None:
        """The Docker is the user's."""


@dataclass(frozen=True)
class OwnBackend:
    settings: Settings
    steps: Steps
    name: str = "own"

    @property
    def sandbox(self) -> Sandbox:
        state = self.settings.kind
        return Sandbox(state=state, data=state.with_name(f"{state.name}-docker"), name=self.settings.cluster)

    @property
    def environment(self) -> Mapping[str, str]:
        return self.sandbox.environment

    def start(self) -> str:
        require_root("making a kind cluster without Docker and a registry")
        require_debian()
        ensure_packages(self.settings, self.steps)
        programs = ensure(self.settings, SERVERS + NODE, self.steps)
        if not self.sandbox.is_up():
            with self.steps.step("dockerd in namespaces of its own"):
                self.forwarder.stop()
                self.sandbox.start()
        return NodeImage(self.settings, programs, self.sandbox, self.steps).ensure()

    def publish(self, ports: Sequence[int]) -> None:
        identity = self.sandbox.process.identity
        if identity is None:
            raise ClusterError(f"the sandbox of cluster {self.settings.cluster!r} does not run; run cluster-up again")
        if self.forwarder.is_running:
            return
        require_free(ports)
        self.forwarder.log.unlink(missing_ok=True)
        program = Path(__file__).with_name("forward.py")
        self.forwarder.start([sys.executable, program, str(identity.pid), *map(str, ports)])
        self.forwarder.wait_until(lambda: "forwarding" in self.forwarder.log.read_text(), FORWARD_TIMEOUT_S)

    def is_up(self) -> bool:
        return self.sandbox.is_up()

    def stop(self) -> None:
        self.forwarder.stop()
        self.sandbox.stop()

    @property
    def forwarder(self) -> Background:
        return Background(self.settings.kind, "forward")


def choose(settings: Settings, steps: Steps) -> Backend:
    """Take the user's Docker if it answers and has or can get kind's node image; say which and why."""
    reason = reason_against_docker()
    if reason is None:
        programs = ensure(settings, (KIND, KUBECTL), steps)
        image = published_image(programs)
        with steps.step(f"node image {image.split('@')[0]}: ask Docker for it"):
            reason = reason_against_image(image)
        if reason is None:
            print(f"          taking the published node image: Docker answers and has {image.split('@')[0]}")
            return PublishedBackend(image)
    print(f"          taking a dockerd and a node image of our own: {reason}")
    return OwnBackend(settings, steps)


def reason_against_docker(call: Callable[[Sequence[str]], str] = run) -> str | None:
    try:
        call(["docker", "info", "--format", "{{.ServerVersion}}"])
    except ClusterError:
        return "no Docker answers"
    return None


def reason_against_image(image: str, call: Callable[[Sequence[str]], str] = run) -> str | None:
    try:
        call(["docker", "image", "inspect", image])
        return None
    except ClusterError:
        pass
    try:
        call(["timeout", str(PULL_TIMEOUT_S), "docker", "pull", "-q", image])
    except ClusterError as error:
        return f"Docker cannot pull {image.split('@')[0]}: {str(error).splitlines()[-1]}"
    return None


def published_image(programs: Programs) -> str:
    """The node image that this kind release was published with; its source names it with a digest."""
    source = (programs.kept("kind") / "pkg" / "apis" / "config" / "defaults" / "image.go").read_text()
    found = re.search(r'^const Image = "(.+)"$', source, re.MULTILINE)
    if found is None:
        raise ClusterError("this release of kind does not say which node image it goes with; pin another one")
    return found[1]
