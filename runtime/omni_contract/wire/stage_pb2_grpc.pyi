"""Types of the generated module, which has none; kept by hand, one entry per rpc of stage.proto."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from omni_contract.wire import stage_pb2

class StageWorkerStub:
    Describe: grpc.aio.UnaryUnaryMultiCallable[stage_pb2.DescribeRequest, stage_pb2.WorkerInfo]
    AttachPipe: grpc.aio.UnaryStreamMultiCallable[stage_pb2.AttachPipeRequest, stage_pb2.PipeOffer]
    Fetch: grpc.aio.UnaryStreamMultiCallable[stage_pb2.FetchRequest, stage_pb2.PayloadSlice]
    Read: grpc.aio.StreamStreamMultiCallable[stage_pb2.ReadBatch, stage_pb2.ChunkBatch]
    Release: grpc.aio.UnaryUnaryMultiCallable[stage_pb2.ReleaseRequest, stage_pb2.ReleaseReply]
    def __init__(self, channel: grpc.aio.Channel) -> None: ...

class StageWorkerServicer:
    """A subclass overrides what it serves; the rest answers UNIMPLEMENTED."""

    def Describe(self, request: stage_pb2.DescribeRequest, context: grpc.aio.ServicerContext) -> Any: ...
    def AttachPipe(self, request: stage_pb2.AttachPipeRequest, context: grpc.aio.ServicerContext) -> Any: ...
    def Fetch(self, request: stage_pb2.FetchRequest, context: grpc.aio.ServicerContext) -> Any: ...
    def Read(self, request: AsyncIterator[stage_pb2.ReadBatch], context: grpc.aio.ServicerContext) -> Any: ...
    def Release(self, request: stage_pb2.ReleaseRequest, context: grpc.aio.ServicerContext) -> Any: ...

def add_StageWorkerServicer_to_server(servicer: StageWorkerServicer, server: grpc.aio.Server) -> None: ...

class ControlStub:
    Drain: grpc.aio.UnaryUnaryMultiCallable[stage_pb2.DrainRequest, stage_pb2.DrainReply]
    Stats: grpc.aio.UnaryUnaryMultiCallable[stage_pb2.StatsRequest, stage_pb2.WorkerStats]
    def __init__(self, channel: grpc.aio.Channel) -> None: ...

class ControlServicer:
    def Drain(self, request: stage_pb2.DrainRequest, context: grpc.aio.ServicerContext) -> Any: ...
    def Stats(self, request: stage_pb2.StatsRequest, context: grpc.aio.ServicerContext) -> Any: ...

def add_ControlServicer_to_server(servicer: ControlServicer, server: grpc.aio.Server) -> None: ...
