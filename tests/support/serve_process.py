"""`omni serve` as a user runs it: a process with a terminal or without, its address, its output, what it leaves."""

import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.process_census import processes_with
from tests.support.waiting import settled

MARK = "OMNI_TEST_RUN"
OMNI = Path(sys.executable).with_name("omni")
ADDRESS = re.compile(r"serves at (http://\S+)/v1")
START_TIMEOUT_S = 180


class Serve:
    def __init__(self, arguments: tuple[str, ...], runtime_dir: Path, folder: Path, terminal: int | None) -> None:
        self.runtime_dir = runtime_dir
        self.stderr = folder / "stderr.log"
        self._mark = secrets.token_hex(8)
        with self.stderr.open("wb") as log:
            self.process = subprocess.Popen(
                [OMNI, "serve", *arguments],
                env={**os.environ, "XDG_RUNTIME_DIR": str(runtime_dir), MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log if terminal is None else terminal,
                text=True,
            )
        self._stdout = ""
        self._served = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def url(self) -> str:
        """The printed address, once it serves; fails with the log if it ends before."""
        self._served.wait(START_TIMEOUT_S)
        found = ADDRESS.search(self._stdout)
        assert found, f"omni serve did not serve (exit code {self.process.poll()}):\n{self.log()}"
        return found[1]

    def printed(self) -> str:
        return self._stdout

    def log(self) -> str:
        return self.stderr.read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout_s: float = 60) -> int:
        return self.process.wait(timeout_s)

    def processes(self) -> set[int]:
        return processes_with(MARK, self._mark)

    def remains(self, within_s: float = 5) -> set[int]:
        """Processes of this run that are still there when the time is up."""
        return settled(self.processes, lambda left: not left, within_s)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.remains() == set()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._stdout += line
            if "Ctrl-C" in line:
                self._served.set()
        self._served.set()


@contextmanager
def serving(*arguments: str, folder: Path, terminal: int | None = None) -> Iterator[Serve]:
    """Ended with all its processes when the block ends. The runtime directory has a path short enough for sockets."""
    with TemporaryDirectory(prefix="run-", ignore_cleanup_errors=True) as runtime_dir:
        serve = Serve(("--port", "0", *arguments), Path(runtime_dir), folder, terminal)
        try:
            yield serve
        finally:
            serve.end()
