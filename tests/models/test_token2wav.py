"""Token2wav's short ways make what transformers' own make: in double precision, where rounding hides nothing."""

from pathlib import Path

import pytest
import torch
from transformers import Qwen2_5OmniBigVGANConfig, Qwen2_5OmniDiTConfig
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    DiTAttention,
    Qwen2_5OmniAntiAliasedActivation1d,
    Qwen2_5OmniDiTRotaryEmbedding,
    Qwen2_5OmniSnakeBeta,
    Qwen2_5OmniToken2WavBigVGANModel,
)

from omni_runtime.families.codec_reach import Span
from omni_runtime.families.qwen2_5_omni.anti_aliasing import BLOCK, AntiAliasedSnake
from omni_runtime.families.qwen2_5_omni.near_attention import Sight, attend, view_of
from omni_runtime.families.qwen2_5_omni.tiny import LOUDNESS
from omni_runtime.families.qwen2_5_omni.vocoder import Piece, Vocoder
from omni_runtime.families.tiny_checkpoint import give_unit_gain
from tests.models.sounds import Speech, loaded, off, pieces, stage_file

BANDS, FRAMES, SAMPLES_PER_FRAME = 8, 97, 240
BLOCK_SIZE = 4
ROUNDING = 1e-10


@pytest.fixture
def double_precision():
    torch.set_default_dtype(torch.float64)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(0)
        yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK])
def test_an_activation_is_that_of_transformers_up_to_both_ends(length):
    snake = Qwen2_5OmniSnakeBeta(3)
    snake.alpha.data.normal_()
    snake.beta.data.normal_()
    theirs = Qwen2_5OmniAntiAliasedActivation1d(snake)
    sound = torch.randn((2, 3, length))
    assert off(AntiAliasedSnake(theirs)(sound), theirs(sound)) < ROUNDING


@pytest.mark.usefixtures("double_precision")
class TestVocoder:
    @pytest.fixture
    def config(self):
        return Qwen2_5OmniBigVGANConfig(mel_dim=BANDS, upsample_initial_channel=64)

    @pytest.fixture
    def mel(self):
        return torch.randn((FRAMES, BANDS))

    @pytest.fixture
    def whole(self, config, mel):
        return self.model(config)(mel.T[None])

    @pytest.fixture
    def vocoder(self, config):
        return Vocoder(self.model(config))

    def model(self, config):
        """Each time the same, and neither silent nor cut off."""
        torch.manual_seed(1)
        model = Qwen2_5OmniToken2WavBigVGANModel(config).eval()
        give_unit_gain(model)
        model.conv_post.weight.mul_(LOUDNESS)
        return model

    def sound(self, vocoder, mel, spans):
        return torch.cat(vocoder.sound([Piece(mel, Span(*span)) for span in spans]))

    @pytest.mark.parametrize("cuts", [(), (40,), (1, 2, 50, FRAMES - 1), tuple(range(10, FRAMES, 10))])
    def test_pieces_are_what_one_call_of_transformers_makes(self, vocoder, mel, whole, cuts):
        made = self.sound(vocoder, mel, zip((0, *cuts), (*cuts, FRAMES), strict=True))
        assert off(made, whole) < ROUNDING

    def test_another_frame_of_mel_can_be_heard(self, vocoder, mel, whole):
        """Else a piece could do without those around it, and the test above could not fail."""
        other = mel.clone()
        other[60] += 1
        made = self.sound(vocoder, other, [(0, 50), (50, FRAMES)])
        heard = ((made - whole).abs() > ROUNDING).nonzero()
        assert heard.min() < 58 * SAMPLES_PER_FRAME and heard.max() > 63 * SAMPLES_PER_FRAME


@pytest.mark.usefixtures("double_precision")
class TestNearAttention:
    @pytest.mark.parametrize("sight", [Sight(0, 0), Sight(1, 0), Sight(0, 1), Sight(2, 1)], ids=str)
    def test_blocks_by_themselves_see_what_transformers_shows_them(self, sight):
        """Two speeches of unlike lengths, in 3 blocks: what is behind the end of the shorter must not be seen."""
        lengths, frames = torch.tensor([12, 7]), torch.arange(12)
        config = Qwen2_5OmniDiTConfig(hidden_size=8, num_attention_heads=2, head_dim=4, attn_implementation="sdpa")
        attention = DiTAttention(config).eval()
        hidden = torch.randn((2, 12, 8))
        rotary = Qwen2_5OmniDiTRotaryEmbedding(config)(hidden, frames[None])
        is_real = frames < lengths[:, None]
        blocks = frames // BLOCK_SIZE
        distances = blocks - blocks[:, None]
        is_seen = (distances >= -sight.back) & (distances <= sight.ahead) & is_real[:, None, :]
        theirs = attention(hidden, position_embeddings=rotary, attention_mask=is_seen[:, None])
        ours = attend(attention, hidden, rotary, view_of(sight, is_real.unflatten(1, (-1, BLOCK_SIZE))))
        assert off(ours[is_real], theirs[is_real]) < ROUNDING
        assert ours.isfinite().all()


async def test_the_first_second_leaves_by_itself_and_three_at_a_time_follow(tiny_checkpoint):
    model: Path = tiny_checkpoint("qwen2.5-omni")
    async with loaded(stage_file("qwen2.5-omni", model)) as engine:
        made = await pieces(engine, Speech("qwen2.5-omni", 210).request(steps=2))
    assert [len(piece) for piece in made] == [24_000, 72_000, 4_800]
