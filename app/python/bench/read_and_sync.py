"""Compares the package with `resync` on the same work: `python read_and_sync.py [LIST [FILES]]`.

Reads a Resource List of LIST entries (50,000) from a file, and copies FILES files (2,000) of 1 KiB from a local server.
Each measurement is a process of its own; the shortest of three counts. Both packages must be installed.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List, Tuple

import abreast

RUNS = 3
READ = {
    "abreast.read": "import abreast; print(sum(1 for _ in abreast.read(sys.argv[1])))",
    "abreast.resync": "from abreast.resync import ResourceList\nfound = ResourceList()\nfound.read(sys.argv[1])\nprint(len(found))",
    "resync": "from resync import ResourceList\nfound = ResourceList()\nfound.read(sys.argv[1])\nprint(len(found))",
}
SYNC = {
    "abreast.sync": "import abreast; print(abreast.sync(sys.argv[1], sys.argv[2]).created)",
    "resync": "from resync.client import Client\nimport os\nclient = Client(hashes=['md5'])\n"
              "client.sitemap_name = sys.argv[1]\nclient.set_mappings([sys.argv[3] + '=' + sys.argv[2]])\n"
              "client.baseline_or_audit()\nprint(sum(len(files) for _, _, files in os.walk(sys.argv[2])))",
}
#: Prints the peak of memory after the work.
PEAK = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"


def measured(code: str, arguments: List[str]) -> Tuple[float, int, str]:
    """Seconds, peak of memory in KiB, and the result."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", "import sys\n" + code + PEAK, *arguments], capture_output=True, text=True)
    seconds = time.monotonic() - began
    if done.returncode:
        sys.exit(done.stderr)
    *_, result, peak = done.stdout.split()
    return seconds, int(peak), result


def show(name: str, runs: List[Tuple[float, int, str]]) -> None:
    seconds, peak, result = min(runs)
    print(f"{name:16} {seconds:8.2f} s {peak / 1024:8.0f} MiB   {result}")


def main(entries: int = 50_000, files: int = 2_000) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        path = root / "resourcelist.xml"
        abreast.ResourceList(
            {"uri": f"http://h/{number}", "lastmod": "2026-01-01T00:00:00Z", "length": number, "type": "text/plain",
             "hash": f"md5:{number:032x}"} for number in range(entries)).write(path)
        print(f"reading a Resource List of {entries} entries, {path.stat().st_size >> 20} MiB")
        for name, code in READ.items():
            show(name, [measured(code, [str(path)]) for _ in range(RUNS)])
        served = root / "papers"
        served.mkdir()
        for number in range(files):
            (served / f"{number}.txt").write_text(f"{number}\n" * (1_024 // len(f"{number}\n")))
        server = subprocess.Popen([sys.executable, "-m", "abreast", "serve", str(served), "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env={**os.environ, "ABREAST_LOG_FORMAT": "text"})
        try:
            assert server.stdout is not None
            url = next(found.group(1) for found in (re.search(r"listening on +(http://\S+)", line) for line in server.stdout) if found)
            source = abreast.Source(url)
            while source.info().count < files or source.info().state != "ready":
                time.sleep(0.1)
            print(f"copying {files} files")
            for name, code in SYNC.items():
                info = source.info()
                place_of_list = info.capability_list.replace("capabilitylist", "resourcelist")
                start = place_of_list if name == "resync" else url
                runs = []
                for number in range(RUNS):
                    copy = root / f"{name}-{number}"
                    runs.append(measured(code, [start, str(copy), info.resources.rstrip("/")]))
                show(name, runs)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
