"""`--volume CLAIM=DIR`: the folders that stand for the cluster's PersistentVolumeClaims."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from omni_contract.resolve.resolved import ResolvedModel
from omni_runtime.local.errors import InputError


def parse_volumes(texts: Iterable[str]) -> dict[str, Path]:
    return dict(_parse(text) for text in texts)


def _parse(text: str) -> tuple[str, Path]:
    claim, separator, folder = text.partition("=")
    if not claim or not separator or not folder:
        raise InputError(f'--volume "{text}": write CLAIM=DIR, for example --volume models=./models')
    path = Path(folder).expanduser().resolve()
    if not path.is_dir():
        raise InputError(f"--volume {text}: {path} is not a folder")
    return claim, path


def check_source(model: ResolvedModel, volumes: Mapping[str, Path]) -> None:
    """Raises InputError unless the model's files are where the volumes say."""
    claim, path = model.source.claim, model.source.path
    if claim not in volumes:
        raise InputError(f"the model is in pvc://{claim}/{path}; say which folder that is with --volume {claim}=DIR")
    if model.load_format == "auto" and not (volumes[claim] / path).is_dir():
        raise InputError(f"--volume {claim}={volumes[claim]}: it has no folder {path}, where the model should be")
