"""What a stage is told of a request's parameters."""

from omni_runtime.orchestrator.messages import split_by_stage


def test_a_parameter_with_a_stage_s_name_is_for_that_stage_alone() -> None:
    of_all, of_one = split_by_stage({"seed": 1, "thinker.seed": 2, "talker.top_k": 50})
    assert of_all == {"seed": 1}
    assert of_one == {"thinker": {"seed": 2}, "talker": {"top_k": 50}}
