"""A tap between connections and their transports: frames go to the trace, and faults that were ordered befall them."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from delosmq.server.layers import Layer, Tap, Upper
from delosmq.sessions.host import Peer
from delosmq.testing.dialogue import DIALOGUES, CutFrame, Dialogue
from delosmq.testing.frame_faults import CUT_AFTER, CUT_BEFORE, STOPPED, SURPLUS, TWICE, UNHARMED, FrameFault
from delosmq.testing.frame_recorder import FrameRecorder
from delosmq.testing.trace import Trace

_READ_BYTES: Final = 64 * 1024


class FrameTap(Tap):
    """The tap of one broker under test.

    Attributes:
        faults: that have not happened yet. The test's thread adds and clears, the broker's removes: no other list takes
            its place, or what the other thread does is lost.
        recorder: takes down what passes; None for none.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.faults: list[FrameFault] = []
        self.recorder: FrameRecorder | None = None
        self.buffer = memoryview(bytearray(_READ_BYTES))
        self._numbers = itertools.count(1)

    def reset(self) -> None:
        """Begins anew: nothing is ordered, and the next connection is number 1."""
        self.faults.clear()
        self._numbers = itertools.count(1)

    def open(self, upper: Upper, transport: asyncio.Transport, peer: Peer, protocol: str) -> Layer:
        layer = TapLayer(upper, self, next(self._numbers), DIALOGUES[protocol]())
        self.trace.note(f"{layer.number} connected by {protocol} from {peer.name}")
        recorder = self.recorder  # the test's thread takes it away
        if recorder is not None:
            recorder.begin(layer.number)
        layer.insert(transport)
        return layer

    def fate_of(self, cut: CutFrame) -> str:
        """What becomes of a frame. When it is meant by several faults, that is up to the one ordered first."""
        happened = [fault for fault in tuple(self.faults) if fault.befalls(cut)]
        for fault in happened:
            with suppress(ValueError):  # taken back this moment
                self.faults.remove(fault)
        return happened[0].fate if happened else UNHARMED


class TapLayer(Layer):
    """The tap in one connection.

    While no fault is ordered bytes pass as they come; else a frame passes when it is complete.
    """

    def __init__(self, upper: Upper, tap: FrameTap, number: int, dialogue: Dialogue) -> None:
        super().__init__(upper, tap.buffer)
        self.number = number
        self._tap = tap
        self._dialogue = dialogue
        self._passed = {True: 0, False: 0}
        """How many bytes have passed of a frame that is not complete, by whether it is the client's."""
        self._twice: dict[str, int] = {}
        """What was delivered twice, and how many acknowledgements of it are to come."""
        self._is_cut = False

    def receive(self, chunk: bytes) -> None:
        self._cross(chunk, self._upper.receive, by_client=True)

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        if self._lower is not None:
            self._cross(bytes(chunk), self._lower.write, by_client=False)

    def write_eof(self) -> None:
        if self._lower is not None:
            self._lower.write_eof()

    def close(self) -> None:
        self._closing = True
        if self._lower is not None:
            self._lower.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._tap.trace.note(f"{self.number} disconnected")
        recorder = self._tap.recorder
        if recorder is not None:
            recorder.end(self.number)
        super().connection_lost(exc)

    def _cross(self, chunk: bytes, forward: Callable[[bytes], None], *, by_client: bool) -> None:
        if self._is_cut:
            return
        pending = (self._dialogue.by_client if by_client else self._dialogue.by_broker).pending
        passed = self._passed[by_client]
        in_time = passed == len(pending)
        cuts = self._dialogue.cut(chunk, by_client=by_client)
        if self._tap.faults or self._twice:
            self._cross_in_frames(cuts, forward, by_client=by_client)
            return
        for cut in cuts:
            self._note(cut, UNHARMED, by_client=by_client)
        self._passed[by_client] = len(pending)
        forward(chunk if in_time else b"".join([*(cut.raw for cut in cuts), bytes(pending)])[passed:])

    def _cross_in_frames(self, cuts: list[CutFrame], forward: Callable[[bytes], None], *, by_client: bool) -> None:
        ready = b""
        for cut in cuts:
            passed = self._passed[by_client]
            self._passed[by_client] = 0
            # A frame that has passed in part can't be stopped any more.
            fate = UNHARMED if passed else self._fate_of(cut)
            self._note(cut, fate, by_client=by_client)
            if fate not in STOPPED:
                ready += cut.raw[passed:] * (2 if fate == TWICE else 1)
            if fate == SURPLUS:
                self._confirm(cut)
            elif fate in {CUT_BEFORE, CUT_AFTER}:
                self._cut_soon(by_client=by_client)
                break
        if ready or by_client:  # whatever is held back, the client is heard of
            forward(ready)

    def _fate_of(self, cut: CutFrame) -> str:
        acknowledged = self._dialogue.acknowledged(cut) if self._twice else ""
        if acknowledged in self._twice:
            self._twice[acknowledged] -= 1
            if not self._twice[acknowledged]:
                del self._twice[acknowledged]
                return SURPLUS
        fate = self._tap.fate_of(cut)
        if fate == TWICE:
            self._twice[self._dialogue.delivered(cut)] = 2
        return fate

    def _confirm(self, cut: CutFrame) -> None:
        answer = self._dialogue.confirmation(cut)
        if answer and self._lower is not None:
            self._lower.write(answer)

    def _note(self, cut: CutFrame, fate: str, *, by_client: bool) -> None:
        if cut.tells:
            self._tap.trace.note_frame(self.number, cut, by_client=by_client, fate=fate)
            recorder = self._tap.recorder
            if recorder is not None and fate not in STOPPED:
                recorder.note(self.number, self._dialogue, cut, by_client=by_client)

    def _cut_soon(self, *, by_client: bool) -> None:
        """Nothing passes any more. What passed before still leaves, as of a network that fails now."""
        self._is_cut = True
        lower = self._lower
        if lower is not None:
            asyncio.get_running_loop().call_soon(lower.abort if by_client else lower.close)
