"""What Unbroken promises: every requirement by id, and what is not proved yet.

The rules of proto/PROTOCOL.md are requirements by themselves and are read from there. ``CASES``
adds failures that people who run streaming agents have met, each turned into the behaviour that
is right. A test names what it proves: ``@pytest.mark.proves("S01", "P-SSE-3")``. Whatever no test
proves stands in ``GAPS`` or ``LATER`` with the reason; tests/architecture/test_requirements.py
fails when these tables and the tests disagree, in either direction.
"""

from __future__ import annotations

LOST_EVENTS = {
    "S01": "An event born between the last journal read and the live attach arrives once, in order.",
    "S02": "A viewer's position is its own: another viewer's progress never skips it ahead.",
    "S03": "A second connection gets the whole stream while the first one is still half open.",
    "S04": "A turn outlives its only viewer, who comes back to what was missed and then the tail.",
    "S05": "Events that the runtime emits while one edge replaces another are not lost.",
    "S06": "A viewer who comes back after the end gets the rest, the terminal event and a close.",
    "S07": "Positions belong to the session and not to the connection.",
    "S08": "What a client chose for its stream still holds after a resume by cursor.",
    "S09": "One failed append is repeated: its events are neither lost nor acted on before.",
    "S11": "A cursor that retention has overtaken gets a reset that names the first seq kept.",
    "S12": "A reader who stalled until everything expired is told so, and does not wait for ever.",
    "S13": "An unknown, foreign, malformed or future cursor is refused or reset, never guessed.",
    "S14": "A tool that stays silent for long does not cost the history before its silence.",
    "S15": "A turn can be resumed for as long as it runs, however long that is.",
    "S16": "The client sends the cursor it was given.",
    "S17": "The client moves its cursor only past events that it has processed.",
    "S18": "Events of one millisecond have distinct, strictly rising ids.",
    "S19": "An epoch in the cursor makes an open page accept a numbering that starts again.",
    "S21": "A resume never starts inside an event.",
    "S23": "A reader at the tail gets the last event before the close.",
}

WRONG_TEXT = {
    "S25": "A resume never shows a message twice, half shown and half stored though it was.",
    "S26": "A resume never shows the previous turn's answer as the running one's.",
    "S27": "Buffered events are applied once, however often a resume is offered.",
    "S29": "A long replay comes in pages and leaves the client's live state intact.",
    "S30": "The cursor can travel in the query, for a client that makes its connection anew.",
    "S31": "Deltas and the message that restates them show the text and its tool calls once.",
    "S32": "A model call tried again takes the failed try's text and tool arguments back.",
    "S34": "A reconnect while a turn starts does not lose its first message.",
}

TOOLS = {
    "S35": "A tool whose result was still in memory at a crash is not run again by itself.",
    "S36": "A crash in a batch of calls does not run those again that had their effect.",
    "S38": "The result of one long call does not start the others again.",
    "S39": "A stream cut inside tool arguments never runs the tool, and the step is made anew.",
    "S40": "A call of unknown outcome is reported as unknown and never run again by itself.",
    "S41": "A writer that wakes up after its lease was taken has everything it tries refused.",
    "S42": "Ownership is a token of one acquisition: a name used again does not give it back.",
    "S44": "Three tabs that load one unanswered session start at most one run.",
    "S46": "Interruptions by deploys use no budget up while the turn makes progress.",
    "S47": "Waiting for a person costs no budget and survives a deploy.",
    "S48": "A parent that recovers finds its running child again by a stable id.",
}

STOPPING = {
    "S49": "Stop works on a resumed stream: generation ends at the server.",
    "S50": "A refresh during a tool leaves the tool to complete.",
    "S51": "A turn told to end when its viewers leave reaches a terminal state.",
    "S52": "A connection cut on the way is not a stop.",
    "S54": "A stopped turn is shown as stopped after a reload.",
    "S55": "Text shown before a stop stays in the session.",
}

ENDINGS = {
    "S57": "Only a terminal event means done; a tidy end of the response does not.",
    "S58": "The terminal event and the close follow the last event at once.",
    "S59": "A runtime that dies in a call is reported as lost, not by a later timeout.",
    "S60": "A session whose producer is gone reaches an honest state.",
    "S62": "A second tab gets live events now, not at the end.",
    "S65": "A turn that may run alone never waits for an absent reader.",
}

REPLAY = {
    "T31": "An event between the read of the backlog and the live attach is delivered once.",
    "T32": "An event journaled before it is live is not delivered twice across a reconnect.",
    "T33": "Two tabs on one turn both get every event.",
    "T35": "A cursor older than retention gets an explicit reset with the first seq kept.",
    "T36": "A bad cursor gets a reset or a refusal, and never another session's events.",
    "T37": "A store lost or restored voids older cursors, unless a lost epoch is given out anew.",
    "T38": "A reconnect to another edge replays from the shared journal.",
    "T39": "Who may read is asked again for every replay.",
    "T40": "An id with a line break or a NUL is refused before it is written.",
    "T41": "Every text survives the trip: CR, CRLF, U+2028 and the empty string.",
    "T42": "The cursor is read from the header, else from the query parameter.",
    "T44": "A page's snapshot hands out the cursor from which its stream loses nothing.",
}

NETWORK = {
    "S66": "A silent tool does not let an idle proxy cut the stream.",
    "S67": "No compression holds events or pings back.",
    "S68": "Events are visible as they happen behind an ingress that buffers uploads.",
    "S69": "The edge ends a stream resumably before the platform cuts it.",
    "S70": "The client opens a stream again that a rollout's 5xx closed.",
    "S71": "A seventh tab over HTTP/1.1 still loads.",
    "S73": "The client's parser takes every line ending, split bytes and split frames.",
    "S75": "A reader that never reads costs a bounded number of bytes.",
    "S77": "A reader that is too slow is closed without the terminal event, and resumes.",
    "S78": "One huge event is refused by name and size, and the stream goes on.",
    "S79": "At SIGTERM streams rotate, writers hand over, and the process ends in time.",
    "S81": "A cursor of another session is refused.",
    "S82": "An expired token is not tried for ever.",
    "S85": "Ten thousand cancelled streams leave no memory and no socket behind.",
    "S87": "A burst of deltas does not contend for one document, nor outgrow a record.",
}

SERVER = {
    "T01": "A stream that fails inside is ended by an error event at once.",
    "T02": "A stream outlives the framework's response timeout.",
    "T03": "A client that opens no window is dropped within its memory budget.",
    "T04": "A suspended client is noticed and dropped, and the turn goes on.",
    "T06": "A long replay never blocks the loop, and stops with its client.",
    "T07": "A connection carries a thousand calls beside its stream.",
    "T08": "A read timeout does not end an idle stream.",
    "T09": "SIGTERM with an open stream ends the process within the drain deadline.",
    "T10": "A stream's clean-up runs before the clients it needs are closed.",
    "T11": "A client that leaves leaves no task behind.",
    "T12": "Clean-up runs when the client leaves during a blocked write.",
    "T14": "A half-open connection gives its place back.",
    "T15": "Headers and a comment arrive at once while the runtime is still silent.",
    "T16": "A buffering proxy is told not to hold a heartbeat back.",
    "T17": "An event stream is never compressed.",
    "T18": "Pings come at less than half of a usual idle timeout.",
    "T19": "A stream cut by the platform's limit resumes at any instance.",
}

UPSTREAM = {
    "T20": "Leaving a runtime's stream early cancels the call there.",
    "T21": "Waiting for a silent tool with a deadline does not break the call.",
    "T23": "The client's keep-alives never exceed what the server allows.",
    "T24": "A peer that vanished without a word is noticed.",
    "T26": "A failure in mid stream reaches the browser with its code and whether to retry.",
    "T27": "A runtime stream that ends without a terminal event is not taken for its end.",
    "T28": "Whole numbers above 2^53 reach the browser exactly.",
    "T29": "The channel is made in the process and loop that use it.",
    "T30": "A slow browser leaves the edge's read-ahead bounded.",
}

RECONNECTS = {
    "T45": "A draining edge answers a stream with a retry and an end, not with a 5xx.",
    "T46": "A deploy spreads its clients' reconnects.",
    "T47": "After the end a native EventSource stops coming back.",
    "T48": "Hiding and showing a tab starts no second run.",
    "T49": "A client comes back after a tidy end without a terminal event.",
    "T50": "A token that expires in mid stream ends it with a reason.",
    "T52": "A client that needs events to see life can ask for pings as events.",
}

CASES = {
    **LOST_EVENTS, **WRONG_TEXT, **TOOLS, **STOPPING, **ENDINGS, **REPLAY,
    **NETWORK, **SERVER, **UPSTREAM, **RECONNECTS,
}  # fmt: skip

_LOAD = "Waits for the load tests, which bound memory, latency and reconnects."

GAPS: dict[str, str] = {
    "S08": "What a stream is asked for stands in its address, which every reconnect repeats: a server "
    "has nothing to remember, until there are sub-agents whose events one may leave out.",
    "S48": "The runtime starts no agent for an agent: whatever one calls is a tool call with an id of "
    "its own, for which S36 to S40 hold; there is no child that could outlive its parent.",
    "T39": "Every stream asks anew who is there and whose session it is (P-RES-3 proves that); a right "
    "to read that is narrower than owning the session, and could be narrowed, does not exist.",
}
"""Requirement id -> why no test proves it yet."""

LATER: dict[str, str] = {
    **dict.fromkeys(("T03", "T07"), _LOAD),
    "T19": "Waits for a deployment: only the platform itself cuts a request at its limit.",
}
"""Case id -> the work that it waits for."""
