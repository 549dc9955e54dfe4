"""Between torch and what travels: every dtype survives, and nothing is copied on the CPU."""

import pytest
import torch

from omni_contract.wire.codec import decode, encode
from omni_contract.wire.errors import OmniError
from omni_contract.wire.payload import DTYPES
from omni_runtime.stepping.tensors import to_array, to_payload, to_tensor, to_tensors

CPU = torch.device("cpu")


def sample(dtype: str) -> torch.Tensor:
    return (torch.arange(24).reshape(2, 3, 4) % 5 - 1).to(torch.float32).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_back_as_it_went(dtype):
    tensor = sample(dtype)
    payload = decode(encode(to_payload({"x": tensor})).to_bytes())
    back = to_tensors(payload, CPU)["x"]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(back.view(torch.uint8), tensor.view(torch.uint8))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_scalars_and_empty_tensors_travel(shape):
    back = to_tensor(to_array(torch.ones(shape, dtype=torch.bfloat16)), CPU)
    assert torch.equal(back, torch.ones(shape, dtype=torch.bfloat16))


def test_a_tensor_that_is_not_row_major_is_laid_out_anew():
    tensor = sample("float32").permute(2, 0, 1)
    assert torch.equal(to_tensor(to_array(tensor), CPU), tensor)


def test_on_the_cpu_array_and_tensor_share_memory():
    tensor = sample("bfloat16")
    back = to_tensor(to_array(tensor), CPU)
    assert back.data_ptr() == tensor.data_ptr()


def test_a_received_buffer_is_not_copied_either():
    received = bytearray(encode(to_payload({"x": sample("uint8")})).to_bytes())
    tensor = to_tensor(decode(received)["x"], CPU)
    received[-1] = 77
    assert tensor.flatten()[-1] == 77


def test_a_payload_field_that_is_no_array_is_named():
    with pytest.raises(OmniError, match='"x" is a str'):
        to_tensors({"x": "text"}, CPU)
