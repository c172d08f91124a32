"""peers.py - what the benches beside PyTorch share: a program watched from outside, rows, their ids, the command line's ends."""
import ctypes, json, os, shutil, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "peers"))
import onednn

BUILD = os.environ.get("BUILD", "build")
THREADS = len(os.sched_getaffinity(0))

# glibc gives large blocks back to the kernel at each free, and every step pays for their pages again. These settings keep
# them, in huge pages, as the allocators do that PyTorch's tuning guide advises.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "THP_MEM_ALLOC_ENABLE": "1"}
# PyTorch's wheels bring MKL, which asks one function of its own whether the CPU is Intel's, and else leaves its fastest kernels
# alone. A preloaded library answers in its place, and counts how often it was asked.
RELEASE = "int tune_brake_asked; int mkl_serv_intel_cpu_true(void) { tune_brake_asked++; return 1; }"


def vendor():
    """What x86 CPUs call themselves; "" for another processor."""
    names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("vendor_id")]
    return names[0] if names else ""


def ways(tmp, brake, say=lambda line: print(line, flush=True)):
    """The ways in which the peers run, name to environment: as they come, and at their best. brake: auto, or both to release
    MKL's brake on an Intel CPU too, where it changes nothing. say gets a line that tells which there are."""
    name, isa = vendor(), onednn.needed()
    if isa:
        say(f"# PyTorch's AMX products end with an illegal instruction on this machine: ONEDNN_MAX_CPU_ISA={isa}")
        os.environ["ONEDNN_MAX_CPU_ISA"] = isa
    if name and (name != "GenuineIntel" or brake == "both"):
        library = os.path.join(tmp, "release.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-", "-o", library], check=True, text=True,
                       input=RELEASE)
        free = {"LD_PRELOAD": library}
        say(f"# {name}: MKL's brake on CPUs that are not Intel's is released too (LD_PRELOAD)")
        return {"": {}, "MKL released": free, "MKL released, memory kept": dict(free, **KEEP_MEMORY)}
    if name:
        say(f"# {name}: MKL takes its fastest kernels by itself, and has no brake to release")
    else:
        say("# not an x86 CPU: no MKL, no brake")
    return {"": {}, "memory kept": KEEP_MEMORY}


def check_brake():
    """Of a worker, at its end: where MKL's brake was to be released, MKL has asked the library that does it."""
    if "LD_PRELOAD" in os.environ and ctypes.c_int.in_dll(ctypes.CDLL(None), "tune_brake_asked").value == 0:
        sys.exit("MKL never asked whether the CPU is Intel's: its brake is not released, or this PyTorch has no MKL")


def watched(command, env=None, stdin=None, clock=None):
    """Run it; its stdout, and the highest RssAnon (sampled every 20 ms) in bytes. clock: a list that takes the cores' clock
    in GHz, measured every other second beside it. A failure is a RuntimeError. Whatever ends this ends the program too."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=dict(os.environ, **(env or {})), start_new_session=True)
    peak = {"RssAnon": 0}

    def watch():
        due = time.monotonic() + 2
        while p.poll() is None:
            if clock is not None and time.monotonic() > due:
                clock.append(float(subprocess.run([f"{BUILD}/tests/bench/bench_clock"], capture_output=True, check=True).stdout))
                due = time.monotonic() + 2
            try:
                for line in open(f"/proc/{p.pid}/status"):
                    name = line.split(":")[0]
                    if name in peak:
                        peak[name] = max(peak[name], int(line.split()[1]) * 1024)
            except OSError:
                pass
            time.sleep(0.02)

    t = threading.Thread(target=watch)
    try:
        t.start()
        out, err = p.communicate(stdin)
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)  # PyTorch's compiler has processes of its own
        p.wait()
        if t.is_alive():
            t.join()
    if p.returncode:
        raise RuntimeError(f"{command[0]} ended with {p.returncode}:\n{out[-2000:]}{err[-3000:]}")
    return out, peak["RssAnon"]


def worker(job, way, clock=None):
    """The calling program again as --worker, in a process of its own, which reads the job and prints an object, kept under
    "said" what else it printed. way: what its environment has besides."""
    out, peak = watched([sys.executable, sys.argv[0], "--worker"], dict(way, OMP_NUM_THREADS=str(THREADS)), json.dumps(job), clock)
    objects = [line for line in out.splitlines() if line.startswith("{")]
    return dict(json.loads(objects[-1]), said=out), peak


def steps(run, tokens):
    """Seconds of each step of one of our runs, all of so many tokens."""
    lines = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    assert all(line["tokens"] == tokens for line in lines), "rows are too short"
    return [line["step_s"] for line in lines]


def long_rows(path, model, length):
    """Rows of the sample set put together until they are longer than that, to the path; the ids of the first 32."""
    text = [json.loads(line)["text"] for line in open("datasets/stories.jsonl")]
    each = 3 + length // 60
    with open(path, "w") as f:
        for i in range(0, len(text) - each, each):
            f.write(json.dumps({"text": " ".join(text[i:i + each])}) + "\n")
    out = subprocess.run([f"{BUILD}/tokenize", "--model", model], stdin=open(path), capture_output=True, text=True, check=True)
    return [json.loads(line)["ids"][:length] for line in out.stdout.splitlines()][:32]


def with_model(measure, layers=30):
    """measure(model, tmp) with smollm2-135m's shape, or so many of its layers, in a folder of its own; what it returns."""
    tmp = tempfile.mkdtemp()
    try:
        model = os.path.join(tmp, "model")
        subprocess.run([f"{BUILD}/init_model", "--like", "smollm2-135m", "--layers", str(layers), "--seed", "1",
                        "--dtype", "float32", model], check=True, stdout=subprocess.DEVNULL)
        return measure(model, tmp)
    except RuntimeError as e:
        sys.exit(str(e))
    except KeyboardInterrupt:
        sys.exit("interrupted")
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
