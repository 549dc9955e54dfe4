"""The other process of `benchmarks.mooncake`: owns payloads, ours and the raw wheel's, until its input ends."""

import asyncio
import json
import sys
from pathlib import Path

import grpc

from benchmarks.mooncake_raw import RawEngine
from omni_contract.api.v1alpha1 import ConnectorSpec
from omni_contract.wire.stage_pb2_grpc import add_StageWorkerServicer_to_server
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.serving import PayloadServicer
from omni_runtime.connectors.store import PayloadStore

MIB = 2**20
KEEP_S = 3600.0
CONNECTOR = "engine"


def connectors(owner: str, pool_mib: int) -> tuple[ConnectorSet, PayloadStore]:
    store = PayloadStore(MIB)
    spec = ConnectorSpec.model_validate(
        {"name": CONNECTOR, "mooncakeTransferEngine": {"poolSize": f"{pool_mib}Mi", "waitSeconds": 0}}
    )
    return ConnectorSet(owner, "boot-1", store, [spec], [CONNECTOR]), store


async def main(folder: Path, sizes: list[int]) -> None:
    address = f"unix:{folder}/owner.sock"
    ours, store = connectors(address, pool_mib=2 * sum(sizes) // MIB + 64)
    await ours.open()
    server = grpc.aio.server()
    add_StageWorkerServicer_to_server(PayloadServicer(store, "boot-1"), server)
    server.add_insecure_port(address)
    await server.start()
    raw = RawEngine(sum(sizes))
    engine = ours.connector(CONNECTOR)
    handles = [await engine.put("r-1", "a->b", {"data": bytes(size)}, KEEP_S) for size in sizes]
    told = {
        "handles": [handle.SerializeToString().hex() for handle in handles],
        "session": raw.session,
        "address": raw.address,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(None)
    await ours.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]]))
