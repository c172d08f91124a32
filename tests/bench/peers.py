"""peers.py - what the benches beside PyTorch share: a program watched from outside, rows, their ids, the command line's ends."""
import ctypes, json, os, shutil, subprocess, sys, tempfile, threading, time

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


def ways(tmp, brake):
    """The ways in which the peers run, name to environment: as they come, and at their best. brake: auto, or both to release
    MKL's brake on an Intel CPU too, where it changes nothing."""
    name, isa = vendor(), onednn.needed()
    if isa:
        print(f"# PyTorch's AMX products end with an illegal instruction on this machine: ONEDNN_MAX_CPU_ISA={isa}", flush=True)
        os.environ["ONEDNN_MAX_CPU_ISA"] = isa
    if name and (name != "GenuineIntel" or brake == "both"):
        library = os.path.join(tmp, "release.so")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-", "-o", library], check=True, text=True,
                       input=RELEASE)
        free = {"LD_PRELOAD": library}
        print(f"# {name}: MKL's brake on CPUs that are not Intel's is released too (LD_PRELOAD)", flush=True)
        return {"": {}, "MKL released": free, "MKL released, memory kept": dict(free, **KEEP_MEMORY)}
    if name:
        print(f"# {name}: MKL takes its fastest kernels by itself, and has no brake to release", flush=True)
    else:
        print("# not an x86 CPU: no MKL, no brake", flush=True)
    return {"": {}, "memory kept": KEEP_MEMORY}


def check_brake():
    """Of a worker, at its end: where MKL's brake was to be released, MKL has asked the library that does it."""
    if "LD_PRELOAD" in os.environ and ctypes.c_int.in_dll(ctypes.CDLL(None), "tune_brake_asked").value == 0:
        sys.exit("MKL never asked whether the CPU is Intel's: its brake is not released, or this PyTorch has no MKL")


def watched(command, env=None, stdin=None):
    """Run it; its stdout, and the highest RssAnon (sampled every 20 ms) and VmHWM in bytes."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=dict(os.environ, **(env or {})))
    peak = {"RssAnon": 0, "VmHWM": 0}

    def watch():
        while p.poll() is None:
            try:
                for line in open(f"/proc/{p.pid}/status"):
                    name = line.split(":")[0]
                    if name in peak:
                        peak[name] = max(peak[name], int(line.split()[1]) * 1024)
            except OSError:
                pass
            time.sleep(0.02)

    t = threading.Thread(target=watch)
    t.start()
    out, err = p.communicate(stdin)
    t.join()
    if p.returncode:
        sys.exit(f"{command[0]} ended with {p.returncode}:\n{out[-2000:]}{err[-3000:]}")
    return out, peak


def worker(job, way):
    """The calling program again as --worker, in a process of its own, which reads the job and prints an object. way: what its
    environment has besides."""
    out, peak = watched([sys.executable, sys.argv[0], "--worker"], dict(way, OMP_NUM_THREADS=str(THREADS)), json.dumps(job))
    return json.loads(out.splitlines()[-1]), peak


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
    """measure(model, tmp) with smollm2-135m's shape, or so many of its layers, in a folder of its own."""
    tmp = tempfile.mkdtemp()
    try:
        model = os.path.join(tmp, "model")
        subprocess.run([f"{BUILD}/init_model", "--like", "smollm2-135m", "--layers", str(layers), "--seed", "1",
                        "--dtype", "float32", model], check=True, stdout=subprocess.DEVNULL)
        measure(model, tmp)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
