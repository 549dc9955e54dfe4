"""What tiny checkpoints of all families have in common: weights that let inputs show, checks, and who may read them."""

from collections.abc import Iterable
from math import prod
from pathlib import Path

import torch

MAX_PARAMETERS = 5_000_000
MAX_MAGNITUDE = 10.0
WEIGHTED = (
    torch.nn.Linear,
    torch.nn.Conv1d,
    torch.nn.Conv2d,
    torch.nn.Conv3d,
)


def give_unit_gain(model: torch.nn.Module) -> None:
    """Draw all weights anew so that each layer keeps its input's scale.

    With the libraries' own narrow ones, the last token alone decides the next, and a wrong hidden state goes unseen.
    """
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, WEIGHTED):
                _draw(module.weight, fan_in=module.weight[0].numel())
            elif isinstance(module, torch.nn.ConvTranspose1d):
                _draw(module.weight, fan_in=module.weight.shape[0] * module.weight.shape[2] // module.stride[0])
            elif isinstance(module, torch.nn.Embedding):
                _draw(module.weight, fan_in=1)
        for name, parameter in model.named_parameters():
            # A stack of matrices that is no layer of torch's; transformers leaves some of them as memory has them.
            if ".mlp.experts." in name or name.endswith(".mlp.gate.weight"):
                _draw(parameter, fan_in=parameter.shape[-1])


def check_parameters(parts: Iterable[tuple[str, torch.nn.Module]]) -> None:
    """Raises ValueError if a parameter is not finite and small, or if there are too many for a tiny checkpoint."""
    parameters = {f"{name}.{key}": p for name, part in parts for key, p in part.named_parameters()}
    wild = [name for name, p in parameters.items() if not (p.isfinite().all() and p.abs().max() <= MAX_MAGNITUDE)]
    if wild:
        raise ValueError(f"parameters are not finite and small: {', '.join(wild)}")
    count = sum(prod(p.shape) for p in parameters.values())
    if count > MAX_PARAMETERS:
        raise ValueError(f"{count} parameters are more than {MAX_PARAMETERS}")


def open_to_readers(folder: Path) -> None:
    """Stage pods read the folder as another user."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _draw(weight: torch.Tensor, fan_in: int) -> None:
    weight.normal_(0.0, fan_in**-0.5)
