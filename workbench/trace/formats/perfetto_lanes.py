"""Which process and thread the tracks of a Perfetto trace stand for."""

from typing import Any

from workbench.trace.formats.perfetto_messages import Track

Labels = dict[tuple[str, str, str], str]
_LONGEST_CHAIN = 64


class Lanes:
    """Process and thread of every track; a track of neither is a lane of its own."""

    def __init__(self, tracks: dict[int, Track], labels: Labels) -> None:
        self._tracks = tracks
        self._labels = labels
        self._known: dict[int, tuple[Any, Any, str]] = {}

    def of(self, uuid: int) -> tuple[Any, Any]:
        """What stands for process and thread."""
        return self._place(uuid)[:2]

    def process(self, uuid: int) -> str:
        """Name of the process."""
        return self._place(uuid)[2]

    def name(self, uuid: int) -> str:
        """Name of the track."""
        track = self._tracks.get(uuid)
        return "" if track is None else track.name

    def name_gpu(self, gpu: int, tid: Any) -> None:
        """Name the lane of a stream as Kineto does."""
        self._labels.setdefault(("process_labels", str(gpu), "0"), f"GPU {gpu}")
        if isinstance(tid, int):
            self._labels.setdefault(("thread_name", str(gpu), str(tid)), f"stream {tid}")

    def _place(self, uuid: int) -> tuple[Any, Any, str]:
        found = self._known.get(uuid)
        if found is None:
            found = self._known[uuid] = self._find(uuid)
        return found

    def _find(self, uuid: int) -> tuple[Any, Any, str]:
        own = self._tracks.get(uuid, Track(uuid=uuid))
        pid, process, above = own.pid, own.process, own
        for _ in range(_LONGEST_CHAIN):
            following = self._tracks.get(above.parent)
            if following is None or following is above:
                break
            above = following
            pid = above.pid if pid is None else pid
            process = above.process if process is None else process
        process = process or ""
        thread = own.tid if own.tid is not None else f"track {uuid}"
        shown = "" if pid is None else pid
        if process:
            self._labels[("process_name", str(shown), "0")] = process
        if own.name:
            self._labels[("thread_name", str(shown), str(thread))] = own.name
        return shown, thread, process
