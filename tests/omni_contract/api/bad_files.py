"""Model files that must be refused, by the API server and by us, each with the sentence that its author reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.model_files import REMOVED, fake_file, model_file


@dataclass(frozen=True)
class BadFile:
    """`message` is ours. The API server says the same where the fault is against a rule; else it says `server`."""

    title: str
    document: Mapping[str, Any]
    path: str
    message: str
    server: str | None = None
    hint: str = ""
    """What we add to the server's sentence."""

    @property
    def is_against_a_rule(self) -> bool:
        return self.server is None


def _bad(title: str, changes: Mapping[str, Any], path: str, message: str, server: str | None = None) -> BadFile:
    return BadFile(title, model_file(changes), path, message, server)


def _bad_fake(title: str, changes: Mapping[str, Any], path: str, message: str, server: str | None = None) -> BadFile:
    return BadFile(title, fake_file(changes), path, message, server)


AGAINST_RULES = (
    _bad(
        "a name that is too long",
        {"metadata.name": "a" * 31},
        "metadata.name",
        f'name "{"a" * 31}" is longer than 30 characters, and the names of the model\'s pods and services are made '
        "from it; choose a shorter one",
    ),
    _bad(
        "a name with a dot",
        {"metadata.name": "qwen.image"},
        "metadata.name",
        'name "qwen.image" cannot be part of a service\'s name; use lower-case letters, digits and hyphens, beginning '
        "with a letter",
    ),
    _bad(
        "nothing to run",
        {"spec.family": REMOVED, "spec.stages": []},
        "spec",
        "neither family nor stages is set, so there is nothing to run; "
        'name a family ("qwen-image", "qwen2.5-omni", "qwen3-omni", "qwen3-tts") or list the stages',
    ),
    _bad(
        "a family that does not exist",
        {"spec.family": "qwen"},
        "spec.family",
        'there is no family "qwen"; the families are: "qwen-image", "qwen2.5-omni", "qwen3-omni", "qwen3-tts"; without '
        "one, list stages and edges",
    ),
    _bad(
        "a family that is refused by name",
        {"spec.family": "mimo-audio"},
        "spec.family",
        'family "mimo-audio" is not served: neither transformers nor a package on the index computes it, so that '
        "nothing could be shown to equal a reference; take qwen2.5-omni or qwen3-omni, which speak and listen, too",
    ),
    _bad(
        "a model on a hub",
        {"spec.model.source": "Qwen/Qwen-Image"},
        "spec.model.source",
        'source "Qwen/Qwen-Image" is a model on a hub, and the Job that downloads such models is not in this release; '
        "copy the checkpoint into a PersistentVolumeClaim and set pvc://CLAIM/PATH",
    ),
    _bad(
        "an image volume",
        {"spec.model.source": "image://models/qwen-image:1"},
        "spec.model.source",
        'source "image://models/qwen-image:1" is an image volume, which this release cannot mount yet; copy the '
        "checkpoint into a PersistentVolumeClaim and set pvc://CLAIM/PATH",
    ),
    _bad(
        "a source of an unknown scheme",
        {"spec.model.source": "s3://bucket/qwen-image"},
        "spec.model.source",
        'source "s3://bucket/qwen-image" has a scheme that is not known; set pvc://CLAIM/PATH',
    ),
    _bad(
        "a path that leaves its claim",
        {"spec.model.source": "pvc://models/../secrets"},
        "spec.model.source",
        'source "pvc://models/../secrets" is not of the form pvc://CLAIM/PATH: a claim\'s name, then a folder without '
        '"..", empty parts or spaces',
    ),
    _bad(
        "a revision of a folder",
        {"spec.model.revision": "main"},
        "spec.model.revision",
        'revision "main" pins a model on a hub, but source "pvc://models/qwen-image" is a folder, which has no '
        "revisions; remove it, or put it into the folder's name",
    ),
    _bad(
        "code from the checkpoint",
        {"spec.model.trustRemoteCode": True},
        "spec.model.trustRemoteCode",
        "trustRemoteCode is true, but no family of this release runs code from a checkpoint; remove it",
    ),
    _bad(
        "a stage called frontend",
        {"spec.stages[0]": {"name": "frontend", "diffusion": {}}},
        "spec.stages[0].name",
        'a stage cannot be called "frontend", because the model\'s own frontend has that name; choose another',
    ),
    _bad(
        "two engines on one stage",
        {"spec.stages[1].diffusion": {}, "spec.stages[1].fake": {}},
        "spec.stages[1]",
        'stage "denoiser" sets more than one engine block; keep one of: ar, diffusion, generation, fake',
    ),
    _bad_fake(
        "no engine and no family",
        {"spec.stages[1].fake": REMOVED},
        "spec.stages[1]",
        'stage "last" sets no engine block, and there is no family to give one; '
        "add one of: ar, diffusion, generation, fake",
    ),
    _bad_fake(
        "a stage on no edge",
        {"spec.stages[2]": {"name": "lonely", "fake": {}}},
        "spec.stages[2]",
        'stage "lonely" is on no edge, and there is no family to give one; add the edges that lead to it and from it',
    ),
    _bad(
        "a batch that never fills",
        {"spec.stages[1].maxBatchSize": 8, "spec.stages[1].maxInFlight": 4},
        "spec.stages[1].maxBatchSize",
        'stage "denoiser": a batch of 8 can never fill, because maxInFlight admits only 4 requests; raise maxInFlight '
        "or lower maxBatchSize",
    ),
    _bad(
        "an admin port that the worker has",
        {"spec.stages[1].adminPort": 50051},
        "spec.stages[1].adminPort",
        'stage "denoiser": adminPort 50051 is a port of the worker itself: 50051, 50052, 50053, 9090 are taken; '
        "choose another adminPort",
    ),
    _bad_fake(
        "a group of which one is missing",
        {"spec.placement": {"colocate": [["first", "other"]]}},
        "spec.placement.colocate",
        "a group names a stage that does not exist; add the stage or correct the name",
    ),
    _bad(
        "a stage in two groups",
        {"spec.placement": {"colocate": [["text-encoder", "denoiser"], ["denoiser", "vae-decoder"]]}},
        "spec.placement.colocate",
        "a stage is in two groups, but it can run in one pod only; keep it in one of them",
    ),
    _bad(
        "devices of a pod that nobody shares",
        {"spec.stages[1].accelerator": {"devices": [0]}},
        "spec.stages[1]",
        'stage "denoiser" chooses devices of a pod that is its own; set accelerator.count, or list it in '
        "placement.colocate with the stages that it shares devices with",
    ),
    _bad(
        "devices counted twice",
        {
            "spec.stages[1].accelerator": {"devices": [0], "count": 1},
            "spec.placement": {"colocate": [["denoiser", "vae-decoder"]]},
        },
        "spec.stages[1].accelerator.devices",
        "devices says how many there are, too; remove count",
    ),
    _bad(
        "an admin port that the endpoint has",
        {"spec.frontend": {"adminPort": 8000}},
        "spec.frontend.adminPort",
        "adminPort 8000 is the port of the endpoint itself; choose another adminPort",
    ),
    _bad(
        "waiting for a batch of one",
        {"spec.stages[1].batchTimeoutSeconds": 0.5},
        "spec.stages[1].batchTimeoutSeconds",
        'stage "denoiser" waits for a batch, but its maxBatchSize is 1; raise maxBatchSize or remove '
        "batchTimeoutSeconds",
    ),
    _bad(
        "more shared memory than memory",
        {"spec.stages[1].resources": {"memory": "1Gi"}, "spec.stages[1].shm": {"size": "2048Mi"}},
        "spec.stages[1].shm.size",
        'stage "denoiser": 2048Mi of shared memory do not fit into 1Gi of memory, of which they are a part; raise '
        "resources.memory or lower shm.size",
    ),
    _bad(
        "less memory than the default shared memory",
        {"spec.stages[1].resources": {"memory": 1000000}},
        "spec.stages[1].shm.size",
        'stage "denoiser": 64Mi of shared memory do not fit into 1000000 of memory, of which they are a part; raise '
        "resources.memory or lower shm.size",
    ),
    _bad(
        "phases with a gap",
        {"spec.stages[1].diffusion": {"phases": ["encode", "decode"]}},
        "spec.stages[1].diffusion.phases",
        "phases [encode, decode] are not a contiguous part of [encode, denoise, decode]; list them in that order, "
        "without a gap",
    ),
    _bad_fake(
        "a delay that nobody reads",
        {"spec.stages[0].fake": {"delaySeconds": 0.5}},
        "spec.stages[0].fake.delaySeconds",
        "delaySeconds is set, but only behaviors delay, burst, follow and relay use it; set one of them or remove it",
    ),
    _bad_fake(
        "items in a step of an engine that makes its own",
        {"spec.stages[0].fake": {"behavior": "burst", "itemsPerStep": 3}},
        "spec.stages[0].fake.itemsPerStep",
        "itemsPerStep is set, but only behavior relay uses it; set behavior: relay or remove it",
    ),
    _bad_fake(
        "a crash that never comes",
        {"spec.stages[0].fake": {"behavior": "stall", "crashAt": 3}},
        "spec.stages[0].fake.crashAt",
        "crashAt is set, but only behavior crash uses it; set behavior: crash or remove it",
    ),
    _bad_fake(
        "an edge to nowhere",
        {"spec.edges[1]": {"from": "last", "to": "lost"}},
        "spec.edges[1]",
        'edge "last->lost" names a stage that does not exist; add the stage or correct the name',
    ),
    _bad(
        "an edge from a stage to itself",
        {"spec.edges": [{"from": "denoiser", "to": "denoiser"}]},
        "spec.edges[0]",
        'stage "denoiser" has an edge to itself; feedback belongs inside an engine, so remove the edge',
    ),
    _bad(
        "retaining what travels inline",
        {"spec.edges": [{"from": "text-encoder", "to": "denoiser", "connector": "inline", "retain": "terminal"}]},
        "spec.edges[0].retain",
        'edge "text-encoder->denoiser" travels inside the control message (connector inline), so its producer has '
        "nothing to retain; remove retain or use connector grpc",
    ),
    _bad_fake(
        "streaming inside the control message",
        {"spec.edges[0].connector": "inline", "spec.edges[0].streaming": {}},
        "spec.edges[0].connector",
        'edge "first->last" streams, and connector inline carries whole payloads only; use auto or grpc',
    ),
    _bad_fake(
        "retaining what streams",
        {"spec.edges[0].retain": "terminal", "spec.edges[0].streaming": {"enabled": True}},
        "spec.edges[0].retain",
        'edge "first->last" streams, so each chunk is dropped once it is read; remove retain',
    ),
    _bad_fake(
        "a first chunk that is larger than the others",
        {"spec.edges[0].streaming": {"chunkFrames": 4, "initialChunkFrames": 5}},
        "spec.edges[0].streaming.initialChunkFrames",
        'edge "first->last": the first chunk must not be larger than the others; lower initialChunkFrames or raise '
        "chunkFrames",
    ),
    _bad(
        "a connector without a kind",
        {"spec.connectors": [{"name": "fast"}]},
        "spec.connectors[0]",
        'connector "fast" needs exactly one block that says its kind; the blocks are: shm: {}, '
        "mooncakeStore: {}, mooncakeTransferEngine: {}, yuanrong: {}",
    ),
    _bad(
        "a connector under the name of another",
        {"spec.connectors": [{"name": "grpc", "shm": {}}]},
        "spec.connectors[0].name",
        'a connector of another kind is called "grpc" already; choose another name',
    ),
    _bad(
        "a store without a master",
        {"spec.connectors": [{"name": "store", "mooncakeStore": {"segmentSize": "1Gi"}}]},
        "spec.connectors[0].mooncakeStore",
        "the store needs one master: set managed: true to have one started, or master to HOST:PORT of one that runs "
        "already",
    ),
    BadFile(
        "a connector that does not exist",
        model_file(
            {
                "spec.connectors": [{"name": "fast", "shm": {"size": "1Gi"}}],
                "spec.edges": [{"from": "text-encoder", "to": "denoiser", "connector": "fsat"}],
            }
        ),
        "spec.edges[0]",
        'edge "text-encoder->denoiser" chooses connector "fsat", which does not exist; use one of auto, inline, grpc, '
        "shm or add it to connectors",
        hint=' (did you mean "fast"?)',
    ),
    _bad(
        "a node port without its Service",
        {"spec.frontend.service": {"nodePort": 30080}},
        "spec.frontend.service.nodePort",
        'nodePort 30080 needs a Service of type NodePort, but type is "ClusterIP"; set type: NodePort or remove '
        "nodePort",
    ),
    _bad(
        "a queue that waits too long",
        {"spec.frontend.limits": {"queueTimeoutSeconds": 700}},
        "spec.frontend.limits.queueTimeoutSeconds",
        "queueTimeoutSeconds (700) is above requestTimeoutSeconds (600), so a waiting request would never see it; "
        "lower it",
    ),
    _bad(
        "bounds of replicas the wrong way round",
        {"spec.stages[1].autoscaling": {"minReplicas": 4, "maxReplicas": 2}},
        "spec.stages[1].autoscaling.minReplicas",
        "the stage's minReplicas (4) is above its maxReplicas (2); lower it",
    ),
    _bad(
        "bounds of frontends the wrong way round",
        {"spec.frontend.autoscaling": {"minReplicas": 4, "maxReplicas": 2}},
        "spec.frontend.autoscaling.minReplicas",
        "the frontend's minReplicas (4) is above its maxReplicas (2); lower it",
    ),
    _bad(
        "two who say how many replicas a stage has",
        {"spec.stages[1].autoscaling": {"maxReplicas": 4}, "spec.stages[1].replicas": 3},
        "spec.stages[1].autoscaling",
        'stage "denoiser" has replicas (3) and autoscaling, but only one of them can decide; remove replicas, or say '
        "autoscaling.minReplicas",
    ),
    _bad(
        "two who say how many frontends there are",
        {"spec.frontend.autoscaling": {"maxReplicas": 4}, "spec.frontend.replicas": 3},
        "spec.frontend.autoscaling",
        "the frontend has replicas (3) and autoscaling, but only one of them can decide; remove replicas, or say "
        "autoscaling.minReplicas",
    ),
    _bad(
        "a target for CPUs that nobody asks for",
        {"spec.stages[1].autoscaling": {"maxReplicas": 4, "cpuUtilization": 70}},
        "spec.stages[1].autoscaling.cpuUtilization",
        'stage "denoiser" is scaled by its use of resources.cpu, but does not say resources.cpu; add it',
    ),
)

AGAINST_THE_SCHEMA = (
    _bad(
        "a misspelt key",
        {"spec.stages[0].replica": 2},
        "spec.stages[0].replica",
        'unknown key "replica" (did you mean "replicas"?)',
        server='unknown field "spec.stages[0].replica"',
    ),
    _bad(
        "a key in the wrong place",
        {"spec.accelerator": {"pool": "cpu"}},
        "spec.accelerator",
        'unknown key "accelerator"; the keys here are: model, family, stages, edges, connectors, placement, frontend, '
        "network, monitoring, suspend",
        server='unknown field "spec.accelerator"',
    ),
    _bad(
        "text for a number",
        {"spec.stages[0].replicas": "2"},
        "spec.stages[0].replicas",
        '"2" is not a whole number',
        server='spec.stages[0].replicas: Invalid value: "string": spec.stages[0].replicas in body must be of type '
        'integer: "string"',
    ),
    _bad(
        "too many replicas",
        {"spec.stages[0].replicas": 5000},
        "spec.stages[0].replicas",
        "5000 is too large; the most is 1000",
        server="spec.stages[0].replicas in body should be less than or equal to 1000",
    ),
    _bad(
        "a stage name that is too long",
        {"spec.stages[0].name": "the-text-encoder"},
        "spec.stages[0].name",
        '"the-text-encoder" has 16 characters; at most 15 are allowed',
        server="spec.stages[0].name: Too long: may not be more than 15 bytes",
    ),
    _bad(
        "a stage name in capitals",
        {"spec.stages[0].name": "Encoder"},
        "spec.stages[0].name",
        '"Encoder" has a wrong form; use lower-case letters, digits and hyphens, beginning with a letter',
        server="spec.stages[0].name in body should match '^[a-z]([-a-z0-9]*[a-z0-9])?$'",
    ),
    _bad(
        "a stage listed twice",
        {"spec.stages[1].name": "text-encoder"},
        "spec.stages",
        '"text-encoder" stands here more than once; keep one',
        server='spec.stages[1]: Duplicate value: {"name":"text-encoder"}',
    ),
    _bad(
        "an edge listed twice",
        {"spec.edges": [{"from": "text-encoder", "to": "denoiser"}, {"from": "text-encoder", "to": "denoiser"}]},
        "spec.edges",
        '"text-encoder -> denoiser" stands here more than once; keep one',
        server='spec.edges[1]: Duplicate value: {"from":"text-encoder","to":"denoiser"}',
    ),
    _bad(
        "a name served twice",
        {"spec.model.servedNames": ["painter", "painter"]},
        "spec.model.servedNames",
        '"painter" stands here more than once; keep one',
        server='spec.model.servedNames[1]: Duplicate value: "painter"',
    ),
    _bad(
        "no checkpoint",
        {"spec.model": {}},
        "spec.model",
        'the key "source" is missing',
        server="spec.model.source: Required value",
    ),
    _bad(
        "a phase that does not exist",
        {"spec.stages[1].diffusion": {"phases": ["denoize"]}},
        "spec.stages[1].diffusion.phases[0]",
        '"denoize" is not one of: encode, denoise, decode (did you mean "denoise"?)',
        server='Unsupported value: "denoize": supported values: "encode", "denoise", "decode"',
    ),
    _bad(
        "memory in words",
        {"spec.stages[1].resources": {"memory": "two gigabytes"}},
        "spec.stages[1].resources.memory",
        '"two gigabytes" has a wrong form; write a quantity like 2, "500m" or "16Gi"',
        server="spec.stages[1].resources.memory in body should match",
    ),
    _bad(
        "a connector that a name cannot stand for",
        {"spec.edges": [{"from": "text-encoder", "to": "denoiser", "connector": "carrier pigeon"}]},
        "spec.edges[0].connector",
        '"carrier pigeon" has a wrong form; use letters, digits and hyphens, beginning with a lower-case letter',
        server="spec.edges[0].connector in body should match",
    ),
    _bad(
        "a connector listed twice",
        {"spec.connectors": [{"name": "fast", "shm": {}}, {"name": "fast", "shm": {}}]},
        "spec.connectors",
        '"fast" stands here more than once; keep one',
        server='spec.connectors[1]: Duplicate value: {"name":"fast"}',
    ),
    _bad(
        "a setting of shared memory that does not exist",
        {"spec.connectors": [{"name": "fast", "shm": {"sizes": "1Gi"}}]},
        "spec.connectors[0].shm.sizes",
        'unknown key "sizes" (did you mean "size"?)',
        server='unknown field "spec.connectors[0].shm.sizes"',
    ),
    _bad(
        "a required key without a value",
        {"spec.model.source": None},
        "spec.model",
        'the key "source" is missing',
        server="spec.model.source: Required value",
    ),
)

BAD_FILES = AGAINST_RULES + AGAINST_THE_SCHEMA
