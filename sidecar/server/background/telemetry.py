"""Spans and metrics of requests and calls of engines, sent by OTLP over HTTP."""

from __future__ import annotations

import asyncio
import os
import threading
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Raw, Struct, field
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sidecar import __version__
from sidecar.protocol.assemble import AssembleContextResult
from sidecar.rpc.errors import RpcError
from sidecar.rpc.router import serving

if TYPE_CHECKING:
    from sidecar.rpc.router import Call


NAME = "context-sidecar"
LAST_EXPORT_S = 1.5
"""How long the end of the process may wait until what is left has been sent."""
LONGEST_NAME = 1024
_NANO = 1_000_000_000


class _Carrier(Struct):
    traceparent: str = ""
    tracestate: str = ""


class _Meta(Struct):
    meta: _Carrier = field(name="_meta", default_factory=_Carrier)


_decode = msgspec.json.Decoder(_Meta).decode


class Telemetry:
    """Records what has come to its end; all waiting is done in threads of the library."""

    def __init__(self) -> None:
        own = {"service.version": __version__}
        if not os.environ.get("OTEL_SERVICE_NAME"):
            own["service.name"] = NAME
        resource = Resource.create(own)  # pyright: ignore[reportArgumentType]
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._spans.get_tracer(NAME, __version__)
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        self._metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        meter = self._metrics.get_meter(NAME, __version__)
        self._requests = meter.create_counter("context_sidecar.requests", "{request}")
        self._errors = meter.create_counter("context_sidecar.errors", "{request}")
        self._durations = meter.create_histogram("context_sidecar.request.duration", "ms")
        self._tokens = meter.create_histogram("context_sidecar.answer.tokens", "{token}")
        self._engine_calls = meter.create_histogram("context_sidecar.engine.call.duration", "ms")
        self._engine_errors = meter.create_counter("context_sidecar.engine.errors", "{call}")

    def begun(self, call: Call, params: Raw) -> None:
        """Note which trace of the host the request belongs to, where it says so."""
        raw = bytes(params)
        if b'"traceparent"' in raw:
            try:
                meta = _decode(raw).meta
            except msgspec.DecodeError:
                return
            if meta.traceparent:
                carrier = {"traceparent": meta.traceparent, "tracestate": meta.tracestate}
                call.note = TraceContextTextMapPropagator().extract(carrier, Context())

    def settled(self, call: Call, outcome: object, seconds: float) -> None:
        """Take in a request that is answered."""
        span, by_method = self._span(call, seconds), {"rpc.method": call.method}
        self._requests.add(1, by_method)
        self._durations.record(seconds * 1000, by_method)
        if isinstance(outcome, RpcError):
            self._errors.add(1, {**by_method, "rpc.jsonrpc.error_code": outcome.code})
            span.set_attribute("rpc.jsonrpc.error_code", outcome.code)
            span.set_status(Status(StatusCode.ERROR))
        elif isinstance(outcome, AssembleContextResult):
            self._tokens.record(outcome.estimated_tokens, by_method)
            span.set_attribute("context_sidecar.tokens", outcome.estimated_tokens)
            span.set_attribute("context_sidecar.epoch", outcome.context_epoch)
        span.end()

    def refused(self, method: str, code: int) -> None:
        """Take in a request that never began."""
        self._errors.add(1, {"rpc.method": method[:100], "rpc.jsonrpc.error_code": code})

    def engine_called(self, engine: str, method: str, session_id: str, seconds: float, failed: bool) -> None:
        """Take in a call of an engine that has just come to its end."""
        call, now = serving.get(), time_ns()
        within = None if call is None else trace.set_span_in_context(self._span(call, 0.0), Context())
        about = {"context_sidecar.engine": engine, "rpc.method": method}
        attributes = {**about, "context_sidecar.session_id": session_id[:LONGEST_NAME]}
        span = self._tracer.start_span(
            f"{engine} {method.rpartition('/')[2]}",
            within or Context(),
            attributes=attributes,
            start_time=now - int(seconds * _NANO),
        )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
            self._engine_errors.add(1, about)
        span.end(now)
        self._engine_calls.record(seconds * 1000, about)

    async def close(self) -> None:
        """Send what is left, for a moment; what the collector does not take by then is lost."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def send() -> None:
            self._spans.shutdown()
            self._metrics.shutdown(LAST_EXPORT_S * 1000)
            if not loop.is_closed():
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=send, name="telemetry-end", daemon=True).start()
        try:
            await asyncio.wait_for(done.wait(), LAST_EXPORT_S)
        except TimeoutError:
            return

    def _span(self, call: Call, seconds: float) -> Span:
        """The span of a request, begun when it was read; made when it is first needed."""
        note = call.note
        if isinstance(note, Span):
            return note
        session_id = getattr(call.params, "session_id", None)
        attributes: dict[str, str] = {
            "rpc.system": "jsonrpc",
            "rpc.method": call.method,
            "rpc.jsonrpc.request_id": str(call.id),
        }
        if isinstance(session_id, str):
            attributes["context_sidecar.session_id"] = session_id[:LONGEST_NAME]
        began = _began(call, seconds)
        context = cast("Context | None", note) or Context()
        span = self._tracer.start_span(
            call.method, context, SpanKind.SERVER, attributes=attributes, start_time=began
        )
        call.note = span
        return span


def _began(call: Call, seconds: float) -> int:
    """When a request was read, in nanoseconds since 1970; it is over where `seconds` are told."""
    return time_ns() - int((seconds or perf_counter() - call.began) * _NANO)
