"""tap.py - what every peer script prints: one line of TAP per case, exit 1 if any failed, 77 if all were skipped."""
import sys
import traceback

_counts = {"ok": 0, "not ok": 0, "skip": 0}


def ok(condition, name, why=""):
    _counts["ok" if condition else "not ok"] += 1
    n = sum(_counts.values())
    print(f"{'ok' if condition else 'not ok'} {n} - {name}", flush=True)
    if not condition and why != "":
        print(f"# {why}", flush=True)
    return condition


def skip(name, why):
    _counts["skip"] += 1
    print(f"ok {sum(_counts.values())} - {name} # SKIP {why}", flush=True)


def case(name, function, *arguments):
    """Runs function; an exception is a failed case, not the end of the script."""
    try:
        why = function(*arguments)
        ok(not why, name, why)
    except Exception:
        ok(False, name, traceback.format_exc().replace("\n", "\n# "))


def done():
    print(f"1..{sum(_counts.values())}")
    sys.exit(1 if _counts["not ok"] else 0 if _counts["ok"] else 77)
