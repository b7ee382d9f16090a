"""pytest-lsp, a client that is not ours, sees every feature over the real process, in every format."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

from tests.e2e.transcript_files import ANSWER, ASK, FILES, OUTPUT, THANKS, lines, openai

SERVER = [str(Path(sys.executable).with_name("context-sidecar")), "serve", "--stdio"]
LIMIT_S = 30
WHOLE = types.Range(types.Position(0, 0), types.Position(10_000, 0))
EVERY_FORMAT = pytest.mark.parametrize("name", FILES)
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_lsp.fixture(scope="module", loop_scope="module", config=ClientServerConfig(server_command=SERVER))
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    """A client that declares everything, on a store of its own."""
    options = {"contextEngine": {"config": {"store": {"kind": "memory"}}}}
    capabilities = pytest_lsp.client_capabilities("neovim")
    await lsp_client.initialize_session(
        types.InitializeParams(capabilities=capabilities, initialization_options=options)
    )
    yield
    await lsp_client.shutdown_session()


def opened(client: LanguageClient, name: str, text: str | None = None) -> types.TextDocumentIdentifier:
    uri = f"file:///{name.replace(' ', '-')}.jsonl"
    item = types.TextDocumentItem(uri, "json", 1, FILES[name] if text is None else text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    return types.TextDocumentIdentifier(uri)


def place_of(name: str, words: str) -> types.Position:
    rows = FILES[name].split("\n")
    line = next(number for number, row in enumerate(rows) if words in row)
    return types.Position(line, len(rows[line].partition(words)[0].encode("utf-16-le")) // 2)


async def tree(client: LanguageClient, document: types.TextDocumentIdentifier) -> list[types.DocumentSymbol]:
    found = await client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
    return [symbol for symbol in found or () if isinstance(symbol, types.DocumentSymbol)]


@EVERY_FORMAT
async def test_document_symbols_are_turns(client: LanguageClient, name: str) -> None:
    first, second = await tree(client, opened(client, name))
    assert (first.name, second.name) == (f"t1: {ASK}", f"t2: {THANKS}")
    assert [len(turn.children or ()) for turn in (first, second)] == [4, 1]


@EVERY_FORMAT
async def test_turns_fold(client: LanguageClient, name: str) -> None:
    document = opened(client, name)
    folds = await client.text_document_folding_range_async(types.FoldingRangeParams(document))
    first = (await tree(client, document))[0].range
    assert (first.start.line, first.end.line) in [(fold.start_line, fold.end_line) for fold in folds or ()]


@EVERY_FORMAT
async def test_hover_tells_of_the_message(client: LanguageClient, name: str) -> None:
    params = types.HoverParams(opened(client, name), place_of(name, "a.txt"))
    hover = await client.text_document_hover_async(params)
    assert hover is not None and isinstance(hover.contents, types.MarkupContent)
    assert "message 3 of 5" in hover.contents.value and OUTPUT in hover.contents.value


@EVERY_FORMAT
async def test_inlay_hints_tell_tokens(client: LanguageClient, name: str) -> None:
    hints = await client.text_document_inlay_hint_async(types.InlayHintParams(opened(client, name), WHOLE))
    assert len(hints or ()) == 5
    assert all(str(hint.label).endswith(" tokens") for hint in hints or ())


@EVERY_FORMAT
async def test_a_lens_stands_above_each_turn(client: LanguageClient, name: str) -> None:
    lenses = await client.text_document_code_lens_async(types.CodeLensParams(opened(client, name)))
    titles = [lens.command.title for lens in lenses or () if lens.command]
    assert [title.partition(",")[0] for title in titles] == ["t1: 4 messages", "t2: 1 message"]


@EVERY_FORMAT
async def test_the_definition_of_a_result_is_its_call(client: LanguageClient, name: str) -> None:
    document = opened(client, name)
    turn = (await tree(client, document))[0]
    _, call, *_ = turn.children or []
    params = types.DefinitionParams(document, place_of(name, "a.txt"))
    found = await client.text_document_definition_async(params)
    assert isinstance(found, list | tuple)
    assert [getattr(place, "range", None) for place in found] == [call.selection_range]
    params = types.DefinitionParams(document, place_of(name, ANSWER))
    assert not await client.text_document_definition_async(params)


@EVERY_FORMAT
async def test_semantic_tokens_colour_each_role(client: LanguageClient, name: str) -> None:
    params = types.SemanticTokensParams(opened(client, name))
    tokens = await client.text_document_semantic_tokens_full_async(params)
    assert tokens is not None and len(tokens.data) == 5 * 5


async def test_diagnostics_tell_of_a_result_without_its_call(client: LanguageClient) -> None:
    asking, _, result, *rest = openai()
    document = opened(client, "openai-chat lines", lines(asking, result, *rest))
    async with asyncio.timeout(LIMIT_S):
        while not client.diagnostics.get(document.uri):
            await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert [found.code for found in client.diagnostics[document.uri]] == ["result-without-call"]


async def test_workspace_symbols_are_stored_sessions_and_their_messages(client: LanguageClient) -> None:
    message = {"role": "user", "content": "granite and basalt"}
    params = {"sessionId": "stones", "message": message}
    await client.protocol.send_request_async("context/ingest", params)
    found = await client.workspace_symbol_async(types.WorkspaceSymbolParams("stone"))
    assert [symbol.name for symbol in found or ()] == ["stones"]
    found = await client.workspace_symbol_async(types.WorkspaceSymbolParams("basalt"))
    assert [symbol.name for symbol in found or ()] == ["user: granite and basalt"]
