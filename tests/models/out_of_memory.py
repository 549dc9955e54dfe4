"""A process with little memory that is asked for a picture too large for it, between two that are not.

usage: python -m tests.models.out_of_memory MODEL_DIR OUT.npz ; prints the error code of the large one.
"""

import asyncio
import resource
import sys
from dataclasses import replace
from pathlib import Path

import numpy

from omni_contract.wire.errors import OmniError
from tests.models.engines import image, loaded, output, stage_file, stage_request
from tests.support.reference_images import ReferenceRequest

SMALL = ReferenceRequest("a red fox", width=32, height=32, steps=2)
HUGE = replace(SMALL, width=65_536, height=65_536)
"""Its first noise alone is 4 GiB."""
ROOM_BYTES = 2 * 2**30


def leave_little_room() -> None:
    """However the machine overcommits, this process gets no more than this."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


async def main(model: Path, out: Path) -> None:
    async with loaded(stage_file(model)) as engine:
        leave_little_room()
        good = image([engine], SMALL)
        failure, beside = await asyncio.gather(output(engine, stage_request(HUGE)), good, return_exceptions=True)
        after = await image([engine], SMALL)
    assert isinstance(failure, OmniError), failure
    numpy.savez(out, beside=beside, after=after)
    print(failure.code)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
