"""The golden files of the wire format: each holds a message's bytes in hex and, below, its text.

`python -m tests.omni_contract.wire.golden_files` writes those that are missing. It never changes one: a message that no
longer matches its golden file has broken the wire format.
"""

from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import Message

from tests.omni_contract.wire.samples import samples

FOLDER = Path(__file__).with_name("golden")


@dataclass(frozen=True)
class Golden:
    data: bytes
    text: str


def read_golden(name: str) -> Golden:
    head, _, text = (FOLDER / f"{name}.txtpb").read_text().partition("\n")
    return Golden(bytes.fromhex(head.removeprefix("#")), text)


def golden_of(message: Message) -> Golden:
    return Golden(message.SerializeToString(deterministic=True), text_format.MessageToString(message))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, message in samples():
        path = FOLDER / f"{name}.txtpb"
        if not path.exists():
            golden = golden_of(message)
            path.write_text(f"# {golden.data.hex()}\n{golden.text}")


if __name__ == "__main__":
    main()
