"""A user's pod template lies under ours: it may add, it may not take away."""

from omni_operator.merge import merge


def test_what_only_the_template_says_is_kept() -> None:
    assert merge({"priorityClassName": "high"}, {"replicas": 1}) == {"replicas": 1, "priorityClassName": "high"}


def test_ours_wins_where_both_say_something() -> None:
    assert merge({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 3}}) == {"spec": {"a": 3, "b": 2}}


def test_containers_and_their_environment_are_merged_by_name() -> None:
    under = {
        "containers": [
            {"name": "main", "env": [{"name": "A", "value": "theirs"}, {"name": "B", "value": "b"}]},
            {"name": "sidecar"},
        ]
    }
    over = {"containers": [{"name": "main", "env": [{"name": "A", "value": "ours"}]}]}
    assert merge(under, over) == {
        "containers": [
            {"name": "main", "env": [{"name": "A", "value": "ours"}, {"name": "B", "value": "b"}]},
            {"name": "sidecar"},
        ]
    }


def test_mounts_are_merged_by_path() -> None:
    under = {"volumeMounts": [{"name": "theirs", "mountPath": "/tmp"}, {"name": "data", "mountPath": "/data"}]}
    over = {"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}
    assert [mount["name"] for mount in merge(under, over)["volumeMounts"]] == ["tmp", "data"]


def test_a_list_without_keys_is_replaced() -> None:
    assert merge({"command": ["sh"]}, {"command": ["tini"]}) == {"command": ["tini"]}


def test_tolerations_of_both_sides_count() -> None:
    ours, theirs = {"key": "nvidia.com/gpu"}, {"key": "spot"}
    assert merge({"tolerations": [theirs, ours]}, {"tolerations": [ours]}) == {"tolerations": [ours, theirs]}


def test_neither_side_is_changed() -> None:
    under, over = {"a": {"b": 1}}, {"a": {"c": 2}}
    merge(under, over)
    assert (under, over) == ({"a": {"b": 1}}, {"a": {"c": 2}})
