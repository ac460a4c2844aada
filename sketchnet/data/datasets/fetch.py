"""Download the files of a data set: checked, never half there, with progress."""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sketchnet.errors import StorageError
from sketchnet.storage import replacing, writing

_STEP = 1 << 18
_TIMEOUT = 60  # seconds without a byte
_NETWORK = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError)
# First bytes of the published formats: they tell a file from the error page of a web server.
_BEGINNINGS = {".gz": b"\x1f\x8b", ".tgz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0", ".mat": b"MATLAB"}


@dataclass(frozen=True)
class Remote:
    """A published file. `urls` are tried in turn, the publisher's first. `checksum` is `algorithm:hexadecimal digits`.

    Where nobody published a checksum there is none here; the first download's sha256 is then kept beside the file, and
    later downloads must agree with it.
    """

    name: str
    urls: tuple[str, ...]
    checksum: str | None = None


def download(remote: Remote, folder: Path, progress: Callable[[int, int], None] | None = None) -> Path:
    """Fetch a file into a folder and return its path. `progress(done, total)` is called with bytes.

    Without `progress`, a terminal shows one line; anything else shows nothing.
    """
    target, failures = folder / remote.name, []
    with writing(target):
        folder.mkdir(parents=True, exist_ok=True)
    for url in remote.urls:
        try:
            with replacing(target) as part:
                checksum = _transfer(remote, url, part, progress or _terminal_progress(remote.name))
                _check(remote, part, target, checksum)
                if remote.checksum is None:
                    with replacing(_record(target)) as record:
                        record.write_text(f"{checksum.partition(':')[2]}  {remote.name}\n")
            return target
        except _BadDownload as error:
            failures.append(f"{url}: {error}")
    raise StorageError("; ".join(failures))


class _BadDownload(Exception):
    """Nothing arrived, or not what was published."""


def _transfer(remote: Remote, url: str, part: Path, progress: Callable[[int, int], None]) -> str:
    """Write what the server sends, and return its checksum."""
    try:
        return _receive(remote, url, part, progress)
    except urllib.error.HTTPError as error:
        error.close()
        raise _BadDownload(error) from None
    except _NETWORK as error:
        raise _BadDownload(getattr(error, "reason", None) or error) from None


def _receive(remote: Remote, url: str, part: Path, progress: Callable[[int, int], None]) -> str:
    algorithm = remote.checksum.partition(":")[0] if remote.checksum else "sha256"
    digest = hashlib.new(algorithm, usedforsecurity=False)
    request = urllib.request.Request(url, headers={"User-Agent": "sketchnet"})
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response, part.open("wb") as file:
        total, done = int(response.headers.get("Content-Length") or 0), 0
        while piece := response.read(_STEP):
            file.write(piece)
            digest.update(piece)
            done += len(piece)
            progress(done, max(total, done))
        file.flush()
        os.fsync(file.fileno())
    if done < total:
        raise _BadDownload(f"the connection ended after {done:,} of {total:,} bytes")
    return f"{algorithm}:{digest.hexdigest()}"


def _check(remote: Remote, part: Path, target: Path, checksum: str) -> None:
    expected, source, record = remote.checksum, "published", _record(target)
    if expected is None and record.exists():
        expected, source = f"sha256:{record.read_text().split()[0]}", f"kept from the first download in {record}"
    if expected is not None and checksum != expected:
        raise _BadDownload(f"checksum {checksum} differs from {expected}, {source}")
    beginning = _BEGINNINGS.get(target.suffix, b"")
    with part.open("rb") as file:
        given = file.read(len(beginning))
    if given != beginning:
        raise _BadDownload(f"it begins with {given!r}; a file of this kind begins with {beginning!r}")


def _record(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _terminal_progress(name: str) -> Callable[[int, int], None]:
    if not sys.stderr.isatty():
        return lambda done, total: None

    shown = -1

    def show(done: int, total: int) -> None:
        nonlocal shown
        if done * 100 // total > shown:
            shown = done * 100 // total
            end = "\n" if done == total else ""
            print(f"\r{name}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB ({shown} %)", end=end, file=sys.stderr)

    return show
