"""The routes about the server itself: its health, its metrics, and the description of its API."""

from __future__ import annotations

from typing import Final

from dragoman.web.api import health, metrics
from dragoman.web.routing.route import PLAIN_TEXT, Route
from dragoman.web.shapes import server_shapes

STATUS_ROUTES: Final = (
    Route(
        method="GET",
        path="/api/openapi.json",
        handler=health.document,
        summary="The OpenAPI description of this API",
        answer=dict,
    ),
    Route(
        method="GET",
        path="/metrics",
        handler=metrics.metrics,
        summary="What this process does, in the text format of Prometheus",
        gives=(PLAIN_TEXT,),
    ),
    Route(
        method="GET",
        path="/healthz",
        handler=health.health,
        summary="Whether the server is running",
        answer=server_shapes.Health,
        public=True,
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=health.readiness,
        summary="Whether the server is healthy; 503 names what is failing",
        answer=server_shapes.Readiness,
        public=True,
    ),
)
