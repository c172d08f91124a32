"""browser.py - the studio's page in a real browser. tests/studio/browser.sh makes what it shows, and runs it.

Each view at four widths, dark and light: nothing on the console, nothing that the page's policy forbids, no request to another
host, nothing wider than the window, no serious finding of axe-core. Then what one does: with the keyboard alone, with live runs,
jobs and points. It waits for what is to be seen, never for a time; the times that it prints decide nothing.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
import tap  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402
import axe_playwright_python  # noqa: E402

BUILD = Path(os.environ["BUILD"])
ROOT = Path(os.environ["TUNE_ROOT"])
SHOTS = BUILD / "browser"
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
WIDTHS = (360, 768, 1280, 2560)
PATIENCE = 1000 * int(os.environ.get("TUNE_BROWSER_PATIENCE", "60"))  # milliseconds: other work may keep the cores
HOSTILE = 'runs/<img src=x onerror="alert(1)">'
SPACE = "store=samples&about=space.yaml"


def quoted(text):
    return urllib.parse.quote(text, safe="")


class Server:
    """build/studio on the root; its port stays when it is started again."""

    def __init__(self):
        self.port, self.process = 0, None

    def start(self):
        self.process = subprocess.Popen([BUILD / "studio", "--root", ROOT, "--port", str(self.port)], stdout=subprocess.PIPE,
                                        stderr=open(ROOT.parent / "studio.log", "a"), text=True)
        line = self.process.stdout.readline()
        found = re.search(r"http://[^:/]+:(\d+)/", line)
        if not found:
            raise RuntimeError(f"the studio said {line!r}: {(ROOT.parent / 'studio.log').read_text()[-500:]}")
        self.port = int(found.group(1))
        self.address = f"http://127.0.0.1:{self.port}/"

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def start_job(self, slot="none", **values):
        """Start finetune_full on the tiny model, as the form does; the job's number. Other tests may hold the cores, so it waits for none."""
        body = {"program": "finetune_full", "slot": slot, "values": {"model": "models/tiny", "dataset": "datasets/stories.jsonl", "limit": 40, "max_length": 64,
                                                       "batch_size": 4, "log_every": 1, "save": False, **values}}
        request = urllib.request.Request(self.address + "api/jobs", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE / 1000) as answer:
            return json.load(answer)["id"]

    def get(self, path):
        with urllib.request.urlopen(self.address + path.lstrip("/"), timeout=PATIENCE / 1000) as answer:
            return json.load(answer)


class Page:
    """A window of the browser that notes all that a page must not do."""

    def __init__(self, browser, server, width=1280, scheme="light"):
        self.server, self.faults = server, []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.context.set_default_timeout(PATIENCE)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.address)
        self.context.add_init_script("addEventListener('securitypolicyviolation', e => console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))")
        self.page = self.context.new_page()
        self.page.on("console", self.note)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.ask(request.url))
        self.expected = ()

    def note(self, message):
        if message.type in ("error", "warning") and not any(re.search(one, message.text) for one in self.expected):
            self.faults.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def ask(self, url):
        if not url.startswith((self.server.address, "data:", "blob:")):
            self.faults.append(f"a request to {url}")

    def open(self, hash_, seen):
        self.page.goto(self.server.address + hash_)
        self.page.wait_for_selector(seen, state="visible")

    def settle(self):
        """Two frames after the last answer of the server: what is drawn is there."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")

    def wide(self):
        return self.page.evaluate("""() => {
            const most = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= most) return "";
            const who = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > most + 1 &&
                !e.closest(".scroller, .picture, pre, [class*=scroll]")).slice(0, 3).map(e => e.tagName + "." + (e.getAttribute("class") || "") + "#" + e.id);
            return `${document.documentElement.scrollWidth} of ${most} px: ` + who.join(", ");
        }""")

    def axe(self):
        self.page.evaluate(AXE)
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        return [f"{v['id']} ({v['impact']}): {v['nodes'][0]['html'][:160]} {(v['nodes'][0].get('failureSummary') or '')[:200]}"
                for v in found["violations"] if v["impact"] in ("serious", "critical")]

    def close(self):
        self.context.close()


# ---- each view ----

def views(server):
    first, both = quoted("runs/first"), quoted("runs/first,runs/second")
    rows = server.get(f"/api/answers/points?{SPACE}")["rows"]
    failed = quoted(next(row[0] for row in rows if row[2] == "failed"))
    return {
        "runs": ("#/runs", "text=second"),
        "run": (f"#/runs/{first}", "main svg"),
        "compare": (f"#/compare?ids={both}", "main svg"),
        "new": ("#/new?program=finetune_full", "#option-lr"),
        "jobs": ("#/new/jobs", "main .empty, main table"),
        "spaces": ("#/spaces", "text=space-"),
        "space": (f"#/spaces/space?{SPACE}", "main table.map"),
        "point": (f"#/spaces/space?{SPACE}&point={failed}", ".panel h2"),
        "picture": (f"#/spaces/space?{SPACE}&tab=picture", ".picture svg"),
        "pareto": (f"#/spaces/space?{SPACE}&tab=picture&maximize=dataset_tokens_per_second&minimize=train_runtime", ".picture svg [data-row]"),
        "best": (f"#/spaces/space?{SPACE}&tab=best", ".space-body table"),
        "effect": (f"#/spaces/space?{SPACE}&tab=effect", ".space-body .note"),
        "sides": (f"#/spaces/space?{SPACE}&tab=compare&left=batch_size%3D1&right=batch_size%3D2", ".space-body table"),
        "missing": (f"#/spaces/space?{SPACE}&tab=missing", ".space-body button"),
    }


def check_views(browser, server):
    for scheme in ("light", "dark"):
        for width in WIDTHS:
            window = Page(browser, server, width, scheme)
            wide, found, unseen = [], [], []
            for name, (hash_, seen) in views(server).items():
                try:
                    window.open(hash_, seen)
                except Exception as error:  # the others are still to be seen
                    unseen.append(f"{name}: {str(error).splitlines()[0]}")
                window.settle()
                window.page.screenshot(path=SHOTS / f"{name}-{width}-{scheme}.png", full_page=True)
                over = window.wide()
                if over:
                    wide.append(f"{name}: {over}")
                if width in (360, 1280):
                    found += [f"{name}: {one}" for one in window.axe()]
            at = f"{width} px, {scheme}"
            tap.ok(not unseen, f"{at}: each view is drawn", "\n# ".join(unseen))
            tap.ok(not window.faults, f"{at}: nothing on the console, nothing forbidden, no other host", "\n# ".join(window.faults[:8]))
            tap.ok(not wide, f"{at}: nothing is wider than the window", "\n# ".join(wide))
            if width in (360, 1280):
                tap.ok(not found, f"{at}: axe has no serious finding", "\n# ".join(found[:12]))
            window.close()


# ---- what one does ----

def until(page, condition, *argument):
    """Waits until an expression of JavaScript is true. wait_for_function() would break the page's policy."""
    for _ in range(PATIENCE // 50):
        if page.evaluate(condition if argument else f"() => Boolean({condition})", *argument):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not in {PATIENCE // 1000} s: {condition}")


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


def tab_to(page, selector, most=200):
    """Presses Tab until the focus is on such an element."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("s => Boolean(document.activeElement && document.activeElement.matches(s))", selector):
            return
    raise AssertionError(f"{most} times Tab do not reach {selector}")


def text_is_text(browser, server):
    """A run whose name would be markup is text in the list, on its page, in the comparison and in the form."""
    window = Page(browser, server)
    for hash_, seen in (("#/runs", "text=<img src=x"), (f"#/runs/{quoted(HOSTILE)}", "text=<img src=x"),
                        (f"#/compare?ids={quoted(HOSTILE)}", "text=<img src=x"), (f"#/new?from={quoted(HOSTILE)}", "#option-lr")):
        window.open(hash_, seen)
        expect(window.page.locator("img[src=x]").count() == 0, f"{hash_}: markup")
    expect(not window.faults, window.faults)
    window.close()


def keyboard_alone(browser, server):
    """Tab, Enter and the arrows: sort, filter, open a run, the form, a change, and its command."""
    window = Page(browser, server)
    page = window.page
    window.open("#/runs", "text=second")
    tab_to(page, "a.skip")
    tab_to(page, "#nav a[href='#/new']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#option-lr")
    tab_to(page, "#option-search")
    page.keyboard.type("weight decay")
    page.wait_for_selector("#option-weight_decay", state="visible")
    expect(not page.locator("#option-lr").is_visible(), "the search leaves lr")
    tab_to(page, "#option-weight_decay")
    page.keyboard.type("0.25")
    until(page, "document.querySelector('[aria-label=\"The command\"]').textContent.includes('--weight-decay 0.25')")
    expect("weight_decay=0.25" in page.url, "the change is not in the address")
    page.reload()
    page.wait_for_selector("#option-weight_decay", state="visible")
    expect(page.input_value("#option-weight_decay") == "0.25", "a reload loses the change")
    expect(not window.faults, window.faults)
    window.close()


def runs_by_keyboard(browser, server):
    """The list: filter, sort, select two, compare, by keys alone."""
    window = Page(browser, server)
    page = window.page
    window.open("#/runs", "text=second")
    tab_to(page, "main input[type=search], main input[type=text]")
    page.keyboard.type("first")
    until(page, "![...document.querySelectorAll('main tbody tr[data-row]')].some(r => r.textContent.includes('second'))")
    for _ in range(5):
        page.keyboard.press("Backspace")
    until(page, "[...document.querySelectorAll('main tbody tr[data-row]')].some(r => r.textContent.includes('second'))")
    tab_to(page, "main th button.sort")
    page.keyboard.press("Enter")
    page.wait_for_selector("main th[aria-sort]")
    tab_to(page, "main tr[data-row]")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    until(page, "document.querySelectorAll('main tr[aria-selected=true]').length === 2")
    tab_to(page, "main a[href*='#/compare'], main button[data-do=compare]")
    page.keyboard.press("Enter")
    until(page, "location.hash.startsWith('#/compare')")
    page.wait_for_selector("main svg")
    expect(not window.faults, window.faults)
    window.close()


def a_bad_value(browser, server):
    """An option's error stands at its field."""
    window = Page(browser, server)
    window.expected = ("status of 400",)
    window.open("#/new?program=finetune_full", "#option-lr")
    window.page.fill("#option-lr", "much")
    window.page.wait_for_selector("#option-lr[aria-invalid=true]")
    expect(window.page.locator("#option-lr-problem").inner_text() != "", "no text at the field")
    window.page.fill("#option-lr", "1e-3")
    window.page.wait_for_selector("#option-lr:not([aria-invalid])")
    expect(not window.faults, window.faults)
    window.close()


PRESET = "program=finetune_full&model=models%2Ftiny&dataset=datasets%2Fstories.jsonl&limit=40&max_length=64&batch_size=4&log_every=1&save=no"


def preview(browser, server):
    """The rows as the model sees them, before a start."""
    window = Page(browser, server)
    window.open(f"#/new?{PRESET}", "#option-lr")
    window.page.get_by_role("button", name="Preview").click()
    window.page.wait_for_selector(".tokens .token")
    expect(window.page.locator(".token.trained").count() > 0, "no token is marked as trained on")
    window.page.screenshot(path=SHOTS / "preview.png", full_page=True)
    expect(not window.faults, window.faults)
    window.close()


def start_and_stop(browser, server):
    """Start a run, see it live, stop it, see what a deletion takes, and clone it."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/new?{PRESET}&epochs=1000&output=runs%2Flive", "#option-lr")
    until(page, "document.querySelector('[aria-label=\"The command\"]').textContent.includes('runs/live')")
    page.select_option("#slot", "none")  # others may hold the cores
    page.get_by_role("button", name="Start", exact=True).click()
    until(page, "location.hash.startsWith('#/runs/runs%2Flive') || location.hash.startsWith('#/new/jobs')")
    window.open("#/runs", "text=live")  # it appears in the list by itself
    window.open("#/new/jobs", "table.jobs")
    page.get_by_role("link", name=re.compile("finetune_full|live")).first.click()
    until(page, "/step/.test(document.querySelector('pre.log') ? document.querySelector('pre.log').textContent : '')")
    page.screenshot(path=SHOTS / "job-live.png", full_page=True)
    page.get_by_role("button", name=re.compile("^stop ")).first.click()
    page.wait_for_selector("dialog[open]")
    page.locator("dialog[open]").get_by_role("button", name="stop").click()
    page.wait_for_selector("table.jobs .state-succeeded, table.jobs .state-cancelled, table.jobs .state-failed")
    page.get_by_role("button", name=re.compile("^delete ")).first.click()
    page.wait_for_selector("dialog[open] .files li")
    expect(re.search(r"log\.txt\s+[\d.]+ [KM]?i?B", page.locator("dialog[open] .files").inner_text()), "the files have no sizes")
    page.screenshot(path=SHOTS / "delete.png")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    expect((ROOT / ".studio" / "jobs").exists(), "the job went though Escape was pressed")
    window.open(f"#/new?from={quoted('runs/live')}", "#option-lr")
    until(page, "document.querySelector('#option-batch_size').value === '4'")
    page.fill("#option-lr", "0.5")
    page.wait_for_selector(".field.differs")
    page.screenshot(path=SHOTS / "clone.png", full_page=True)
    expect(not window.faults, window.faults)
    window.close()


def row_of(name):
    return f"main tr[data-id='{name}']"


def end_job(server, page, name):
    """Stop the run's job by its button in the list, or cancel it where it waits for cores that others hold. Not while it is about to begin."""
    for _ in range(PATIENCE // 100):
        job = next(run["job"] for run in server.get("/api/runs?limit=200")["runs"] if run["id"] == name)
        if job["state"] == "running" or (job["state"] == "queued" and job["reason"]):
            break
        time.sleep(0.1)
    verb = "stop" if job["state"] == "running" else "cancel"
    page.locator(f"{row_of(name)} button[aria-label='{verb} job {job['id']}']").click()
    page.locator("dialog[open]").get_by_role("button", name=verb).click()


def beside_the_run(browser, server):
    """Stop asks once; resume and retry stand at the run; the title tells how far it is."""
    window = Page(browser, server)
    page = window.page
    server.start_job(epochs=1000, save=True, save_every=5, keep_last=1, output="runs/beside")
    window.open("#/runs", f"{row_of('runs/beside')} button[aria-label^='stop job']")
    window.open(f"#/runs/{quoted('runs/beside')}", "#run-stop")
    until(page, "/^\\d+ % beside/.test(document.title)")
    page.click("#run-stop")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    page.click("#run-stop")
    page.locator("dialog[open]").get_by_role("button", name="Stop it").click()
    expect(page.locator("dialog").count() == 0, "it asks twice")
    page.wait_for_selector("#run-resume")
    page.wait_for_selector(".run-head .state-stopped")
    until(page, "!document.title.includes('%')")
    page.click("#run-resume")
    page.locator("dialog[open]").get_by_role("button", name="Resume").click()
    page.wait_for_selector("#run-stop, .run-head button[aria-label^='cancel job']")
    window.open("#/runs", row_of("runs/beside"))
    end_job(server, page, "runs/beside")
    page.wait_for_selector(f"{row_of('runs/beside')} button[aria-label^='resume job']")
    page.screenshot(path=SHOTS / "jobs-of-runs.png")
    expect("#/runs" in page.url, "a button of the list left it")
    page.locator(f"{row_of('runs/beside')} button[aria-label^='resume job']").click()
    end_job(server, page, "runs/beside")
    page.wait_for_selector(f"{row_of('runs/beside')} button[aria-label^='retry job']")
    expect(not window.faults, window.faults)
    window.close()


def retry(browser, server):
    """A job that failed is started again when its cause is away."""
    window = Page(browser, server)
    page = window.page
    job = server.start_job(dataset="late.jsonl", max_steps=2, output="runs/late")
    window.open(f"#/new/jobs?job={job}", "table.jobs")
    page.wait_for_selector("tr.chosen .state-failed")
    until(page, "document.querySelector('tr.chosen .why').textContent.includes('late.jsonl')")
    shutil.copy(ROOT / "datasets" / "stories.jsonl", ROOT / "late.jsonl")
    page.locator("tr.chosen").get_by_role("button", name=re.compile("^retry")).click()
    page.wait_for_selector("tr.chosen .state-succeeded")
    expect(page.locator("table.jobs .state-failed").count() >= 1, "the first one is gone")
    expect(not window.faults, window.faults)
    window.close()


def waits(browser, server):
    """What waits in the queue says for what, and who has it."""
    window = Page(browser, server)
    page = window.page
    jobs = [server.start_job(slot="auto", epochs=1000, output=f"runs/{name}") for name in ("holds", "waits")]
    window.open("#/new/jobs", "table.jobs")
    until(page, "[...document.querySelectorAll('table.jobs .why')].some(e => /^waits for a free slot: \\d+ of \\d+ cores? used by .*; it needs \\d+$/.test(e.textContent))")
    page.screenshot(path=SHOTS / "jobs-wait.png")
    page.get_by_role("button", name=f"cancel job {jobs[1]}", exact=True).click()
    page.locator("dialog[open]").get_by_role("button", name="cancel").click()
    page.get_by_role("button", name=re.compile(f"^(stop|cancel) job {jobs[0]}$")).click()  # it may wait for another's cores, too
    page.locator("dialog[open]").get_by_role("button", name=re.compile("^(stop|cancel)$")).click()
    until(page, "!document.querySelector('table.jobs .state-running, table.jobs .state-stopping, table.jobs .state-queued')")
    expect(not window.faults, window.faults)
    window.close()


def log_of_a_run(browser, server):
    """A run's log: found lines, the toggle that stops when one scrolls up and goes on when it is set."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/runs/{quoted('runs/beside')}", "pre.log")
    until(page, "(p => p.textContent.includes('report') && p.scrollTop > 0 && p.scrollTop + p.clientHeight >= p.scrollHeight - 4)(document.querySelector('pre.log'))")
    expect(page.is_checked("#log-follow"), "it does not follow")
    page.evaluate("() => document.querySelector('pre.log').scrollTo(0, 0)")
    until(page, "!document.querySelector('#log-follow').checked")
    page.check("#log-follow")
    until(page, "(p => p.scrollTop > 0 && p.scrollTop + p.clientHeight >= p.scrollHeight - 4)(document.querySelector('pre.log'))")
    find = page.get_by_label("Search the log")
    find.fill("no such text")
    find.press("Enter")
    page.wait_for_selector(".found li >> text=is nowhere in the log")
    find.fill("run folder")
    find.press("Enter")
    page.locator(".found li button").first.click()
    until(page, "document.querySelector('pre.log').textContent.includes('run folder') && !document.querySelector('#log-follow').checked")
    expect(not window.faults, window.faults)
    window.close()


def log_follows(browser, server):
    """The log follows until one scrolls up; then it stays."""
    window = Page(browser, server)
    page = window.page
    window.open("#/new/jobs", "table.jobs")
    page.locator("table.jobs td a").first.click()
    until(page, "/report/.test((document.querySelector('pre.log') || {}).textContent)")
    until(page, "(p => p.scrollTop + p.clientHeight >= p.scrollHeight - 8)(document.querySelector('pre.log'))")
    page.evaluate("() => document.querySelector('pre.log').scrollTo(0, 0)")
    until(page, "!document.querySelector('#job-follow').checked")
    expect(not window.faults, window.faults)
    window.close()


def delete_a_run(browser, server):
    """A run's page says which files go and how large they are; only then are they deleted."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/runs/{quoted('runs/live')}", "main svg")
    page.get_by_role("button", name="Delete").click()
    page.wait_for_selector("dialog[open] >> text=metrics.jsonl")
    size = (ROOT / "runs" / "live" / "run.json").stat().st_size
    told = page.locator("dialog[open] .files li", has_text="run.json").inner_text()
    expect(f"{size} B" in told or f"{size / 1024:.1f} KiB" in told, f"run.json has {size} bytes: {told}")
    expect(re.search(r"Delete \d+ files, [\d.]+ [KM]?i?B", page.locator("dialog[open] h2").inner_text()), "no sum")
    expect((ROOT / "runs" / "live").exists(), "deleted before the answer")
    page.screenshot(path=SHOTS / "delete-run.png")
    page.locator("dialog[open]").get_by_role("button", name=re.compile("^Delete")).click()
    until(page, "location.hash === '#/runs'")
    expect(not (ROOT / "runs" / "live").exists(), "it is still there")
    expect(not window.faults, window.faults)
    window.close()


def measured_in_a_shell(browser, server):
    """Open pages show what a sweep of a shell measures; the focus stays."""
    text = (ROOT / "space.yaml").read_text().replace("32, 64", "64").replace("values: [1, 2]", "values: [1]")
    (ROOT / "late.yaml").write_text(text)
    of_all, of_one = Page(browser, server), Page(browser, server)
    of_one.expected = ("404",)  # until it is measured
    of_all.open("#/spaces", "text=late.yaml")
    of_all.page.locator("main a[href*='space.yaml']").first.focus()
    of_one.open("#/spaces/space?store=late&about=late.yaml", "text=Nothing of it is measured")
    subprocess.run([BUILD / "sweep", "late.yaml", "--store", "late"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(of_one.page, "document.querySelector('.counts').textContent.includes('1 measured')")
    of_one.page.wait_for_selector("table.map .point-measured")
    of_all.page.wait_for_selector("section[aria-label='store late']")
    expect(of_all.page.evaluate("document.activeElement.matches('a[href*=\"space.yaml\"]')"), "the focus is lost")
    for window in (of_all, of_one):
        expect(not window.faults, window.faults)
        window.close()


def measure_the_missing(browser, server):
    """What is missing in a space is measured by a job of its own."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/spaces/space?{SPACE}&tab=missing", ".space-body button.main")
    page.get_by_role("button", name="Measure the missing ones").click()
    page.wait_for_selector("dialog[open] >> text=sweep space.yaml --store samples")
    page.locator("dialog[open]").get_by_role("button", name="Start").click()
    until(page, "location.hash.startsWith('#/new/jobs?job=')")
    until(page, "/measured|missing|failed|space/.test((document.querySelector('pre.log') || {}).textContent)")
    until(page, "document.querySelector('tr.chosen .state-succeeded, tr.chosen .state-failed')")
    expect(not window.faults, window.faults)
    window.close()


def range_of(page):
    """The lowest and highest x of the first chart, and the address."""
    return page.evaluate("() => (d => [Number(d.xMin), Number(d.xMax)])(document.querySelector('main svg g.plot').dataset)")


def curves(browser, server):
    """The cursor over a chart tells values; a drag zooms, a double click shows all again."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/runs/{quoted('runs/first')}", "main svg")
    window.settle()
    whole = range_of(page)
    box = page.locator("main svg").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    before = page.locator(".legend b").first.inner_text()
    page.mouse.move(x + box["width"] / 8, y)
    until(page, "before => document.querySelector('.legend b').textContent !== before && document.querySelector('.legend b').textContent.includes('@')", before)
    page.screenshot(path=SHOTS / "cursor.png")
    page.mouse.down()
    page.mouse.move(x + box["width"] / 4, y, steps=5)
    page.mouse.up()
    until(page, "whole => (d => Number(d.xMin) > whole[0] && Number(d.xMax) < whole[1])(document.querySelector('main svg g.plot').dataset)", whole)
    expect("from=" in page.url and "to=" in page.url, "the zoom is not in the address")
    page.reload()
    page.wait_for_selector("main svg g.plot")
    expect(range_of(page)[1] < whole[1], "a reload loses the zoom")
    page.locator("main svg").first.dblclick(position={"x": box["width"] / 2, "y": box["height"] / 2})
    until(page, "whole => (d => Number(d.xMin) === whole[0] && Number(d.xMax) === whole[1])(document.querySelector('main svg g.plot').dataset)", whole)
    expect("from=" not in page.url, "the address still has the zoom")
    expect(not window.faults, window.faults)
    window.close()


def diverged(browser, server):
    """Where a loss was not finite the curve has a mark that says so."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/compare?ids={quoted('runs/first,runs/wild')}", "main svg path.diverged")
    expect(page.locator("main svg path.diverged").count() == 1, "not one mark")
    told = page.locator("main svg path.diverged title").text_content()
    expect("wild" in told and "not finite" in told, told)
    expect("wild diverged" in page.locator("figcaption").first.inner_text(), "the caption does not say it")
    expect(not window.faults, window.faults)
    window.close()


def make_grid():
    """Runs of two options, learning rate and batch size, with known losses; one cell has two of them."""
    losses = {}
    for name, lr, batch, loss in (("a", 0.1, 2, 3.5), ("b", 0.2, 2, 2.5), ("c", 0.1, 4, 4.5), ("d", 0.2, 4, 1.5), ("e", 0.2, 4, 1.75)):
        folder = ROOT / "grid" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.json").write_text(json.dumps({"program": "finetune_full", "status": "finished", "planned_steps": 3, "started": "2026-11-26T10:00:00Z", "ended": "2026-11-26T10:01:00Z",
                                                     "options": {"lr": lr, "batch_size": batch}, "sources": {"lr": "flag"}}))
        with open(folder / "metrics.jsonl", "w") as out:
            for step, value in enumerate((9, loss - 1, loss), 1):  # the lowest is not the last
                out.write(json.dumps({"step": step, "loss": value, "accuracy": step / 10, "elapsed_s": step, "tokens": 8}) + "\n")
        losses[f"grid/{name}"] = loss
    return losses


def await_runs(server, names):
    for _ in range(PATIENCE // 100):  # the studio looks for new runs every second or so
        if sum(run["id"] in names for run in server.get("/api/runs?limit=200")["runs"]) == len(names):
            return
        time.sleep(0.1)
    raise AssertionError(f"not all of these runs are listed: {names}")


def compare(browser, server):
    """Compare: best beside last, another metric as x, a heat map whose cell opens its run, each picture asked for once."""
    names = list(make_grid())
    await_runs(server, names)
    window = Page(browser, server)
    page = window.page
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    window.open("#/runs", f"{row_of('grid/a')}")
    ids = quoted(",".join(names))
    for turn in range(2):  # from the list, too, where an older comparison was
        asked.clear()
        window.open(f"#/compare?ids={ids}", "main svg")
        page.wait_for_selector("table.map a.point")
        until(page, "document.querySelectorAll('main svg [data-curve]').length >= 5")
        page.wait_for_timeout(400)  # nothing more is expected; a second picture would come after 150 ms
        for part in ("/plot.svg", "/curves?"):
            expect(sum(part in one for one in asked) == 1, f"{part} is asked for {sum(part in one for one in asked)} times")
        if turn == 0:
            window.open("#/runs", f"{row_of('grid/a')}")
    until(page, "document.querySelector('.compare-tables').textContent.includes('loss best')")
    metrics = page.evaluate("() => [...document.querySelectorAll('.matrix')].flatMap(t => [...t.rows].map(r => [...r.cells].map(c => c.textContent)))")
    last, best = next(row for row in metrics if row[0].startswith("loss last")), next(row for row in metrics if row[0].startswith("loss best"))
    expect([re.match(r"[\d.]+", cell)[0] for cell in last[1:]] == ["3.5", "2.5", "4.5", "1.5", "1.75"], last)
    expect([re.match(r"[\d.]+ @ \d", cell)[0] for cell in best[1:]] == ["2.5 @ 2", "1.5 @ 2", "3.5 @ 2", "0.5 @ 2", "0.75 @ 2"] and best[4].endswith("best"), best)
    cells = page.evaluate("() => [...document.querySelectorAll('table.map tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    expect(sorted(cells) == [["2", "3.5", "2.5"], ["4", "4.5", "1.5 of 2"]] or sorted(cells) == [["0.1", "3.5", "4.5"], ["0.2", "2.5", "1.5 of 2"]], cells)
    page.select_option("#chart-x", "accuracy")
    until(page, "(d => d.xTitle === 'accuracy' && Number(d.xMax) === 0.3)(document.querySelector('main svg g.plot').dataset)")
    expect("x=accuracy" in page.url, "the axis is not in the address")
    page.screenshot(path=SHOTS / "compare-grid.png", full_page=True)
    page.locator("table.map a.point", has_text="1.5").click()
    until(page, "location.hash.startsWith('#/runs/grid%2Fd')")
    expect(not window.faults, window.faults)
    window.close()


def saves(browser, server):
    """A chart's points as CSV and JSON in long form, its picture as SVG and PNG, saved and copied."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/runs/{quoted('runs/first')}", "main svg")
    page.get_by_role("button", name="Save", exact=True).first.click()
    panel = page.locator(".foot .menu-panel").first

    def saved(role, name):
        with page.expect_download() as waiting:
            panel.get_by_role(role, name=name, exact=True).click()
        return Path(waiting.value.path()).read_bytes()

    rows = [line.split(",") for line in saved("link", "CSV, all points").decode().splitlines()]
    losses = [json.loads(line) for line in (ROOT / "runs" / "first" / "metrics.jsonl").read_text().splitlines()]
    losses = [(str(row["step"]), key, row[key]) for key in ("loss", "eval_loss") for row in losses if key in row]
    expect(rows[0] == ["run", "step", "key", "value"] and [(row[1], row[2], float(row[3])) for row in rows[1:]] == losses, rows[:4])
    same = json.loads(saved("link", "JSON, all points"))
    expect([(str(row["step"]), row["key"], row["value"]) for row in same] == losses and same[0]["run"] == "runs/first", same[:3])
    expect(b"<svg" in saved("button", "SVG"), "no SVG")
    expect(saved("button", "PNG")[:8] == b"\x89PNG\r\n\x1a\n", "no PNG")
    panel.get_by_role("button", name="Copy as SVG").click()
    until(page, "async () => (await navigator.clipboard.readText()).includes('<svg')", None)
    panel.get_by_role("button", name="Copy as PNG").click()
    until(page, "async () => (await navigator.clipboard.read())[0].types.includes('image/png')", None)
    expect(not window.faults, window.faults)
    window.close()


def live_from_shell(browser, server):
    """A run that a shell starts appears in the list that is open."""
    window = Page(browser, server)
    window.open("#/runs", "text=second")
    run = subprocess.Popen([BUILD / "finetune_full", "--model", "models/tiny", "--dataset", "datasets/stories.jsonl", "--limit", "40", "--max-length",
                            "64", "--batch-size", "4", "--epochs", "1000", "--no-save", "--output", "runs/by_shell"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        window.page.wait_for_selector("text=by_shell")
    finally:
        run.terminate()
        run.wait()
    expect(not window.faults, window.faults)
    window.close()


def points(browser, server):
    """A point of the map opens its panel, from there its run; filters stay in the address."""
    window = Page(browser, server)
    page = window.page
    window.open(f"#/spaces/space?{SPACE}", "table.map")
    page.locator(".point.point-failed").first.click()
    page.wait_for_selector(".panel a.button")
    expect("point=" in page.url, "the point is not in the address")
    page.reload()
    page.wait_for_selector(".panel a.button")
    page.locator(".panel a.button").first.click()
    until(page, "location.hash.startsWith('#/runs/samples%2Fruns')")
    window.open(f"#/spaces/space?{SPACE}&tab=picture", ".picture [data-row]")
    page.locator(".picture [data-row]").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".panel h2")
    window.open(f"#/spaces/space?{SPACE}", "table.map")
    page.fill("#ask-where", "batch_size == 1")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.counts').textContent.includes('of 2 points')")
    expect("where=" in page.url, "the filter is not in the address")
    expect(not window.faults, window.faults)
    window.close()


def restart(browser, server):
    """The server goes and comes back: the page says so, and goes on by itself."""
    window = Page(browser, server)
    window.expected = ("ERR_CONNECTION", "Failed to load resource", "Failed to fetch")
    window.open("#/runs", "text=second")
    server.stop()
    window.page.wait_for_selector("#away:not([hidden])")
    server.start()
    window.page.wait_for_selector("#away", state="hidden")
    window.page.wait_for_selector("text=second")
    expect(not window.faults, window.faults)
    window.close()


# ---- twenty long runs ----

def long_runs(browser, server):
    """20 runs of 100,000 steps on one chart: how long the page takes is printed."""
    names = []
    for k in range(20):
        folder = ROOT / "runs" / f"long-{k:02}"
        shutil.copytree(ROOT / "runs" / "first", folder)
        with open(folder / "metrics.jsonl", "w") as out:
            out.writelines(f'{{"step": {i}, "loss": {5 / (1 + i / 2e4) + (i * 7919 + k * 104729) % 997 / 2e3:.4f}}}\n' for i in range(1, 100001))
        names.append(f"runs/long-{k:02}")
    ids = ",".join(names)
    await_runs(server, names)
    window = Page(browser, server)
    for turn in ("first", "again"):
        begin = time.monotonic()
        window.open("#/runs", "text=second")
        window.open(f"#/compare?ids={quoted(ids)}", "main svg")
        until(window.page, "document.querySelectorAll('main svg [data-curve]').length >= 20")
        asked = window.page.evaluate("() => performance.getEntriesByType('resource').filter(e => e.name.includes('/api/') && e.duration > 50)"
                                     ".map(e => Math.round(e.duration) + ' ms ' + decodeURIComponent(new URL(e.name).pathname))")
        print(f"# 20 runs of 100,000 steps, {turn}: {time.monotonic() - begin:.2f} s until drawn; answers above 50 ms: {', '.join(asked)}", flush=True)
        window.page.evaluate("() => performance.clearResourceTimings()")
    until(window.page, "document.querySelector('.compare-tables').textContent.includes('loss best')")  # the page has drawn all it asked for
    took = sorted(window.page.evaluate("""async () => {
        const svg = document.querySelector('main svg'), begin = performance.now();
        const text = new XMLSerializer().serializeToString(svg);
        const fresh = document.importNode(new DOMParser().parseFromString(text.replace(/<style>[^<]*<\\/style>/, ''), 'image/svg+xml').documentElement, true);
        svg.replaceWith(fresh);
        fresh.getBoundingClientRect();
        await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
        return performance.now() - begin;
    }""") for _ in range(5))
    print(f"# redraw of that picture, five times: {', '.join(f'{ms:.0f}' for ms in took)} ms", flush=True)
    note = window.page.locator("figcaption .note").first.inner_text()
    expect(re.search(r"\d of 2.000.000 points drawn", note), note)
    expect("/api/runs/metrics.csv?ids=" in window.page.get_attribute("figcaption .full-data", "href"), "no link to all points")
    window.page.screenshot(path=SHOTS / "long.png")
    expect(not window.faults, window.faults)
    window.close()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server is stopped, too
    server = Server()
    server.start()
    chosen = [one for one in os.environ.get("TUNE_BROWSER_ONLY", "").split(",") if one]
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=os.environ["TUNE_BROWSER"], args=["--no-sandbox", "--disable-dev-shm-usage"])
            if not chosen or "views" in chosen:
                check_views(browser, server)
            for check in (text_is_text, keyboard_alone, runs_by_keyboard, a_bad_value, preview, start_and_stop, log_follows, delete_a_run, beside_the_run, log_of_a_run, retry,
                          waits, curves, diverged, compare, saves, live_from_shell,
                          points, measured_in_a_shell, measure_the_missing, restart, long_runs):
                if not chosen or check.__name__ in chosen:
                    tap.case(check.__doc__.split("\n")[0], check, browser, server)
            browser.close()
    finally:
        server.stop()
    tap.done()


main()
