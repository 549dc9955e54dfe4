"""Spans of OpenTelemetry for every hop: one request is one trace through frontend, stages and edges."""
