"""Requests and calls of engines reach a collector of OpenTelemetry, without a word of any message."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidecar.origin import install_command
from tests.e2e.sidecar_host import LIMIT_S, Host
from tests.e2e.talk import Talk, turns
from tests.engine_gallery import configured
from tests.loopback_server import LoopbackServer

ENABLED = {"config": {"telemetry": {"enabled": True}}}


class Collector(LoopbackServer):
    """Takes what is exported on the loopback interface."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        self.bodies = b""

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """See `LoopbackServer`."""
        router.add_post("/v1/traces", self._traces)
        router.add_post("/v1/metrics", self._metrics)

    @property
    def environment(self) -> dict[str, str]:
        """Where to export to, at once."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_METRIC_EXPORT_INTERVAL": "100",
            "NO_PROXY": "127.0.0.1",
        }

    def until(self, condition: Callable[[], bool], complaint: str) -> None:
        """Wait for what the sidecar exports."""
        deadline = time.monotonic() + LIMIT_S
        while not condition():
            assert time.monotonic() < deadline, f"{complaint}: {[span.name for span in self.spans]}"
            threading.Event().wait(0.05)

    def span(self, name: str) -> Any:
        self.until(lambda: any(span.name == name for span in self.spans), f"there is no span {name}")
        return next(span for span in self.spans if span.name == name)

    async def _traces(self, request: web.Request) -> web.Response:
        exported = ExportTraceServiceRequest.FromString(await self._body(request))
        scopes = (scope for resource in exported.resource_spans for scope in resource.scope_spans)
        self.spans += (span for scope in scopes for span in scope.spans)
        return web.Response()

    async def _metrics(self, request: web.Request) -> web.Response:
        exported = ExportMetricsServiceRequest.FromString(await self._body(request))
        scopes = (scope for resource in exported.resource_metrics for scope in resource.scope_metrics)
        self.metrics += (metric for scope in scopes for metric in scope.metrics)
        return web.Response()

    async def _body(self, request: web.Request) -> bytes:
        body = await request.read()
        self.bodies += body
        return body


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_requests_and_calls_of_engines_are_spans_of_the_hosts_trace(
    collector: Collector, tmp_path: Path
) -> None:
    with configured(tmp_path, "process", environment=collector.environment, **ENABLED) as host:
        host.call("context/ingestBatch", sessionId="s", messages=turns(Talk("openai"), 1))
        parent = f"00-{'ab' * 16}-{'cd' * 8}-01"
        id = host.send("context/assemble", sessionId="s", _meta={"traceparent": parent})
        tokens = host.wait(id)["estimatedTokens"]
        request, called = collector.span("context/assemble"), collector.span("gallery assemble")
        assert request.trace_id == called.trace_id == bytes.fromhex("ab" * 16)
        assert request.parent_span_id == bytes.fromhex("cd" * 8) and called.parent_span_id == request.span_id
        assert attributes(request) == {
            "rpc.system": "jsonrpc",
            "rpc.method": "context/assemble",
            "rpc.jsonrpc.request_id": str(id),
            "context_sidecar.session_id": "s",
            "context_sidecar.tokens": tokens,
            "context_sidecar.epoch": 1,
        }
        assert request.start_time_unix_nano <= called.start_time_unix_nano
        assert called.end_time_unix_nano <= request.end_time_unix_nano


def test_failures_are_told_by_their_codes_and_nothing_of_a_message(
    collector: Collector, tmp_path: Path
) -> None:
    messages = [Talk("openai").user("What of chrysanthemums?")]
    with configured(tmp_path, "inline", environment=collector.environment, **ENABLED) as host:
        host.refusal("context/assemble", sessionId="bad raises 1", messages=messages)
        host.call("context/commitTurn", sessionId="s", messages=messages, advancementKey="k")
        request, called = collector.span("context/assemble"), collector.span("gallery assemble")
        collector.span("context/commitTurn")
        assert attributes(request)["rpc.jsonrpc.error_code"] == 1005
        assert request.status.code == called.status.code == 2
        assert not request.status.message and not called.status.message
        host.stop()
    assert b"chrysanthemum" not in collector.bodies and b"no such thing" not in collector.bodies


def test_calls_errors_times_and_tokens_are_counted(collector: Collector, tmp_path: Path) -> None:
    with configured(tmp_path, "inline", environment=collector.environment, **ENABLED) as host:
        for _ in range(3):
            host.call("context/assemble", sessionId="s", messages=turns(Talk("openai"), 1))
        host.refusal("context/assemble", sessionId="nobody")
        host.stop()
    newest = {metric.name: metric for metric in collector.metrics}
    counted = {
        point.attributes[0].value.string_value: point.as_int
        for point in newest["context_sidecar.requests"].sum.data_points
    }
    assert counted["context/assemble"] == 4
    assert newest["context_sidecar.errors"].sum.data_points[0].as_int == 1
    assert newest["context_sidecar.answer.tokens"].histogram.data_points[0].count == 3
    assert newest["context_sidecar.request.duration"].histogram.data_points
    assert newest["context_sidecar.engine.call.duration"].histogram.data_points[0].count == 3


@pytest.mark.parametrize("listens", [False, True])
def test_a_collector_that_does_not_answer_holds_up_neither_answers_nor_the_end(
    listens: bool, tmp_path: Path
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        nobody = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "600",
            "NO_PROXY": "127.0.0.1",
        }
        with Host(tmp_path / "state", environment=nobody, **ENABLED) as host:
            host.call("context/assemble", sessionId="s", messages=turns(Talk("openai"), 1))
            host.stop()


def test_without_the_extra_the_log_and_the_doctor_say_what_to_install(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.mkdir()
    (missing / "opentelemetry.py").write_text("raise ImportError('not installed')\n")
    path = {"PYTHONPATH": f"{missing}:{Path(__file__).parents[2]}"}
    with Host(tmp_path / "state", environment=path, **ENABLED) as host:
        host.call("context/assemble", sessionId="s", messages=turns(Talk("openai"), 1))
        check = next(c for c in host.call("engine/doctor")["checks"] if c["name"] == "telemetry")
        host.stop()
        assert not check["ok"] and install_command("otel") in check["fix"]
        assert install_command("otel") in host.log.read_text()
