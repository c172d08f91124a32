#!/usr/bin/env python3
"""parquet_export_peer.py - answers of build/samples as CSV, JSON lines and Parquet, read by pandas, pyarrow and DuckDB.

JSON lines say which values there are; each type of a Parquet column follows from them, by the rules of print.h, written here
a second time. Then each reader must give these values and nulls. Stores: one imported from CSV, one that a sweep measured, and a
table of every type in two row groups (parquet_export_peer.c). BUILD: the build folder (default build).
"""
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import tap

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))
SAMPLES, SWEEP = os.path.join(BUILD, "samples"), os.path.join(BUILD, "sweep")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TIMES = {"started", "time"}  # columns of times; other texts that look like one are texts
DUCKDB = {pa.string(): "VARCHAR", pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.bool_(): "BOOLEAN",
          pa.timestamp("ms", tz="UTC"): "TIMESTAMP WITH TIME ZONE"}
PANDAS = {pa.string(): "str", pa.int64(): "int64", pa.float64(): "float64", pa.bool_(): "bool",
          pa.timestamp("ms", tz="UTC"): "datetime64[ms, UTC]"}


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) or v in ("inf", "-inf")


def milliseconds(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(milliseconds=1)


def element_type(numbers):
    if all(isinstance(v, int) for v in numbers):
        return pa.int64()
    return None if any(isinstance(v, int) and abs(v) > 2**53 for v in numbers) else pa.float64()


def type_of(name, values):
    """The type of a column with these values of JSON."""
    there = [v for v in values if v is not None]
    if there and all(isinstance(v, bool) for v in there):
        return pa.bool_()
    if there and name in TIMES and all(isinstance(v, str) and TIME.fullmatch(v) for v in there):
        return pa.timestamp("ms", tz="UTC")
    lists = any(isinstance(v, list) for v in there)
    flat = [w for v in there for w in (v if isinstance(v, list) else [v])]
    if there and all(map(is_number, flat)) and any(not isinstance(w, str) for w in flat) and element_type(flat):
        return pa.list_(element_type(flat)) if lists else element_type(flat)
    return pa.string()


def in_column(v, kind, csv):
    """A value of JSON as the column has it. csv: the cell of CSV; None where it has no value."""
    if v is None:
        assert csv is None, csv
        return None
    if kind == pa.string():
        assert v == csv or not isinstance(v, str), (v, csv)
        return csv
    if pa.types.is_timestamp(kind):
        assert v == csv, (v, csv)
        return milliseconds(v)
    if kind == pa.bool_():
        assert csv == str(int(v)), (v, csv)
        return v
    as_number = int if kind in (pa.int64(), pa.list_(pa.int64())) else float
    of_csv = [as_number(w) for w in csv.strip("[]").split(", ")]
    numbers = [as_number(w) for w in (v if isinstance(v, list) else [v])]
    assert numbers == of_csv, (v, csv)
    return numbers if pa.types.is_list(kind) else numbers[0]


class Answer:
    def __init__(self, path):
        self.parquet = path + ".parquet"
        with open(path + ".jsonl", encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        csv = duckdb.sql(f"select * from read_csv('{path}.csv', header=true, all_varchar=true, nullstr='', allow_quoted_nulls=false, "
                         "delim=',', quote='\"', escape='\"', parallel=false)")
        cells = csv.fetchall()
        skip = len(csv.columns) - len(rows[0])  # the index that ado's CSV begins with
        self.names = list(rows[0])
        assert csv.columns[skip:] == self.names and len(cells) == len(rows), (csv.columns, self.names, len(cells), len(rows))
        self.kinds = [type_of(n, [r[n] for r in rows]) for n in self.names]
        self.columns = [[in_column(row[n], k, cell[skip + i]) for row, cell in zip(rows, cells)]
                        for i, (n, k) in enumerate(zip(self.names, self.kinds))]


def same(got, want, what):
    assert len(got) == len(want), (what, len(got), len(want))
    for i, (g, w) in enumerate(zip(got, want)):
        assert g == w and type(g) is type(w), (what, i, g, w)


def by_pyarrow(a):
    table = pq.read_table(a.parquet)
    assert table.column_names == a.names, table.column_names
    for name, kind, want in zip(a.names, a.kinds, a.columns):
        column = table[name]
        assert column.type.equals(kind), (name, column.type, kind)
        column.validate(full=True)
        same((column.cast(pa.int64()) if pa.types.is_timestamp(kind) else column).to_pylist(), want, name)


def by_duckdb(a):
    described = duckdb.sql(f"describe select * from '{a.parquet}'").fetchall()
    kinds = [DUCKDB[k.value_type] + "[]" if pa.types.is_list(k) else DUCKDB[k] for k in a.kinds]
    assert [(d[0], d[1]) for d in described] == list(zip(a.names, kinds)), described
    quoted = ['"' + n.replace('"', '""') + '"' for n in a.names]
    fields = ", ".join(f"epoch_ms({q})" if pa.types.is_timestamp(k) else q for q, k in zip(quoted, a.kinds))
    rows = duckdb.sql(f"select {fields} from '{a.parquet}'").fetchall()
    for i, name in enumerate(a.names):
        same([r[i] for r in rows], a.columns[i], name)


def by_pandas(a):
    frame = pd.read_parquet(a.parquet)
    assert list(frame.columns) == a.names, list(frame.columns)
    for name, kind, want in zip(a.names, a.kinds, a.columns):
        nulls = [v is None for v in want]
        assert frame[name].isna().tolist() == nulls, name
        if not any(nulls) and not pa.types.is_list(kind):
            assert str(frame[name].dtype) == PANDAS[kind], (name, frame[name].dtype)
        for g, w in zip(frame[name], want):
            if w is None:
                continue
            g = list(g) if isinstance(w, list) else g.value // 1000000 if pa.types.is_timestamp(kind) else g
            assert g == w or (isinstance(w, int) and any(nulls) and g == float(w)), (name, g, w)


def units(path, want):
    have = json.loads(pq.read_schema(path).metadata[b"PANDAS_ATTRS"])
    assert have == pd.read_parquet(path).attrs == {"units": want}, have
    found = duckdb.sql(f"select value from parquet_kv_metadata('{path}') where key = 'PANDAS_ATTRS'").fetchall()
    assert json.loads(found[0][0]) == have, found


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.returncode, done.stderr[-2000:])


def ask(name, *question):
    for ending in ("csv", "jsonl", "parquet"):
        run(SAMPLES, *question, "--output-file", f"{name}.{ending}")
    return Answer(name)


def compare(name, make):
    answers = []
    tap.case(f"{name}: CSV and JSON lines agree", lambda: answers.append(make()))
    for reader, read in (("pyarrow", by_pyarrow), ("DuckDB", by_duckdb), ("pandas", by_pandas)):
        tap.case(f"{name}: {reader} reads equal values, types and nulls", lambda: read(answers[0]))


IMPORTED = '''a,word,speed,steps,loss
1,plain,10.5,3,1
2,"a ""b"", c
d",20,4,inf
3,"[9, 11]","[9, 11]","[1, 2]","[1, inf]"
4,"x ",,,2
5,日本,19,5,-inf
'''
WORK = '''#!/bin/sh
[ "$TUNE_INPUT_A" != 3 ] || { echo "three, is \\"too\\" much" >&2; exit 1; }
echo "{\\"speed\\": $TUNE_INPUT_A.5, \\"steps\\": $TUNE_INPUT_A, \\"nonce\\": \\"$TUNE_NONCE\\"}" >"$TUNE_OUTPUT/report.json"
'''


def number(name, **more):
    return {"identifier": name, "required": True, "domain": {"domainRange": [0, 100], "interval": 1}, **more}


def write(name, content, mode=0o644):
    with open(name, "w", encoding="utf-8") as f:
        f.write(content if isinstance(content, str) else json.dumps(content))
    os.chmod(name, mode)


def stores():
    open_text = {"identifier": "word", "required": True, "domain": {"variableType": "OPEN_CATEGORICAL_VARIABLE_TYPE"}}
    targets = [{"identifier": "speed", "unit": "m/s"}, {"identifier": "steps", "unit": "", "whole": True}]
    write("theirs.csv", IMPORTED)
    write("theirs.json", {"identifier": "theirs", "actuator": "replay", "inputs": [number("a"), open_text],
                          "targets": targets + [{"identifier": "loss", "unit": "", "optional": True}]})
    run(SAMPLES, "import", "csv", "theirs.csv", "--experiment", "theirs", "--experiments", "theirs.json", "--inputs", "a,word", "--store", "theirs")
    write("work.sh", WORK, 0o755)
    write("work.json", {"identifier": "work", "actuator": "custom_experiments", "program": "./work.sh", "output": None,
                        "inputs": [number("a")], "targets": targets})
    write("space.json", {"entitySpace": [{"identifier": "a", "propertyDomain": {"values": [1, 2, 3]}}],
                         "experiments": [{"actuatorIdentifier": "custom_experiments", "experimentIdentifier": "work"}]})
    done = subprocess.run([SWEEP, "space.json", "--experiments", "work.json", "--store", "swept", "--repeat", "2"], capture_output=True, text=True)
    assert "4 valid, 0 invalid, 2 failed" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]


def every_type():
    run(os.path.join(BUILD, "tests/peers/parquet_export_peer"), "120001")
    a = Answer("rows")
    wanted = [pa.int64(), pa.float64(), pa.float64(), pa.string(), pa.string(), pa.timestamp("ms", tz="UTC"), pa.bool_(),
              pa.list_(pa.float64()), pa.list_(pa.int64()), pa.string(), pa.string(), pa.string(), pa.string()]
    assert a.kinds == wanted, list(zip(a.names, a.kinds))
    assert pq.ParquetFile("rows.parquet").num_row_groups == 2
    return a


if not os.path.exists(SAMPLES):
    tap.skip("answers as Parquet", f"{SAMPLES} is not built")
    tap.done()
with tempfile.TemporaryDirectory() as home:
    os.chdir(home)
    tap.case("two stores", stores)
    theirs, swept = ["--experiments", "theirs.json", "--store", "theirs"], ["--experiments", "work.json", "--store", "swept"]
    compare("imported, export", lambda: ask("a", "export", *theirs))
    compare("imported, rows of the experiment", lambda: ask("b", "show", "theirs", *theirs))
    compare("imported, status", lambda: ask("c", "status", *theirs))
    compare("swept, export", lambda: ask("d", "export", *swept))
    compare("swept, show", lambda: ask("e", "show", "space.json", *swept))
    compare("swept, best", lambda: ask("f", "best", "space.json", "--maximize", "speed", *swept))
    compare("swept, missing", lambda: ask("g", "missing", "space.json", *swept))
    compare("every type, 120,001 rows", every_type)
    tap.case("units: pyarrow, pandas and DuckDB show them", units, "rows.parquet", {"number": "m/s"})
tap.done()
