"""`omni serve FILE`: the entry point of local mode."""

import sys
from argparse import Namespace
from pathlib import Path

from omni_contract.api.load import InvalidFileError
from omni_contract.api.problems import InvalidModelError
from omni_contract.cli.command import Command
from omni_runtime.local.errors import InputError, ServeError
from omni_runtime.local.settings import add_arguments, settings_from


def run(arguments: Namespace) -> int:
    from omni_runtime.local.serve import serve

    file = arguments.stage_configs_path or arguments.file
    try:
        return serve(settings_from(arguments))
    except OSError as error:
        if error.filename is None or Path(str(error.filename)) != Path(str(file)):
            raise
        return _refuse(f"{file}: {error.strerror}", InputError.exit_code)
    except (InvalidFileError, InvalidModelError) as error:
        return _refuse(f"{file} cannot be served:\n{error}", InputError.exit_code)
    except ServeError as error:
        return _refuse(str(error), error.exit_code)


def _refuse(message: str, exit_code: int) -> int:
    sys.stderr.write(f"omni serve: {message}\n")
    return exit_code


command = Command(
    name="serve", help="run a model as local processes, without a cluster", configure=add_arguments, run=run
)
