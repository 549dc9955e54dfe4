"""How the parts of a model reach each other."""

from typing import Annotated

from pydantic import Field

from omni_contract.api.v1alpha1.base import ApiModel, ListMap, SecretName, StageName


class StageTlsSpec(ApiModel):
    """The certificate of one stage."""

    name: StageName = Field(description="Name of the stage.")
    secret_name: SecretName = Field(description="Name of a Secret of this namespace, with the same three keys.")


class TlsSpec(ApiModel):
    """Mutual TLS: what is not shown a certificate of this model neither calls a stage nor passes for one."""

    secret_name: SecretName = Field(
        description="Name of a Secret of this namespace with tls.crt, tls.key and ca.crt. The certificate is made out "
        "to frontend.MODEL.NAMESPACE.omni and to STAGE.MODEL.NAMESPACE.omni for each stage, or to "
        "*.MODEL.NAMESPACE.omni, and allowed for servers and clients. A new one is used without a restart."
    )
    stages: Annotated[tuple[StageTlsSpec, ...], Field(max_length=16), ListMap(("name",))] = Field(
        (), description="Stages with certificates of their own, so that none can pass for another."
    )

    def secret_of(self, component: str) -> str:
        """Of a stage, or of the frontend."""
        return next((stage.secret_name for stage in self.stages if stage.name == component), self.secret_name)


class NetworkSpec(ApiModel):
    """How the parts of the model reach each other."""

    tls: TlsSpec | None = Field(
        None,
        description="Mutual TLS between the frontend and the stages, and from stage to stage; without it they talk in "
        "the clear. `omni serve` does not use it: there they talk over Unix sockets in a private folder.",
    )
