"""Our Parquet reader against pyarrow: tables of every type that is read, written in every layout that pyarrow has.

Each file is read by both: the same rows, every value the same. What is not read must be refused by its name. Then damaged
copies: an error or rows, never a crash.
"""
import datetime
import decimal
import itertools
import json
import math
import os
import random
import subprocess
import tempfile
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tap

OURS = os.path.join(os.environ.get("BUILD", "build"), "tests/peers/parquet_peer")
UTC = datetime.timezone.utc
random.seed(4)


class Reader:
    """One process reads many files."""

    def __init__(self):
        self.start()

    def start(self):
        self.process = subprocess.Popen([OURS], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, path):
        """(rows as bytes, None), (rows, error) or (None, "crash")."""
        self.process.stdin.write(path.encode() + b"\n")
        self.process.stdin.flush()
        rows = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                code = self.process.wait()
                self.start()
                return None, f"the reader ended with {code}"
            if line[:1] == b"!":
                return rows, line[2:].decode().rstrip()
            if line[:1] == b"#":
                count = int(line.split()[2])
                return (rows, None) if count == len(rows) else (None, f"{len(rows)} rows, and {count} by the footer")
            rows.append(line)


# ---- values ----

def clock(t):
    return t.isoformat().split("+")[0].rstrip("0").rstrip(".") if t.microsecond else t.isoformat().split("+")[0]


def expected(value, kind):
    """The value of pyarrow as our JSON has it, floats and decimals as numbers."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {k: expected(v, kind.item_type) for k, v in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [expected(v, kind.value_type) for v in value]
    if pa.types.is_struct(kind):
        return {f.name: expected(value[f.name], f.type) for f in kind}
    if pa.types.is_dictionary(kind):
        return expected(value, kind.value_type)
    if pa.types.is_timestamp(kind):
        return clock(value) + ("Z" if kind.tz else "")
    if pa.types.is_time(kind):
        return clock(value)
    if pa.types.is_date(kind):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and not isinstance(b, bool) and isinstance(b, (int, decimal.Decimal)):
        return float(b) == a
    if isinstance(a, decimal.Decimal) and not isinstance(b, bool) and isinstance(b, (int, decimal.Decimal)):
        return f"{b:f}" == f"{a:f}" if isinstance(b, decimal.Decimal) else str(b) == f"{a:f}"
    return type(a) is type(b) and a == b


def difference(table, rows):
    theirs = table.to_pylist()
    if len(theirs) != len(rows):
        return f"{len(rows)} rows, expected {len(theirs)}"
    for i, (their, line) in enumerate(zip(theirs, rows)):
        our = json.loads(line, parse_float=decimal.Decimal)
        want = {f.name: expected(their[f.name], f.type) for f in table.schema}
        if list(want) != list(our):
            return f"row {i}: columns {list(our)}, expected {list(want)}"
        for name in want:
            if not same(want[name], our[name]):
                return f"row {i}, {name}: {str(our[name])[:300]}, expected {str(want[name])[:300]}"
    return None


# ---- tables ----

WORDS = ["", "a", "word", "two words", 'a "quote"', "back\\slash", "line\nend", "\t\r\x01\x1f\x7f", "é", "日本", "😀", "x" * 300, "</s>", "\u2028"]


def text():
    return random.choice(WORDS) if random.random() < 0.7 else "".join(random.choice(WORDS) for _ in range(random.randrange(6)))


def whole(bits, signed):
    low, high = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return lambda: random.choice([low, high, 0, 1, random.randint(low, high), random.randint(max(low, -9), 9)])


def moment(unit):
    def make():
        t = datetime.datetime.fromtimestamp(random.randint(-2**33, 2**33), UTC)
        return t.replace(microsecond={"s": 0, "ms": random.randrange(1000) * 1000, "us": random.randrange(10**6)}[unit])
    return make


def number(kind):
    special = [0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 0.1, 1e-5, 65504.0, 5.9604644775390625e-08]
    return lambda: kind(random.choice(special + [random.gauss(0, 1), random.gauss(0, 1000)]))


def wide_number(value):
    return number(float)() if random.random() < 0.5 else value * 10.0 ** random.randint(-300, 300)


def digits(precision, scale):
    return lambda: decimal.Decimal(random.choice([0, 1, -1, 10**precision - 1, 1 - 10**precision, random.randint(-10**precision + 1, 10**precision - 1)])).scaleb(-scale, decimal.Context(prec=60))


SCALARS = {
    "text": (pa.string(), text), "large_text": (pa.large_string(), text), "bytes": (pa.binary(), lambda: text().encode()),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), lambda: random.choice(WORDS)), "bool": (pa.bool_(), lambda: random.random() < 0.5),
    **{f"{'' if s else 'u'}int{b}": (getattr(pa, f"{'' if s else 'u'}int{b}")(), whole(b, s)) for b in (8, 16, 32, 64) for s in (True, False)},
    "half": (pa.float16(), number(np.float16)), "float": (pa.float32(), number(np.float32)), "double": (pa.float64(), lambda: wide_number(random.random())),
    "date": (pa.date32(), lambda: datetime.date.fromordinal(random.randint(1, 3652059))),
    "time_ms": (pa.time32("ms"), lambda: datetime.time(random.randrange(24), 5, 59, random.randrange(1000) * 1000)),
    "time_us": (pa.time64("us"), lambda: datetime.time(random.randrange(24), 5, 59, random.randrange(10**6))),
    **{f"moment_{u}": (pa.timestamp(u, "UTC"), moment(u)) for u in ("s", "ms", "us")}, "local": (pa.timestamp("us"), lambda: moment("us")().replace(tzinfo=None)),
    "decimal5": (pa.decimal128(5, 2), digits(5, 2)), "decimal18": (pa.decimal128(18, 0), digits(18, 0)), "decimal38": (pa.decimal128(38, 38), digits(38, 38)),
    "nothing": (pa.null(), lambda: None), "uuid": (pa.uuid(), lambda: uuid.UUID(int=random.getrandbits(128))),
    "json": (pa.json_(), lambda: json.dumps({"a": text()})),
}


def made(kind, make, nulls, rows):
    return pa.array([None if random.random() < nulls else make() for _ in range(rows)], kind)


def flat(rows, nulls=0.2, names=None):
    """A column of each type."""
    columns = {n: made(k, m, nulls, rows) for n, (k, m) in SCALARS.items() if names is None or n in names}
    return pa.table(columns, schema=pa.schema([pa.field(n, a.type, n == "nothing" or nulls > 0) for n, a in columns.items()]))


def nested_kind(depth):
    """A type of lists, structs and maps, and what makes its values."""
    choice = random.random()
    if depth == 0 or choice < 0.25:
        return random.choice([(pa.string(), text), (pa.int64(), whole(64, True)), (pa.bool_(), lambda: random.random() < 0.5), (pa.float64(), random.random)])
    if choice < 0.55:
        kind, make = nested_kind(depth - 1)
        nulls, longest = random.choice([0, 0.2]), random.choice([1, 3, 12])
        element = pa.field("element", kind, nulls > 0)
        return random.choice([pa.list_, pa.large_list])(element), lambda: [None if random.random() < nulls else make() for _ in range(random.randrange(longest + 1))]
    if choice < 0.65:
        kind, make = nested_kind(depth - 1)
        return pa.map_(pa.string(), kind), lambda: [(f"k{i}", None if random.random() < 0.2 else make()) for i in range(random.randrange(4))]
    fields = [(f"f{i}", nested_kind(depth - 1), random.choice([0, 0.3])) for i in range(random.randrange(1, 4))]
    return (pa.struct([pa.field(n, k, nulls > 0) for n, (k, _), nulls in fields]),
            lambda: {n: None if random.random() < nulls else m() for n, (_, m), nulls in fields})


def nested(rows):
    columns, fields = [], []
    for i in range(random.randrange(1, 4)):
        nulls = random.choice([0, 0.3])
        kind, make = nested_kind(random.randrange(1, 4))
        columns.append(made(kind, make, nulls, rows))
        fields.append(pa.field(f"c{i}", kind, nulls > 0))
    return pa.table(columns, schema=pa.schema(fields))


def chat(rows):
    message = pa.struct([("role", pa.string()), ("content", pa.string()), ("tool_calls", pa.list_(pa.struct([("name", pa.string()), ("arguments", pa.string())])))])
    def one():
        calls = [{"name": "look", "arguments": '{"q": 1}'} for _ in range(random.randrange(3))]
        return [{"role": random.choice(["user", "assistant"]), "content": text(), "tool_calls": random.choice([None, calls])} for _ in range(random.randrange(6))]
    return pa.table({"id": pa.array(range(rows)), "messages": pa.array([one() for _ in range(rows)], pa.list_(message))})


def few_words(rows):
    """Columns that a dictionary shortens, and one that outgrows it."""
    return pa.table({"same": ["x"] * rows, "few": [random.choice(["a", "bb", None]) for _ in range(rows)],
                     "number": pa.array([random.choice([1, 2, None]) for _ in range(rows)], pa.int32()),
                     "runs": [i // 50 for i in range(rows)], "many": [f"{i} {text()}" for i in range(rows)]})


# ---- layouts ----

def layouts():
    for codec, version, pages, dictionary, size, groups in itertools.product(["none", "snappy", "zstd"], ["1.0", "2.4", "2.6"], ["1.0", "2.0"], [True, False],
                                                                             [64, 2**20], [7, 1000]):
        yield {"compression": codec, "version": version, "data_page_version": pages, "use_dictionary": dictionary, "data_page_size": size, "row_group_size": groups}
    for more in ({"write_page_checksum": True}, {"write_page_index": True}, {"write_statistics": False}, {"use_compliant_nested_type": False}, {"flavor": "spark"},
                 {"dictionary_pagesize_limit": 100}, {"write_batch_size": 3, "data_page_size": 20}, {"store_decimal_as_integer": True},
                 {"use_dictionary": False, "column_encoding": "PLAIN"}, {"store_schema": False}, {"compression": "zstd", "compression_level": 19},
                 {"max_rows_per_page": 3}, {"write_page_checksum": True, "data_page_version": "2.0", "compression": "zstd"}):
        yield more


def main():
    reader = Reader()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.parquet")
        kept = []

        def check(table, layout, keep=False):
            try:
                pq.write_table(table, path, **layout)
            except (pa.ArrowNotImplementedError, TypeError) as e:
                return f"pyarrow does not write it: {e}"
            try:
                theirs = pq.read_table(path)  # times may have become coarser when they were written
            except (pa.ArrowInvalid, OSError):
                theirs = table
            if theirs.num_rows != table.num_rows:  # pyarrow does not read back some nested tables of one row
                theirs = table
            rows, error = reader.read(path)
            if keep:
                with open(path, "rb") as f:
                    kept.append(f.read())
            return error or difference(theirs, rows)

        def over(make, count):
            """Every layout, with tables of its own."""
            for layout in layouts():
                for _ in range(count):
                    why = check(make(), layout, random.random() < 0.1)
                    if why:
                        return f"{layout}: {why}"
            return None

        tap.case("a column of each type", over, lambda: flat(40), 1)
        tap.case("... without nulls", over, lambda: flat(20, 0), 1)
        tap.case("... with nulls only", over, lambda: flat(9, 1), 1)
        tap.case("texts beside numbers", over, lambda: flat(300, 0.1, ("text", "int64", "bool", "double")), 1)
        tap.case("lists, structs, maps within each other", over, lambda: nested(random.choice([1, 5, 60])), 6)
        tap.case("conversations", over, lambda: chat(50), 2)
        tap.case("dictionaries that shorten, and one that is outgrown", over, lambda: few_words(500), 1)
        tap.case("one row, and none", over, lambda: random.choice([flat(1), flat(0), nested(1), nested(0)]), 1)
        tap.case("many rows, in pages and groups as pyarrow cuts them", check, few_words(150000), {})
        old = [datetime.datetime(y, m, d, 23, 59, 59, 999999) for y in (1, 4, 100, 400, 1582, 1899, 1969, 9999) for m, d in ((1, 1), (2, 28), (3, 1), (12, 31))]
        tap.case("days of all centuries", check, pa.table({"t": pa.array(old, pa.timestamp("us")), "d": pa.array([t.date() for t in old])}), {})
        tap.case("nanoseconds", check_nanoseconds, reader, path)
        tap.case("times as INT96", check_int96, reader, path)
        tap.case("a row longer than a page", check, pa.table({"t": ["x" * 3_000_000, None, "y" * 10]}), {"data_page_size": 1000})

        def refused(what, table, layout):
            pq.write_table(table, path, **layout)
            rows, error = reader.read(path)
            return None if error and not rows and all(w in error for w in what) else f"{error} and {len(rows or [])} rows"

        words, numbers = pa.table({"words": ["a", "b"]}), pa.table({"n": pa.array([1, 2], pa.int32())})
        for codec, name in (("gzip", "gzip"), ("brotli", "Brotli"), ("lz4", "LZ4")):
            tap.case(f"refused: {name}", refused, (name, '"words"'), words, {"compression": codec})
        for table, name, encodings in ((words, "words", ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")), (numbers, "n", ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"))):
            for e in encodings:
                tap.case(f"refused: {e}", refused, (e, f'"{name}"'), table, {"use_dictionary": False, "column_encoding": e})
        tap.case("refused: bytes that are no text", refused, ('"image.bytes"', "no UTF-8"), pa.table({"image": [{"bytes": b"\x89PNG\xff"}]}), {})
        tap.case("refused: bytes of a fixed length", refused, ('"hash"', "fixed length"), pa.table({"hash": pa.array([b"abcd"], pa.binary(4))}), {})
        tap.case("refused: decimals of 76 digits", refused, ('"d"', "38 digits"), pa.table({"d": pa.array([decimal.Decimal(1)], pa.decimal256(76, 2))}), {})
        tap.case("refused: a map by numbers", refused, ('"m"', "keys are no texts"), pa.table({"m": pa.array([[(1, "a")]], pa.map_(pa.int32(), pa.string()))}), {})

        def damaged():
            crashed = read = 0
            for i in range(2000):
                data = bytearray(random.choice(kept))
                for _ in range(random.choice([1, 1, 2, 8])):
                    at = random.randrange(len(data)) if random.random() < 0.5 else random.randrange(max(0, len(data) - 600), len(data))
                    data[at] = random.randrange(256)
                if random.random() < 0.1:
                    del data[random.randrange(len(data)):]
                elif random.random() < 0.1:  # the end stays: the footer is read, and pages are elsewhere
                    at = random.randrange(len(data))
                    del data[at:at + random.randrange(20)]
                with open(path, "wb") as f:
                    f.write(data)
                rows, error = reader.read(path)
                if rows is None:
                    crashed += 1
                    continue
                read += not error
                for line in rows:
                    json.loads(line, strict=False) if line.isascii() else None
            print(f"# {len(kept)} files, 2000 damaged copies: {read} read whole")
            return f"{crashed} crashed" if crashed or read == 0 or read > 1500 else None

        tap.case("damaged files: an error, or rows", damaged)
    tap.done()


def check_nanoseconds(reader, path):
    values = [0, 1, -1, 1738315800500000001, -10**18, 999999999, -999999999]
    pq.write_table(pa.table({"t": pa.array(values, pa.timestamp("ns", "UTC"))}), path)
    rows, error = reader.read(path)
    for value, line in zip(values, rows):
        text = json.loads(line)["t"]
        whole, _, part = text.rstrip("Z").partition(".")
        seconds = datetime.datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()
        if int(seconds) * 10**9 + int((part + "000000000")[:9]) != value:
            return f"{value} became {text}"
    return error or (None if len(rows) == len(values) else "rows are missing")


def check_int96(reader, path):
    table = pa.table({"t": pa.array([moment("us")() for _ in range(50)], pa.timestamp("us"))})
    table = table.filter(pa.compute.greater(table["t"], pa.scalar(datetime.datetime(1700, 1, 1), pa.timestamp("us"))))
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    rows, error = reader.read(path)
    return error or difference(table, rows)


main()
