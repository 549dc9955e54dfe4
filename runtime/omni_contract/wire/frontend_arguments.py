"""Arguments of the frontend's process that follow from the resource, wherever it runs."""

from omni_contract.api.v1alpha1.media import MediaSpec

PRIVATE_MEDIA = "--media-allow-private-addresses"


def media_arguments(media: MediaSpec) -> tuple[str, ...]:
    """Only what the user has set."""
    numbers = {
        "--media-max-bytes": media.max_bytes,
        "--media-fetch-timeout": media.fetch_timeout_seconds,
        "--media-max-audio-seconds": media.max_audio_seconds,
        "--media-max-video-seconds": media.max_video_seconds,
        "--media-max-video-frames": media.max_video_frames,
    }
    said = [argument for flag, value in numbers.items() if value is not None for argument in (flag, str(value))]
    return (*((PRIVATE_MEDIA,) if media.allow_private_addresses else ()), *said)
