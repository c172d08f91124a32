"""Our sample files against what the field reads HDF5 with: h5py, and pandas through PyTables. They read what our writer
wrote, all values; our reader reads, or refuses by name, what h5py wrote.
"""
import glob
import math
import os
import shutil
import subprocess
import tempfile
import warnings

import h5py
import numpy as np
import pandas as pd
import tables
import tap

warnings.simplefilter("ignore", tables.NaturalNameWarning)
STORE = os.path.join(os.environ.get("BUILD", "build"), "tests/helpers/store")
EXPERIMENT = "test-experiment-v1.0.0"
TEXT, WHOLE, NUMBER = 0, 1, 2
ROLES = ["key", "input", "target"]


def ours(*arguments, fail=False):
    run = subprocess.run([STORE, *arguments], capture_output=True, text=True, timeout=300)
    assert fail or run.returncode == 0, run.stderr
    return run.stderr if fail else run.stdout


def dump(folder):
    """{table: (columns, rows)} as our reader sees the store; None: absent."""
    result = {}
    for line in ours("dump", folder).split("\n")[:-1]:
        fields = line.split("\t")
        if fields[0] == "table" and len(fields) == 2:
            columns, rows = result[fields[1]] = ([], [])
        elif fields[0] == "column" and len(fields) == 6:
            columns.append((fields[1], fields[2], int(fields[3]), int(fields[4]), int(fields[5])))
        else:
            rows.append([value(f, c[2]) for f, c in zip(fields, columns, strict=True)])
    return result


def value(field, kind):
    if field == "\\N":
        return None
    if kind == TEXT:
        return field.replace("\\x0a", "\n").replace("\\x09", "\t").replace("\\x5c", "\\")
    return int(field) if kind == WHOLE else float(field)


def same(a, b):
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))


def as_seen(cell, column, reasons):
    """What a cell that h5py or pandas read is in our terms."""
    if column[0] == "reason":
        return reasons[cell].decode() or None
    if column[2] == TEXT:
        return (cell.decode() if isinstance(cell, bytes) else cell) or None
    return int(cell) if column[2] == WHOLE else None if math.isnan(cell) else float(cell)


def compare(name, read):
    """All rows of a table of the store, file by file, by a function (file, table path) -> {column: values}."""
    columns, rows = dumped[name]
    path = name if name == "requests" else "measurements/" + name
    at = 0
    for f in files:
        with h5py.File(f, "r") as h:
            reasons = h["reasons"][:]
        got = read(f, path)
        assert list(got) == [c[0] for c in columns], list(got)
        count = len(got[columns[0][0]])
        for i in range(count):
            for k, c in enumerate(columns):
                cell = as_seen(got[c[0]][i], c if name != "requests" or c[0] != "reason" else ("", *c[1:]), reasons)
                assert same(cell, rows[at][k]), f"{f}, row {i}, {c[0]}: {cell!r}, ours {rows[at][k]!r}"
            at += 1
    assert at == len(rows) > 2000, (at, len(rows))


def by_h5py(f, path):
    with h5py.File(f, "r") as h:
        table = h[path][:]
        return {n: table[n].tolist() for n in table.dtype.names}


def by_pandas(f, path):
    frame = pd.read_hdf(f, path)
    return {n: frame[n].tolist() for n in frame.columns}


def two_lines(f, path):
    """The two lines of the README: h5py's array as a frame."""
    with h5py.File(f, "r") as h:
        frame = pd.DataFrame(h[path][:])
    return {n: frame[n].tolist() for n in frame.columns}


def attributes():
    for f in files:
        with h5py.File(f, "r") as h:
            assert h.attrs["schema_version"] == 1 and h.attrs["creator"].startswith(b"tune.c "), dict(h.attrs)
            assert h["reasons"][0] == b"" and len(set(h["reasons"][:].tolist())) == len(h["reasons"])
            for name, (columns, _) in dumped.items():
                t = h[name if name == "requests" else "measurements/" + name]
                assert t.attrs["CLASS"] == b"TABLE" and t.attrs["TITLE"] == name.encode()
                for i, c in enumerate(columns):
                    assert t.attrs[f"FIELD_{i}_NAME"].decode() == c[0]
                    have = (t.attrs["units"][i].decode(), ROLES.index(t.attrs["roles"][i].decode()), t.attrs["whole"][i])
                    assert have == (c[1], c[3], c[4]), (c, have)


def checksums():
    for f in files:
        with h5py.File(f, "r") as h:
            for name in ["reasons", *(n if n == "requests" else "measurements/" + n for n in dumped)]:
                t = h[name]
                assert t.fletcher32, f"{f}: {name} has no Fletcher-32"
                assert t.attrs["row_hashes"].shape == (-(-t.shape[0] // t.chunks[0]),), t.attrs["row_hashes"].shape


def refuses(action):
    try:
        action()
    except OSError:
        return True
    return False


def damaged(folder):
    """A row changed behind the library's back: h5py refuses it, and so do we; by Fletcher-32 alone, too."""
    for name, path in (("ours", files[0]), ("fletcher", None)):
        where = os.path.join(folder, name)
        if path:
            os.makedirs(where)
            copy = shutil.copy(path, os.path.join(where, "x.h5"))
            with open(os.path.join(where, "store.json"), "w") as f:
                f.write('{"id": "0a1b2c", "schema_version": 1}')
        else:
            store_of(where, NOTHING, {"fletcher32": True})
            copy = os.path.join(where, "x.h5")
        with h5py.File(copy, "r") as h:
            at = h["measurements/" + EXPERIMENT].id.get_chunk_info(0).byte_offset
        with open(copy, "r+b") as f:
            f.seek(at + 2)
            byte = f.read(1)
            f.seek(at + 2)
            f.write(bytes([byte[0] ^ 4]))
        message = ours("dump", where, fail=True)
        assert f"x.h5: the file is damaged: table {EXPERIMENT}: its rows 0 to " in message, message
        with h5py.File(copy, "r") as h:
            assert refuses(lambda: h["measurements/" + EXPERIMENT][:]), "h5py reads it"


# ---- files by h5py ----

S16 = h5py.string_dtype("utf-8", 16)
GOOD = np.dtype([("uid", S16), ("batch_size", "<i8"), ("train_runtime", "<f8"), ("reason", "<i8")])
GOOD_ROLES = ["key", "input", "target", "key"]


def rows_of(dtype, n=5):
    rows = np.zeros(n, dtype)
    for i in range(n):
        for name in rows.dtype.names:
            rows[name][i] = b"u%d" % i if rows.dtype[name].kind == "S" else i % 2 if name == "reason" else i
    return rows


def describe(table, roles=GOOD_ROLES, units=None, whole=None):
    n = len(table.dtype.names)
    table.attrs["roles"] = np.array((roles + ["target"] * n)[:n], "S8")
    table.attrs["units"] = np.array(units if units is not None else ["s"] * n, "S8")
    table.attrs["whole"] = np.array(whole if whole is not None else [0] * n, np.int8)


def make(path, change, dtype=GOOD, libver=("v110", "v110"), **options):
    """A file as ours but for what change(file, table) does to it."""
    with h5py.File(path, "w", libver=libver) as h:
        h.attrs["schema_version"] = np.int64(1)
        h["reasons"] = np.array([b"", b"why"], "S8")
        table = h.create_dataset("measurements/" + EXPERIMENT, data=rows_of(dtype), **{"chunks": (5,), **options})
        describe(table)
        change(h, table)


def replace(h, **options):
    del h["measurements/" + EXPERIMENT]
    table = h.create_dataset("measurements/" + EXPERIMENT, **options)
    if table.dtype.names:
        describe(table)


def odd(kind):
    """A table with a column of that kind."""
    def change(h, t):
        rows = np.zeros(5, np.dtype([("uid", S16), ("odd", kind)]))
        if rows.dtype["odd"].kind == "O":
            rows["odd"] = "x"
        replace(h, data=rows)
    return change


def virtual(h, t):
    layout = h5py.VirtualLayout((5,), GOOD)
    layout[:] = h5py.VirtualSource("other.h5", "x", (5,), GOOD)
    del h["measurements/" + EXPERIMENT]
    describe(h.create_virtual_dataset("measurements/" + EXPERIMENT, layout))


def compact(h, t):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    del h["measurements/" + EXPERIMENT]
    h5py.h5d.create(h["measurements"].id, EXPERIMENT.encode(), t.id.get_type() if t else h5py.h5t.py_create(GOOD), h5py.h5s.create_simple((5,)), plist)
    describe(h["measurements/" + EXPERIMENT])


def spaces(h, t):
    kind = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
    text = h5py.h5t.C_S1.copy()
    text.set_size(8)
    text.set_strpad(h5py.h5t.STR_SPACEPAD)
    kind.insert(b"uid", 0, text)
    del h["measurements/" + EXPERIMENT]
    made = h5py.h5d.create(h["measurements"].id, EXPERIMENT.encode(), kind, h5py.h5s.create_simple((5,)))
    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.zeros(5, np.dtype([("uid", "S8")])), mtype=kind)
    describe(h["measurements/" + EXPERIMENT])


def link(target):
    def change(h, t):
        del h["measurements/" + EXPERIMENT]
        h["measurements/" + EXPERIMENT] = target
    return change


def attribute(name, data):
    def change(h, t):
        t.attrs[name] = data
    return change


def reasons(data, **options):
    def change(h, t):
        del h["reasons"]
        h.create_dataset("reasons", data=data, **options)
    return change


def schema(data):
    return lambda h, t: h.attrs.__setitem__("schema_version", data)


NOTHING = lambda h, t: None
ACCEPTED = {
    "as ours": (NOTHING, {}), "chunks of two rows": (NOTHING, {"chunks": (2,)}), "contiguous": (NOTHING, {"chunks": None}),
    "room to grow": (NOTHING, {"maxshape": (None,)}), "with Fletcher-32": (NOTHING, {"fletcher32": True, "chunks": (2,)}),
    "no reasons, no requests": (lambda h, t: h["reasons"].attrs.clear(), {}),
    "no measurements": (lambda h, t: h.__delitem__("measurements"), {}), "no rows": (lambda h, t: replace(h, shape=(0,), maxshape=(None,), dtype=GOOD, chunks=(5,)), {}),
    "things of others beside": (lambda h, t: h.create_group("notes").create_dataset("x", data=[1.0, 2.0]), {}),
    "attributes of others": (attribute("weather", "fine"), {}),
}
REFUSED = {
    "no schema_version": (lambda h, t: h.attrs.__delitem__("schema_version"), {}, 'lacks the attribute "schema_version"'),
    "schema 2": (schema(np.int64(2)), {}, "has schema version 2, but this program reads only versions up to 1"),
    "schema 0": (schema(np.int64(0)), {}, "its schema_version is 0"),
    "schema as text": (schema("1"), {}, 'the attribute "schema_version" has a wrong type or size'),
    "schema as float": (schema(1.0), {}, 'the attribute "schema_version" has a wrong type or size'),
    "schema as array": (schema(np.ones(3, np.int64)), {}, 'the attribute "schema_version" has a wrong type or size'),
    "the format of before": (NOTHING, {"libver": "earliest"}, "superblock version 0, expected 3"),
    "a user block": (NOTHING, {"userblock": True}, "the file is not an HDF5 file"),
    "compressed": (NOTHING, {"compression": "gzip"}, "its rows are compressed"),
    "shuffled": (NOTHING, {"shuffle": True}, "its rows are compressed"),
    "virtual": (virtual, {}, "a storage layout that tune.c does not read"), "compact": (compact, {}, "a storage layout that tune.c does not read"),
    "in another file": (lambda h, t: replace(h, shape=(5,), dtype=GOOD, external=[("other.raw", 0, 10000)]), {}, "are not in the file"),
    "a claim of 2^40 rows": (lambda h, t: replace(h, shape=(2**40,), dtype=GOOD, chunks=(1000,)), {}, "do not fit a file of"),
    "a claim of 400 rows": (lambda h, t: replace(h, shape=(400,), dtype=np.dtype([("uid", "S4")]), chunks=(100,)), {}, "are not in the file"),
    "chunks of 2^30 rows": (lambda h, t: replace(h, shape=(1,), dtype=np.dtype([("uid", "S2")]), chunks=(2**30,), maxshape=(None,)), {}, "do not fit a file"),
    "two dimensions": (lambda h, t: replace(h, data=rows_of(GOOD).reshape(1, 5), chunks=(1, 5)), {}, "expected a dataset of one dimension"),
    "a scalar": (lambda h, t: replace(h, data=rows_of(GOOD)[0]), {}, "expected a dataset of one dimension"),
    "no columns": (lambda h, t: replace(h, data=np.arange(5)), {}, "expected a table of columns"),
    "a group": (lambda h, t: (h.__delitem__("measurements/" + EXPERIMENT), h.create_group("measurements/" + EXPERIMENT)), {}, "cannot be opened as a table"),
    "measurements a table": (lambda h, t: (h.__delitem__("measurements"), h.create_dataset("measurements", data=[1])), {}, "measurements"),
    "a soft link": (link(h5py.SoftLink("/reasons")), {}, "is a link to something outside the file"),
    "an external link": (link(h5py.ExternalLink("other.h5", "/x")), {}, "is a link to something outside the file"),
    "texts of any length": (odd(h5py.string_dtype()), {}, 'its column "odd" is neither'),
    "texts too long": (odd("S5000"), {}, 'its column "odd" is neither'),
    "texts filled with spaces": (spaces, {}, 'its column "uid" is neither'),
    "float32": (odd("<f4"), {}, 'its column "odd" is neither'),
    "big-endian": (odd(">i8"), {}, 'its column "odd" is neither'),
    "unsigned": (odd("<u8"), {}, 'its column "odd" is neither'),
    "booleans": (odd("?"), {}, 'its column "odd" is neither'),
    "columns in columns": (odd(GOOD), {}, 'its column "odd" is neither'),
    "arrays": (odd("(3,)<i8"), {}, 'its column "odd" is neither'),
    "no roles": (lambda h, t: t.attrs.__delitem__("roles"), {}, 'lacks the attribute "roles"'),
    "too few roles": (attribute("roles", np.array(["key"], "S8")), {}, 'the attribute "roles" has a wrong type or size'),
    "roles as one text": (attribute("roles", "key"), {}, 'the attribute "roles" has a wrong type or size'),
    "roles as numbers": (attribute("roles", np.arange(4)), {}, 'the attribute "roles" has a wrong type or size'),
    "roles of any length": (attribute("roles", np.array(GOOD_ROLES, object)), {}, 'the attribute "roles" has a wrong type or size'),
    "an unknown role": (attribute("roles", np.array(["key", "input", "king", "key"], "S8")), {}, 'has the role "king"'),
    "units too long": (attribute("units", np.array(["x"] * 4, "S14000")), {}, 'the attribute "units" has a wrong type or size'),
    "whole as floats": (attribute("whole", np.zeros(4)), {}, 'the attribute "whole" has a wrong type or size'),
    "reasons as numbers": (reasons(np.arange(2)), {}, "table reasons: expected strings of a short fixed length"),
    "reasons of any length": (reasons(["", "x"], dtype=h5py.string_dtype()), {}, "table reasons: expected strings of a short fixed length"),
    "reasons in two dimensions": (reasons(np.zeros((2, 2), "S4")), {}, "expected a dataset of one dimension"),
    "reasons compressed": (reasons(np.zeros(9, "S4"), compression="gzip"), {}, "its rows are compressed"),
    "one reason too few": (reasons(np.zeros(1, "S4")), {}, "has the reason number 1, but there are only 1 reasons"),
    "no reasons": (lambda h, t: h.__delitem__("reasons"), {}, "has the reason number 1, but there are only 0 reasons"),
}


def store_of(folder, change, options):
    os.makedirs(folder)
    with open(os.path.join(folder, "store.json"), "w") as f:
        f.write('{"id": "0a1b2c", "schema_version": 1}')
    options = dict(options)
    path = os.path.join(folder, "x.h5")
    block = options.pop("userblock", False)
    make(path, change, **options)
    if block:
        with open(path, "rb") as f:
            data = f.read()
        with open(path, "wb") as f:
            f.write(bytes(512) + data)


def accepted(folder, change, options):
    store_of(folder, change, options)
    seen = dump(folder).get(EXPERIMENT, ([], []))
    with h5py.File(os.path.join(folder, "x.h5"), "r") as h:
        there = h.get("measurements/" + EXPERIMENT)
        want = [] if there is None else there[:].tolist()
        why = h["reasons"][:]
    names = [c[0] for c in seen[0]]
    got = [[row[names.index(n)] for n in GOOD.names] for row in seen[1]]
    want = [[as_seen(v, (n, "", [TEXT, WHOLE, NUMBER, WHOLE][k]), why) for k, (n, v) in enumerate(zip(GOOD.names, row))] for row in want]
    assert got == want, (got, want)


def refused(folder, change, options, text):
    store_of(folder, change, options)
    message = ours("dump", folder, fail=True)
    assert text in message and "x.h5" in message, message


if not os.path.exists(STORE):
    tap.skip("sample stores", f"{STORE} is not built")
    tap.done()
with tempfile.TemporaryDirectory() as home:
    mine = os.path.join(home, "mine")
    ours("fill", mine, "1", "0", "1500")
    ours("fill", mine, "2", "0", "700")
    files = sorted(glob.glob(os.path.join(mine, "*.h5")))
    dumped = dump(mine)
    for table in (EXPERIMENT, "requests"):
        tap.case(f"h5py reads {table}: every value of {len(files)} files", compare, table, by_h5py)
        tap.case(f"pandas.read_hdf reads {table}: every value", compare, table, by_pandas)
        tap.case(f"pandas.DataFrame of h5py's array, {table}: every value", compare, table, two_lines)
    tap.case("attributes: schema, what H5TB writes, units, roles, counts", attributes)
    tap.case("checksums: Fletcher-32 and a hash for each chunk, of every table", checksums)
    tap.case("a damaged row: h5py refuses it, and we do", damaged, os.path.join(home, "damaged"))
    for name, (change, options) in ACCEPTED.items():
        tap.case(f"by h5py, {name}: read", accepted, os.path.join(home, "a " + name), change, options)
    for name, (change, options, text) in REFUSED.items():
        tap.case(f"by h5py, {name}: refused", refused, os.path.join(home, "r " + name), change, options, text)
tap.done()
