from omni_runtime.frontend.form_body import gathered


def test_a_field_that_is_sent_once_is_no_list() -> None:
    assert gathered([("model", "m"), ("file", b"data")]) == {"model": "m", "file": b"data"}


def test_lists_are_told_by_brackets_or_by_names_that_come_again() -> None:
    items = [("include[]", "a"), ("image[0]", b"1"), ("image[1]", b"2"), ("stop", "x"), ("stop", "y"), ("stop", "z")]
    assert gathered(items) == {"include": ["a"], "image": [b"1", b"2"], "stop": ["x", "y", "z"]}


def test_fields_of_an_object_are_told_by_the_objects_name() -> None:
    assert gathered([("chunking_strategy[type]", "server_vad")]) == {"chunking_strategy": ["server_vad"]}
