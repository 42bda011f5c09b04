"""The example notebook, executed against a server."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

from served import ServedCase

NOTEBOOK = Path(__file__).parent.parent / "examples" / "notebook.ipynb"
#: The packages of the environment that has nbclient, ipykernel and pandas.
PACKAGES = os.environ.get("ABREAST_TEST_PACKAGES")

EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=120, kernel_name="python3").execute()
print(sum(bool(cell.get("outputs")) for cell in book.cells))
"""


class NotebookTests(ServedCase):
    @unittest.skipUnless(PACKAGES, "ABREAST_TEST_PACKAGES is not set")
    def test_the_notebook_runs(self) -> None:
        assert PACKAGES is not None
        self.server.write("report.csv", "a,b\n")
        environment = {**os.environ, "PYTHONPATH": PACKAGES, "ABREAST_EXAMPLE_URL": self.server.url,
                       "IPYTHONDIR": str(self.server.root / "ipython"), "JUPYTER_NO_CONFIG": "1",
                       "JUPYTER_PLATFORM_DIRS": "1", "JUPYTER_DATA_DIR": str(self.server.root / "jupyter")}
        done = subprocess.run([sys.executable, "-c", EXECUTE, str(NOTEBOOK)], capture_output=True, text=True,
                              env=environment, cwd=self.server.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), "6")


if __name__ == "__main__":
    unittest.main()
