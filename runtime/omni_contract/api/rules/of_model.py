"""Rules about the resource's name, the checkpoint and the family."""

import re

from omni_contract.api.rules.rule import FieldRule, Rule
from omni_contract.api.v1alpha1 import ModelSource, OmniModelSpec
from omni_contract.presets import PRESETS

MAX_NAME = 30
NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
VOLUME_SOURCE = r"^pvc://[a-z0-9]([-.a-z0-9]*[a-z0-9])?(/[A-Za-z0-9_][-A-Za-z0-9_.]*)*$"
SCHEME = r"^[a-z0-9]+://"
FAMILIES = ", ".join(f"'{family}'" for family in sorted(PRESETS))
MIMO = "mimo-audio"
"""Known by name, so that whoever asks for it hears why it is not here."""
FAMILY_NAMES = ", ".join(f'"{family}"' for family in sorted(PRESETS))


def _is_hub_id(model: ModelSource) -> bool:
    return re.match(SCHEME, model.source) is None


def _is_volume(model: ModelSource) -> bool:
    return re.fullmatch(VOLUME_SOURCE, model.source) is not None


def _family_is_known(spec: OmniModelSpec) -> bool:
    return spec.family in (None, MIMO) or spec.family in PRESETS


RESOURCE_RULES: tuple[Rule, ...] = (
    FieldRule(
        at=(),
        pointer="metadata.name",
        cel=f"self.metadata.name.size() <= {MAX_NAME}",
        holds=lambda model: len(model.metadata.name) <= MAX_NAME,
        message=f'name "{{self.metadata.name}}" is longer than {MAX_NAME} characters, and the names of the '
        "model's pods and services are made from it; choose a shorter one",
    ),
    FieldRule(
        at=(),
        pointer="metadata.name",
        cel=f"self.metadata.name.matches('{NAME}')",
        holds=lambda model: re.fullmatch(NAME, model.metadata.name) is not None,
        message='name "{self.metadata.name}" cannot be part of a service\'s name; use lower-case letters, digits and '
        "hyphens, beginning with a letter",
    ),
)

MODEL_RULES: tuple[Rule, ...] = (
    FieldRule(
        at=("spec",),
        cel="has(self.family) || self.stages.size() > 0",
        holds=lambda spec: spec.family is not None or len(spec.stages) > 0,
        message=f"neither family nor stages is set, so there is nothing to run; name a family ({FAMILY_NAMES}) "
        "or list the stages",
    ),
    FieldRule(
        at=("spec",),
        pointer="family",
        cel=f"!has(self.family) || self.family in ['{MIMO}', {FAMILIES}]",
        holds=_family_is_known,
        message=f'there is no family "{{self.family}}"; the families are: {FAMILY_NAMES}; without one, list stages '
        "and edges",
    ),
    FieldRule(
        at=("spec",),
        pointer="family",
        cel=f"!has(self.family) || self.family != '{MIMO}'",
        holds=lambda spec: spec.family != MIMO,
        message=f'family "{MIMO}" is not served: neither transformers nor a package on the index computes it, so that '
        "nothing could be shown to equal a reference; take qwen2.5-omni or qwen3-omni, which speak and listen, too",
    ),
    FieldRule(
        at=("spec", "model"),
        pointer="source",
        cel=f"self.source.matches('{SCHEME}')",
        holds=lambda model: not _is_hub_id(model),
        message='source "{self.source}" is a model on a hub, and the Job that downloads such models is not in this '
        "release; copy the checkpoint into a PersistentVolumeClaim and set pvc://CLAIM/PATH",
    ),
    FieldRule(
        at=("spec", "model"),
        pointer="source",
        cel="!self.source.startsWith('image://')",
        holds=lambda model: not model.source.startswith("image://"),
        message='source "{self.source}" is an image volume, which this release cannot mount yet; copy the checkpoint '
        "into a PersistentVolumeClaim and set pvc://CLAIM/PATH",
    ),
    FieldRule(
        at=("spec", "model"),
        pointer="source",
        cel=f"!self.source.matches('{SCHEME}') || self.source.startsWith('pvc://') || self.source.startsWith('image://')",
        holds=lambda model: _is_hub_id(model) or model.source.startswith(("pvc://", "image://")),
        message='source "{self.source}" has a scheme that is not known; set pvc://CLAIM/PATH',
    ),
    FieldRule(
        at=("spec", "model"),
        pointer="source",
        cel=f"!self.source.startsWith('pvc://') || self.source.matches('{VOLUME_SOURCE}')",
        holds=lambda model: not model.source.startswith("pvc://") or _is_volume(model),
        message='source "{self.source}" is not of the form pvc://CLAIM/PATH: a claim\'s name, then a folder without '
        '"..", empty parts or spaces',
    ),
    FieldRule(
        at=("spec", "model"),
        pointer="revision",
        cel="!has(self.revision) || !self.source.startsWith('pvc://')",
        holds=lambda model: model.revision is None or not model.source.startswith("pvc://"),
        message='revision "{self.revision}" pins a model on a hub, but source "{self.source}" is a folder, which has '
        "no revisions; remove it, or put it into the folder's name",
    ),
    FieldRule(
        at=("spec", "model"),
        pointer="trustRemoteCode",
        cel="!self.trustRemoteCode",
        holds=lambda model: not model.trust_remote_code,
        message="trustRemoteCode is true, but no family of this release runs code from a checkpoint; remove it",
    ),
)
