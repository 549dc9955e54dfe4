"""The registry of connectors agrees with the resource, and none of them needs torch."""

import subprocess
import sys

from omni_contract.api.v1alpha1 import BUILT_IN_CONNECTORS, CONNECTOR_FIELDS
from omni_runtime.connectors.registry import CONNECTORS


def test_every_connector_that_a_resource_may_name_exists():
    assert {*BUILT_IN_CONNECTORS, *CONNECTOR_FIELDS} == set(CONNECTORS.names())


def test_no_connector_imports_torch_or_numpy():
    code = (
        "import sys\n"
        "from omni_runtime.connectors.connector_set import ConnectorSet\n"
        "from omni_runtime.connectors.store import PayloadStore\n"
        "ConnectorSet('', 'boot', PayloadStore(1))\n"
        "print(*sorted({'torch', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
