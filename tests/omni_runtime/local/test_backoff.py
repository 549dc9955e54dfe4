from omni_runtime.local.backoff import BackOff


def test_the_wait_doubles_up_to_the_longest() -> None:
    waits = [BackOff(first_s=0.5, longest_s=4).delay_s(crashes) for crashes in range(1, 7)]
    assert waits == [0.5, 1, 2, 4, 4, 4]


def test_a_process_that_crashes_for_days_still_gets_a_finite_wait() -> None:
    assert BackOff(longest_s=30).delay_s(100_000) == 30


def test_a_long_healthy_run_starts_the_count_anew() -> None:
    back_off = BackOff(healthy_s=60)
    assert back_off.crashes_after(5, ran_s=59.9) == 6
    assert back_off.crashes_after(5, ran_s=60) == 1
