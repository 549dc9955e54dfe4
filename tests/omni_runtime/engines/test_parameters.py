"""What of a request's parameters a stage sees."""

from omni_runtime.engines.parameters import parameters_for


def test_a_stage_sees_what_is_for_all_under_what_is_for_itself():
    parameters = {"temperature": 0.9, "thinker.temperature": 0.1, "talker.temperature": 0.5, "seed": 7}
    assert parameters_for("thinker", parameters) == {"temperature": 0.1, "seed": 7}
    assert parameters_for("code2wav", parameters) == {"temperature": 0.9, "seed": 7}


def test_none_is_as_good_as_absent_and_takes_back_what_is_for_all():
    assert parameters_for("thinker", {"top_k": None, "seed": 7, "thinker.seed": None}) == {}
