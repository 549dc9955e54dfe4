"""What the orchestrator learns about how long requests take."""

import pytest

from omni_runtime.orchestrator.work import ANY, MOST_KINDS, Backlog, WorkModel, kind_of

SMALL, LARGE = (1,), (9,)


def taught(**took_s: float) -> WorkModel:
    model = WorkModel()
    for kind, seconds in took_s.items():
        model.learn({"small": SMALL, "large": LARGE}[kind], seconds)
    return model


def test_sizes_that_differ_by_less_than_two_times_are_one_kind() -> None:
    assert kind_of({"prompt": "a fox"}, {"steps": 20, "width": 512}) == kind_of(
        {"prompt": "a cat"}, {"steps": 30, "width": 640}
    )


@pytest.mark.parametrize("parameters", [{"steps": 40}, {"width": 1024}, {"num_frames": 81}, {"max_tokens": 500}])
def test_more_of_any_size_is_another_kind(parameters: dict[str, int]) -> None:
    usual = {"steps": 20, "width": 512, "num_frames": 1, "max_tokens": 20}
    assert kind_of({}, usual) != kind_of({}, {**usual, **parameters})


def test_a_longer_prompt_is_another_kind() -> None:
    assert kind_of({"prompt": "fox"}, {}) != kind_of({"prompt": "fox" * 100}, {})


def test_settings_that_are_not_sizes_do_not_matter() -> None:
    assert kind_of({}, {"seed": 1, "guidance_scale": 2.5}) == kind_of({}, {"seed": 10**9})


def test_each_kind_is_predicted_by_its_own_times() -> None:
    model = taught(small=0.1, large=10)
    assert (model.predict_s(SMALL), model.predict_s(LARGE)) == (0.1, 10)


def test_a_kind_not_seen_yet_counts_as_typical() -> None:
    assert taught(small=2).predict_s(LARGE) == 2
    assert WorkModel().predict_s(ANY) == 1


def test_newer_times_count_more_than_old_ones() -> None:
    model = taught(small=10)
    for _ in range(30):
        model.learn(SMALL, 1)
    assert model.predict_s(SMALL) == pytest.approx(1, abs=0.1)


def test_kinds_that_nobody_asks_for_any_more_are_forgotten() -> None:
    model = taught(small=5)
    for size in range(MOST_KINDS):
        model.learn((100 + size,), 1)
    assert model.predict_s(SMALL) == pytest.approx(model.typical_s)


def test_a_replica_s_backlog_is_what_was_begun_and_has_not_ended() -> None:
    backlog = Backlog(taught(small=1, large=10))
    backlog.begin(("a", 1), SMALL, 0)
    backlog.begin(("b", 1), LARGE, 0)
    assert (backlog.work_s, len(backlog)) == (11, 2)
    assert backlog.end(("a", 1), 1, is_answered=True)
    assert (backlog.work_s, len(backlog)) == (10, 1)
    assert not backlog.end(("a", 1), 1, is_answered=True)
    assert backlog.end(("b", 1), 5, is_answered=False)
    assert (backlog.work_s, len(backlog)) == (0, 0)


def test_a_replica_that_takes_longer_than_predicted_is_slow() -> None:
    model = taught(small=1)
    slow, usual = Backlog(model), Backlog(model)
    for turn in range(20):
        for backlog, took_s in ((slow, 2.0), (usual, 1.0), (usual, 1.0)):
            backlog.begin((f"r{turn}", 1), SMALL, 0)
            backlog.end((f"r{turn}", 1), took_s, is_answered=True)
    assert slow.slowness > 1.3 > 1 > usual.slowness


def test_failed_requests_teach_nothing() -> None:
    model = taught(small=1)
    backlog = Backlog(model)
    backlog.begin(("a", 1), SMALL, 0)
    backlog.end(("a", 1), 100, is_answered=False)
    assert (model.predict_s(SMALL), backlog.slowness) == (1, 1)
