"""Spans of requests, where `tracing` is on and OpenTelemetry's SDK installed; nothing of it is imported otherwise.

OpenTelemetry's ASGI instrumentation (0.66b2) is not taken: it has the query and the client's address in each span,
which ours leave out, and the path as its name in the place of the route. It makes four spans a request (one with
`exclude_spans`), which take 206 us of a processor (127), where this takes 30.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gramvec import __version__
from gramvec.errors import InputError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger("gramvec.server")

GROUP = "opentelemetry_traces_exporter"
# Protocols of OTLP -> names in that group; the first is the specification's own default.
PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def check_tracing() -> None:
    """Raise InputError, a sentence, where spans cannot be made or exported."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise InputError("tracing needs opentelemetry-sdk; install it with: pip install 'gramvec[tracing]'")
    _exporters()


class Spans:
    """Recorder of one span a request, made when the request ends; switched off, it costs one attribute lookup.

    Args:
        provider: whose spans these are; None for one by the OTEL_ variables. Make it in the process that serves: it has
            a thread.

    Raises:
        InputError: as `check_tracing`.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        from opentelemetry import propagate, trace
        from opentelemetry.propagators.textmap import DefaultGetter

        self._extract = propagate.extract
        self._getter: Any = DefaultGetter()
        self._provider = provider or _provider()
        self._tracer = self._provider.get_tracer("gramvec", __version__)
        self._kind = trace.SpanKind.SERVER
        self._failed = trace.Status(trace.StatusCode.ERROR)

    def record(
        self, name: str, seconds: float, headers: Mapping[bytes, bytes], attributes: Mapping[str, Any], *, failed: bool
    ) -> None:
        """Record a span of this duration that ends now; its parent is the one that the request's headers name."""
        end = time.time_ns()
        # Headers that a propagator may want: traceparent, tracestate, baggage, b3 and the like.
        carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers.items()}
        span = self._tracer.start_span(
            name,
            context=self._extract(carrier, getter=self._getter),
            kind=self._kind,
            attributes=attributes,
            start_time=end - int(seconds * 1e9),
        )
        if failed:
            span.set_status(self._failed)
        span.end(end)

    def close(self) -> None:
        """Hand over what is left, which may take a while."""
        self._provider.shutdown()


def _provider() -> TracerProvider:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    resource = Resource.create({} if named else {"service.name": "gramvec"})
    made = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in _exporters():
        made.add_span_processor(BatchSpanProcessor(exporter()))
    return made


def _exporters() -> list[type[SpanExporter]]:
    """Return the classes that OTEL_TRACES_EXPORTER, of the specification, names. Raises InputError."""
    found: list[type[SpanExporter]] = []
    for name in _names():
        entry = next(iter(entry_points(group=GROUP, name=name)), None)
        if entry is None:
            there = ", ".join(sorted(entry_points(group=GROUP).names)) or "none"
            raise InputError(
                f"tracing: no exporter of spans {name!r} is installed (there are {there}); install its package, or set "
                "OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_PROTOCOL to one that is"
            )
        found.append(entry.load())
    return found


def _names() -> list[str]:
    given = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    names = [name.strip() for name in given.split(",") if name.strip()]
    if "none" in names:
        return []
    first, *_ = PROTOCOLS
    protocol = (
        os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or first
    ).strip()
    return [PROTOCOLS.get(protocol, protocol) if name == "otlp" else name for name in names]
