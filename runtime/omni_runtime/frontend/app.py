"""Puts the HTTP application together: middleware from the outside in, then the routes."""

from fastapi import FastAPI

from omni_runtime.frontend import probes
from omni_runtime.frontend.api_keys import ApiKeys, RequireApiKey
from omni_runtime.frontend.body import BoundedBody
from omni_runtime.frontend.chat import routes as chat
from omni_runtime.frontend.chat.pictures import PictureChatService
from omni_runtime.frontend.chat.service import ChatService
from omni_runtime.frontend.completions import routes as completions
from omni_runtime.frontend.completions.service import CompletionService
from omni_runtime.frontend.errors import add_error_handlers
from omni_runtime.frontend.images import routes as images
from omni_runtime.frontend.images.service import ImageService
from omni_runtime.frontend.media.loader import MediaLoader
from omni_runtime.frontend.metrics import FrontendMetrics
from omni_runtime.frontend.models import routes as models
from omni_runtime.frontend.request_scope import RequestScope
from omni_runtime.frontend.settings import FrontendSettings
from omni_runtime.frontend.speech import routes as speech
from omni_runtime.frontend.speech.service import SpeechService
from omni_runtime.frontend.transcriptions import routes as transcriptions
from omni_runtime.frontend.transcriptions.service import TranscriptionService
from omni_runtime.frontend.version import VERSION
from omni_runtime.media.audio import AudioEncoder
from omni_runtime.media.image import ImageEncoder
from omni_runtime.orchestrator import Orchestrator
from omni_runtime.statistics.files import StatsFiles
from omni_runtime.tracing.spans import UNTRACED, Tracing

PROTECTED = ("/v1/", "/debug/")
"""What an API key is asked for; probes and metrics are for the cluster."""


def create_app(
    settings: FrontendSettings,
    orchestrator: Orchestrator,
    tracing: Tracing = UNTRACED,
    stats: StatsFiles | None = None,
) -> FastAPI:
    app = FastAPI(title="Omni Operator", version=VERSION, docs_url=None, redoc_url=None)
    metrics = FrontendMetrics(orchestrator, stats)
    media = MediaLoader(settings.media, lambda: orchestrator.table.limits.max_image_pixels)
    encoder = AudioEncoder()
    painter = ImageService(orchestrator, ImageEncoder())
    chats = ChatService(orchestrator, media, encoder)
    app.include_router(chat.router(chats, PictureChatService(painter), orchestrator))
    app.include_router(completions.router(CompletionService(orchestrator)))
    app.include_router(speech.router(SpeechService(orchestrator, media, encoder), orchestrator))
    app.include_router(transcriptions.router(TranscriptionService(orchestrator, media)))
    app.include_router(images.router(painter))
    app.include_router(models.router(orchestrator))
    app.include_router(probes.router(orchestrator, metrics))
    add_error_handlers(app)
    # The last one added is the outermost.
    app.add_middleware(BoundedBody, limits=lambda: orchestrator.table.limits, timeout_s=settings.body_timeout_s)
    if settings.api_keys is not None:
        app.add_middleware(RequireApiKey, keys=ApiKeys(settings.api_keys), prefixes=PROTECTED)
    app.add_middleware(RequestScope, metrics=metrics, tracing=tracing)
    return app
