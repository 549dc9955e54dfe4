"""Which images there are and what goes into each. The Containerfile of an image is in the folder of its name."""

from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PREFIX = "localhost/omni-operator"

# bookworm's Python is the one that the locked environments are made for
SUITE = "bookworm"
OF_PYTHON = (
    "libcurl4",  # mooncake
    "libibverbs1",  # mooncake
    "libnuma1",  # vllm on CPU, else it fails with a misleading message
)
"""Libraries of the system that packages of Python need."""
PACKAGES = (
    "ca-certificates",
    *OF_PYTHON,
    "python3",
    "tini",
)
USER_ID = 65532


@dataclass(frozen=True)
class Recipe:
    """One image: a locked environment in /opt/venv below, our packages in /opt/omni as the last, thin layer."""

    name: str
    folder: str
    requirements: str
    packages: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    """Distributions that must not be in the environment."""
    mounts_environment: bool = False
    """Unless baked in, the environment is mounted from a claim, as it is big."""

    @property
    def containerfile(self) -> Path:
        return REPOSITORY / "images" / self.folder / "Containerfile"

    @property
    def lock(self) -> Path:
        return REPOSITORY / "requirements" / self.requirements

    @property
    def sources(self) -> tuple[Path, ...]:
        return tuple(REPOSITORY / package for package in self.packages)


CONTRACT = "runtime/omni_contract"
HEAVY = ("diffusers", "torch", "transformers")
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("operator", "operator", "operator.txt", (CONTRACT, "operator/omni_operator"), forbidden=HEAVY),
        Recipe("frontend", "frontend", "frontend.txt", (CONTRACT, "runtime/omni_runtime"), forbidden=HEAVY),
        Recipe(
            "runtime-cpu",
            "runtime",
            "runtime.txt",
            (CONTRACT, "runtime/omni_runtime"),
            mounts_environment=True,
        ),
    )
}
