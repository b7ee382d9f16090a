"""Makes a conversation of OpenClaw long: appends turns to its only session, as OpenClaw stores them.

Usage: python seed.py DATABASE MESSAGES; the gateway must not run.
"""

import json
import sys
import time
import uuid

import apsw

WORDS = "granite basalt marble gneiss schist slate chalk flint"


def main(path: str, count: int) -> None:
    """Appends `count` messages, questions and answers in turn."""
    database = apsw.Connection(path)
    session, seq, parent, active, messages = database.execute(
        "SELECT session_id, indexed_seq, leaf_event_id, active_event_count, active_message_count"
        " FROM session_transcript_index_state"
    ).fetchone()
    now = int(time.time() * 1000) - count * 1000
    with database:
        for number in range(count):
            seq, now, event = seq + 1, now + 1000, str(uuid.uuid4())
            message = answer(number, now) if number % 2 else question(number, now)
            key = message.get("idempotencyKey")
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now / 1000))
            place = {"type": "message", "id": event, "parentId": parent, "timestamp": stamp}
            body = {**place, "message": message}
            database.execute(
                "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, ?, ?, ?)",
                (session, seq, json.dumps(body, separators=(",", ":")), now),
            )
            database.execute(
                "INSERT INTO transcript_event_identities VALUES (?, ?, ?, 'message', ?, ?, ?)",
                (session, event, seq, parent, key, now),
            )
            database.execute(
                "INSERT INTO session_transcript_active_events VALUES (?, ?, ?, ?, 1)",
                (session, active + number, seq, messages + number),
            )
            parent = event
        database.execute(
            "UPDATE session_transcript_index_state SET indexed_seq = ?, leaf_event_id = ?,"
            " active_event_count = ?, active_message_count = ?, updated_at = ?",
            (seq, parent, active + count, messages + count, now),
        )


def question(number: int, now: int) -> dict[str, object]:
    """A message of the user."""
    text = f"Question {number}: what is to be known of {WORDS}?"
    return {"role": "user", "content": text, "timestamp": now, "idempotencyKey": f"{uuid.uuid4()}:user"}


def answer(number: int, now: int) -> dict[str, object]:
    """A message of the assistant."""
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    usage = {"input": 100, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 105, "cost": cost}
    text = f"Answer {number}: {WORDS} are stones, and there is more to say."
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "api": "openai-completions",
        "provider": "scripted",
        "model": "scripted-1",
        "usage": usage,
        "stopReason": "stop",
        "timestamp": now,
        "responseId": f"seeded-{number}",
    }


main(sys.argv[1], int(sys.argv[2]))
