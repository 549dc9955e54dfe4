"""Which stages run for which request."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator.graph import Plan, output_modalities, plan, restart_set
from tests.support.stage_tables import IMAGE_STAGES, edge, image_table, stage, table

OMNI = table(
    [stage("thinker", "text"), stage("talker"), stage("code2wav", "audio"), stage("judge")],
    [edge("thinker", "talker"), edge("talker", "code2wav"), edge("thinker", "code2wav"), edge("thinker", "judge")],
)
NOTHING: frozenset[str] = frozenset()


def names(of: Plan) -> list[str]:
    return [planned.name for planned in of.stages]


def sampling(of: Plan, name: str) -> Any:
    return dict(of.by_name[name].sampling)


def test_stages_come_after_those_that_feed_them() -> None:
    backwards = image_table()
    backwards = backwards.model_copy(update={"stages": tuple(reversed(backwards.stages))})
    assert names(plan(backwards)) == list(IMAGE_STAGES)


def test_text_alone_runs_neither_talker_nor_vocoder() -> None:
    assert names(plan(OMNI, ("text",))) == ["thinker"]
    assert plan(OMNI, ("text",)).by_name["thinker"].output_names == ("",)


def test_audio_alone_gives_no_text_to_the_client() -> None:
    audio = plan(OMNI, ("audio",))
    assert names(audio) == ["thinker", "talker", "code2wav"]
    assert audio.by_name["thinker"].output_names == ("thinker->talker", "thinker->code2wav")


def test_without_modalities_every_final_output_is_made_and_a_stage_for_nobody_never_runs() -> None:
    assert names(plan(OMNI)) == ["thinker", "talker", "code2wav"]
    assert plan(OMNI).by_name["thinker"].output_names == ("thinker->talker", "thinker->code2wav", "")


def test_a_stage_with_two_producers_has_two_inputs() -> None:
    assert [one.name for one in plan(OMNI).by_name["code2wav"].inputs] == ["talker->code2wav", "thinker->code2wav"]


def test_a_modality_that_no_stage_makes_is_refused_with_those_that_are() -> None:
    with pytest.raises(OmniError, match="has no video output; it answers with text, audio") as caught:
        plan(OMNI, ("video",))
    assert (caught.value.code, caught.value.param) == (ErrorCode.INVALID_REQUEST, "modalities")


def test_an_output_that_is_not_final_is_not_offered() -> None:
    hidden = stage("draft", "image", output={"modality": "image", "final": False})
    assert output_modalities(table([hidden, stage("writer", "text")])) == ("text",)


def test_stages_that_feed_each_other_are_an_error_and_no_endless_loop() -> None:
    ring = table([stage("one", "text"), stage("two")], [edge("one", "two"), edge("two", "one")])
    with pytest.raises(OmniError, match="one, two feed each other"):
        plan(ring)


def test_every_stage_sees_all_defaults_and_its_own_where_two_disagree() -> None:
    both = table(
        [stage("thinker", sampling={"temperature": 0.7, "seed": 1}), stage("talker", "audio", sampling={"seed": 2})],
        [edge("thinker", "talker")],
    )
    assert sampling(plan(both), "thinker") == {"temperature": 0.7, "seed": 1}
    assert sampling(plan(both), "talker") == {"temperature": 0.7, "seed": 2}


def test_only_the_lost_stage_runs_again_while_its_inputs_can_be_read() -> None:
    assert restart_set(plan(OMNI), "code2wav", frozenset({"talker->code2wav", "thinker->code2wav"}), NOTHING) == {
        "code2wav"
    }


def test_a_payload_that_is_gone_is_made_again_from_its_producer_on() -> None:
    readable = frozenset({"thinker->code2wav", "thinker->talker"})
    assert restart_set(plan(OMNI), "code2wav", readable, NOTHING) == {"code2wav", "talker"}
    assert restart_set(plan(OMNI), "code2wav", NOTHING, NOTHING) == {"code2wav", "talker", "thinker"}


def test_what_works_on_the_output_of_a_lost_stage_starts_over_with_it() -> None:
    every = frozenset(edge.name for edge in plan(OMNI).edges)
    assert restart_set(plan(OMNI), "talker", every, frozenset({"code2wav"})) == {"talker", "code2wav"}
    assert restart_set(plan(OMNI), "talker", every, NOTHING) == {"talker"}


@st.composite
def acyclic_tables(draw: st.DrawFn) -> StageTable:
    count = draw(st.integers(2, 7))
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    chosen: Iterable[tuple[int, int]] = draw(st.lists(st.sampled_from(pairs), unique=True))
    order = draw(st.permutations(range(count)))
    stages = [stage(f"s{number}", "text" if number == count - 1 else None) for number in order]
    return table(stages, [edge(f"s{one}", f"s{other}") for one, other in chosen])


@given(acyclic_tables())
def test_any_graph_is_planned_in_order_with_just_the_ancestors_of_its_output(of: StageTable) -> None:
    planned = plan(of)
    position = {name: index for index, name in enumerate(names(planned))}
    assert all(position[edge.source] < position[edge.target] for edge in planned.edges)
    assert all(stage.outputs or stage.modality for stage in planned.stages)


@given(acyclic_tables(), st.data())
def test_a_restart_leaves_no_stage_without_its_inputs(of: StageTable, data: st.DataObject) -> None:
    planned = plan(of)
    edges = [edge.name for edge in planned.edges]
    readable = frozenset(data.draw(st.sets(st.sampled_from(edges)))) if edges else NOTHING
    active = frozenset(data.draw(st.sets(st.sampled_from(names(planned)))))
    lost = data.draw(st.sampled_from(names(planned)))
    again = restart_set(planned, lost, readable, active)
    assert lost in again
    for one in planned.edges:
        assert one.target not in again or one.source in again or one.name in readable
        assert one.source not in again or one.target in again or one.target not in active
