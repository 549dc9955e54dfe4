"""What can go wrong while images are built."""


class ImageError(Exception):
    """Base of all; the message is for the person who called the tool."""


class CommandFailed(ImageError):
    def __init__(self, command: list[str], status: int, output: str) -> None:
        tail = "\n".join(output.strip().splitlines()[-15:])
        super().__init__(f"{' '.join(command)} ended with {status}:\n{tail}")


class ProgramMissing(ImageError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f'the program "{name}" is needed; on Debian: apt-get install buildah mmdebstrap, and pip install uv'
        )


class ForbiddenPackages(ImageError):
    def __init__(self, image: str, found: list[str]) -> None:
        super().__init__(f'the environment of image "{image}" must not hold: {", ".join(found)}')
