"""Tests of rows of tables as entries: pandas and numpy, with values as they come from a table."""

import os
import sys
import tempfile
import unittest
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Dict, List, Tuple

import abreast
from served import ServedCase

#: The packages of the environment that has pandas and numpy.
PACKAGES = os.environ.get("ABREAST_TEST_PACKAGES")
HASH = "md5:1584abdf8ebdc9802ac0c6a7402c03b6"


def written(*entries: Any) -> List[Dict[str, Any]]:
    data = abreast.ResourceList(list(entries), at="2026-01-01T00:00:00Z").to_bytes()
    return [entry.as_dict() for entry in abreast.read(data).entries()]


class RowTests(unittest.TestCase):
    def refusal(self, entry: Any) -> str:
        with self.assertRaises(abreast.UsageError) as raised:
            written({"uri": "http://h/1"}, entry)
        self.assertEqual(raised.exception.name, "entry")
        return str(raised.exception)

    def test_missing_values_are_left_out(self) -> None:
        row = {"uri": "http://h/a", "lastmod": None, "length": float("nan"), "hash": None, "type": float("nan"),
               "links": None, "title": Decimal("nan")}
        self.assertEqual(written(row), [{"uri": "http://h/a"}])
        self.assertIn("entry 2: `uri` is missing", self.refusal({"uri": float("nan"), "length": 3}))

    def test_values_are_converted(self) -> None:
        zone = timezone(timedelta(hours=2))
        row = {"uri": "http://h/a", "lastmod": datetime(2026, 1, 2, 3, tzinfo=zone), "length": 5.0,
               "path": Path("/a") / "b"}
        self.assertEqual(written(row), [{"uri": "http://h/a", "lastmod": "2026-01-02T01:00:00Z", "length": 5,
                                         "path": "/a/b"}])
        day = abreast.ResourceList([], at=date(2026, 1, 2)).to_bytes()
        self.assertEqual(abreast.read(day).at, "2026-01-02T00:00:00Z")
        self.assertEqual(written({"uri": "http://h/a", "lastmod": date(2026, 1, 2)})[0]["lastmod"],
                         "2026-01-02T00:00:00Z")
        links = [{"rel": "via", "href": "http://h/b", "length": float("nan"), "modified": date(2026, 1, 2)}]
        self.assertEqual(written({"uri": "http://h/a", "links": links})[0]["links"],
                         [{"rel": "via", "href": "http://h/b", "modified": "2026-01-02T00:00:00Z"}])

    def test_wrong_values_are_explained(self) -> None:
        wrong: List[Tuple[Any, List[str]]] = [
            ({"lastmod": datetime(2026, 1, 2)}, ["entry 2: `lastmod`", "2026-01-02 00:00:00", "tz_localize"]),
            ({"lastmod": 1767323045}, ["`lastmod`: 1767323045 is a int", "2026-01-31T09:00:00Z"]),
            ({"lastmod": "yesterday"}, ["entry 2: `lastmod`: `yesterday`", "such as `2026-01-31T09:00:00Z`"]),
            ({"length": 5.5}, ["`length`: 5.5 is a float", "int(value)"]),
            ({"length": float(1 << 60)}, ["`length`"]),
            ({"length": True}, ["`length`: True is a bool"]), ({"length": "5"}, ["`length`: '5' is a str"]),
            ({"length": -1}, ["`length`: -1 is out of range"]),
            ({"length": 1 << 64}, ["out of range", "18446744073709551615"]),
            ({"type": 5}, ["`type`: 5 is a int", "str(value)"]), ({"type": b"text"}, ["`type`: b'text' is a bytes"]),
            ({"uri": Path("/a/b")}, ["`uri`: PosixPath('/a/b') is a path", "address of the folder"]),
            ({"size": 1}, ["`size` is not a member"]), ({"lenght": 1}, ["did you mean `length`?"]),
            ({7: 1}, ["`7` is not a member"]),
            ({"links": "http://h/"}, ["`links`: 'http://h/' is a str", "list of links"]),
            ({"links": [{"rel": "up"}]}, ["`links`, link 1: `href` is missing"]),
            ({"links": [{"rel": "up", "href": "http://h/", "pri": 1.5}]}, ["`links`, link 1: 1.5 is a float"]),
            ({"hash": "md5:0"}, ["entry 2: `hash`: `md5:0`"]),
        ]
        for values, words in wrong:
            told = self.refusal({"uri": "http://h/2", **values})
            for word in words:
                self.assertIn(word, told)
        self.assertIn("entry 2: a str is not an entry: 'uri' (help: expected `Entry` or a mapping: `table.to_dict",
                      self.refusal("uri"))
        with self.assertRaisesRegex(abreast.UsageError, "`at`: the time .* has no time zone"):
            abreast.ResourceList([], at=datetime(2026, 1, 1))

    def test_errors_count_over_all_parts(self) -> None:
        for fault, number in [({"length": -1}, 2_503), ({"hash": "md5:0"}, 2_503)]:
            entries: List[Dict[str, Any]] = [{"uri": f"http://h/{number}"} for number in range(3_000)]
            entries[number - 1].update(fault)
            with tempfile.TemporaryDirectory() as place:
                with self.assertRaisesRegex(abreast.UsageError, f"^entry {number}: "):
                    abreast.ResourceList(entries).write_parts(place, "http://h/", size=1_200)


@unittest.skipUnless(PACKAGES, "ABREAST_TEST_PACKAGES is not set")
class TableTests(ServedCase):
    @classmethod
    def setUpClass(cls) -> None:
        assert PACKAGES is not None
        sys.path.append(PACKAGES)
        cls.addClassCleanup(sys.path.remove, PACKAGES)

    def table(self) -> Any:
        import pandas as pd  # type: ignore[import-not-found]
        return pd.DataFrame({
            "uri": ["http://h/a", "http://h/b"], "length": [5, None], "hash": [HASH, None],
            "type": pd.array(["text/plain", pd.NA], dtype="string"),
            "lastmod": pd.to_datetime(["2026-01-02T03:04:05.123456789Z", None], utc=True)})

    expected = [{"uri": "http://h/a", "lastmod": "2026-01-02T03:04:05.123456Z", "length": 5, "hash": HASH,
                 "type": "text/plain"}, {"uri": "http://h/b"}]

    def test_a_table_of_pandas_is_written(self) -> None:
        import pandas as pd
        table = self.table()
        self.assertEqual(written(*table.to_dict("records")), self.expected)
        self.assertEqual(written(*table.astype({"length": "Int64"}).to_dict("records")), self.expected)
        self.assertEqual(written(*(row._asdict() for row in table.itertuples(index=False))), self.expected)
        self.assertEqual(written(*(row.to_dict() for _, row in table.iterrows())), self.expected)
        source = abreast.Source(self.server.url)
        self.assertEqual(source.record(table.to_dict("records")).recorded, 2)
        found = source.resource("http://h/a")
        assert found is not None
        self.assertEqual((found.length, found.hash, found.lastmod), (5, HASH, self.expected[0]["lastmod"]))
        with self.assertRaisesRegex(abreast.UsageError, "entry 1: a str is not an entry: 'uri' .help: .*to_dict"):
            source.record(table)
        naive = table.assign(lastmod=pd.to_datetime(["2026-01-02", None])).to_dict("records")
        with self.assertRaisesRegex(abreast.UsageError, "entry 1: `lastmod`: the time 2026-01-02 00:00:00 has no"):
            written(*naive)
        table["links"] = [[{"rel": "via", "href": "http://h/c"}], None]
        self.assertEqual([len(row.get("links", ())) for row in written(*table.to_dict("records"))], [1, 0])

    def test_values_of_numpy_are_written(self) -> None:
        import numpy as np  # type: ignore[import-not-found]
        for kind in (np.int64, np.int32, np.uint8, np.float32, np.float64):
            self.assertEqual(written({"uri": np.str_("http://h/a"), "length": kind(5), "lastmod": np.float32("nan")}),
                             [{"uri": "http://h/a", "length": 5}])
        day = {"uri": "http://h/a", "lastmod": np.datetime64("2026-01-02")}
        self.assertEqual(written(day)[0]["lastmod"], "2026-01-02T00:00:00Z")
        self.assertEqual(written({"uri": "http://h/a", "lastmod": np.datetime64("NaT"), "links": np.array([])}),
                         [{"uri": "http://h/a"}])
        with self.assertRaisesRegex(abreast.UsageError, "the time 2026-01-02 03:04:05 has no time zone"):
            written({"uri": "http://h/a", "lastmod": np.datetime64("2026-01-02T03:04:05.000000000")})
        with self.assertRaisesRegex(abreast.UsageError, "`length`: 5.5 is a float"):
            written({"uri": "http://h/a", "length": np.float64(5.5)})

    def test_errors_of_recording_have_the_number_of_the_entry(self) -> None:
        source = abreast.Source(self.server.url)
        entries: List[Dict[str, Any]] = [{"uri": f"http://h/{number}"} for number in range(2_100)]
        entries[2_049]["length"] = -1
        with self.assertRaisesRegex(abreast.UsageError, "^entry 2050: `length`: -1 is out of range"):
            source.record(entries)
        entries[2_049] = {"uri": "http://h/x", "lastmod": "yesterday"}
        with self.assertRaisesRegex(abreast.UsageError, "^change 2050: `lastmod`.* first 2000 entries are rec") as raised:
            source.record(entries)
        problem = raised.exception.problem
        assert problem is not None
        self.assertEqual(problem.errors[0]["change"], 2_050)


if __name__ == "__main__":
    unittest.main()
