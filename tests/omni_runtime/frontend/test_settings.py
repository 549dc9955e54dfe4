"""The frontend's settings: what holds if nothing is said."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from omni_contract.api.v1alpha1.media import MediaSpec
from omni_contract.wire.frontend_arguments import media_arguments
from omni_runtime.frontend.media.settings import NUMBERS, MediaSettings, arguments_of
from omni_runtime.frontend.settings import FrontendSettings, add_arguments, settings_from


def settings(*arguments: str, **environment: str) -> FrontendSettings:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return settings_from(parser.parse_args(arguments), environment)


def test_a_frontend_that_is_told_nothing_is_reached_from_this_host_only():
    assert settings().host == "127.0.0.1"
    assert settings("--host", "0.0.0.0").host == "0.0.0.0"


def test_workers_are_reached_in_the_clear_unless_there_is_a_certificate():
    assert settings().tls is None
    assert settings("--tls", "/etc/omni/tls").tls == Path("/etc/omni/tls")


def test_media_come_from_public_addresses_and_no_folder_unless_it_is_said():
    assert settings().media == MediaSettings()
    opened = settings("--media-allow-private-addresses", "--media-folder", "/a", "--media-folder", "/b").media
    assert (opened.allow_private_addresses, opened.folders) == (True, (Path("/a"), Path("/b")))


@pytest.mark.parametrize("name", NUMBERS)
def test_every_limit_of_media_has_a_flag_and_another_process_is_told_of_it(name: str):
    flag = f"--media-{name.removesuffix('_s').replace('_', '-')}"
    changed = settings(flag, "7").media
    assert changed == replace(MediaSettings(), **{name: 7})
    assert settings(*arguments_of(changed)).media == changed
    assert arguments_of(settings().media) == ()


def test_another_process_is_told_of_what_media_may_be_fetched_from():
    opened = settings("--media-allow-private-addresses", "--media-folder", "/a").media
    assert settings(*arguments_of(opened)).media == opened


def test_the_frontend_understands_all_that_a_model_file_says_of_media():
    said = MediaSpec(
        allow_private_addresses=True,
        max_bytes=2048,
        fetch_timeout_seconds=2,
        max_audio_seconds=3,
        max_video_seconds=4,
        max_video_frames=5,
    )
    assert settings(*media_arguments(said)).media == MediaSettings(
        allow_private_addresses=True,
        max_bytes=2048,
        fetch_timeout_s=2,
        max_audio_seconds=3,
        max_video_seconds=4,
        max_video_frames=5,
    )
    assert media_arguments(MediaSpec()) == ()
