/* runs.js - the list of runs, and the page of a run. */
"use strict";

/* The runs that are ticked, kept while the page is open. */
const chosenRuns = new Set();
const PAGE_ROWS = 200;

/* What the filter box means: /regex/, expressions such as lr<1e-3, and words. */
function readFilter(text) {
    const t = (text || "").trim();
    if (/^\/.+\/$/.test(t)) return {search: t.slice(1, -1), regex: "true"};
    if (/[<>]|[=!]=|\b(and|or|in)\b/.test(t)) return {where: t};
    const equal = /^(\w[\w.]*)=(\S+)$/.exec(t);
    if (equal) return {where: `${equal[1]} == ${Number.isNaN(Number(equal[2])) && !/^(true|false)$/i.test(equal[2]) ? `"${equal[2]}"` : equal[2]}`};
    return {search: t};
}

function stepCell(r) {
    if (!r.planned_steps) return r.step === null ? "" : fmtNumber(r.step);
    const part = Math.min(1, (r.step || 0) / r.planned_steps);
    return el("span", {class: "progress"}, progressBar(part, `${r.name}: ${Math.round(100 * part)} %`), el("span", {}, `${fmtNumber(r.step)}/${fmtNumber(r.planned_steps)}`));
}

const colorDot = id => el("i", {class: `dot b${runColor(id)}`, "aria-hidden": "true"});

/* The job that wrote a run, as jobButtons takes it. */
const jobOf = r => (r.job ? {...r.job, folder: r.id, name: r.name, program: r.program} : null);
const jobBadge = job => el("a", {href: jobLink(job.id), title: job.reason || null}, `${job.id} ${job.state}`);

const runColumns = [
    {key: "state", title: "State", cell: r => el("span", {title: r.reason || null}, stateBadge(r.state))},
    {key: "name", title: "Name", className: "name", cell: r => [colorDot(r.id), el("a", {href: link("runs", [r.id]), tabindex: "-1", title: r.folder}, r.name)]},
    {key: "started", title: "Started", cell: r => el("span", {title: fmtTime(r.started)}, fmtAgo(r.started))},
    {key: "seconds", title: "Duration", number: true, cell: r => fmtDuration(r.seconds)},
    {key: "step", title: "Step", cell: stepCell},
    {key: "eta_s", title: "Left", number: true, sort: false, cell: r => (r.state === "running" ? fmtDuration(r.eta_s) : "")},
    {key: "tokens_per_s", title: "Tokens/s", number: true, cell: r => fmtNumber(r.tokens_per_s, 3)},
    {key: "loss", title: "Loss", number: true, cell: r => fmtNumber(r.loss)},
    {key: "eval_loss", title: "Eval loss", number: true, cell: r => fmtNumber(r.eval_loss)},
    {key: "best_eval_loss", title: "Best eval loss", number: true, cell: r => fmtNumber(r.best_eval_loss)},
    {key: "program", title: "Program", cell: r => r.program || ""},
    {key: "folder", title: "Folder", cell: r => r.folder},
    {key: "reason", title: "Reason", className: "wide", cell: r => el("span", {title: r.reason || null}, r.reason || "")},
];
const usualColumns = ["state", "name", "started", "seconds", "step", "eta_s", "tokens_per_s", "loss", "eval_loss"];

view("runs", (main, params, parts) => (parts.length && parts[0] ? showRun(main, params, parts[0]) : listRuns(main, params)), "Runs");

function listRuns(main, params) {
    let pages = new Map(), fresh = new Set(), asked = new Map(), selected = 0, total = 0, token = 0, turn = 0, last = null, known = false;
    const programs = new Set();
    let anyJob = false, jobs = null;
    const status = el("span", {class: "note", role: "status"}), trouble = el("p", {class: "problem", role: "alert", hidden: true});
    const body = el("div", {class: "list-body"});

    const row = i => { const page = pages.get(Math.floor(i / PAGE_ROWS)); return page ? page[i % PAGE_ROWS] : null; };
    const shownColumns = () => (params.columns ? params.columns.split(",") : [...usualColumns.slice(0, 2), ...(anyJob ? ["job"] : []), ...usualColumns.slice(2), ...((last && last.differing) || []).filter(c => !/(^|_)(output|resume|overwrite)$/.test(c)).slice(0, 6).map(c => `=${c}`)]);
    function allColumns() {
        const names = (last && last.columns) || [];
        return [...runColumns, jobColumn, ...names.filter(n => !runColumns.some(c => c.key === n)).map(n => {
            const unit = last.units && last.units[n];
            return {key: `=${n}`, title: n, unit, number: true, cell: r => fmtValue(r.values && r.values[n])};
        })];
    }
    const jobColumn = {key: "job", title: "Job", sort: false, cell: r => { const job = jobOf(r); return job ? el("span", {class: "job-cell"}, jobBadge(job), jobButtons(job, again)) : ""; }};
    function again() { fresh = new Set(); table.drawRows(); }
    function columns() {
        const all = new Map(allColumns().map(c => [c.key, c]));
        return shownColumns().map(k => all.get(k) || (k.startsWith("=") ? {key: k, title: k.slice(1), number: true, cell: r => fmtValue(r.values && r.values[k.slice(1)])} : null)).filter(Boolean);
    }
    const sortName = () => (params.group || params.sort || "").replace(/^=/, "");

    function path(page) {
        const extra = shownColumns().filter(k => k.startsWith("=")).map(k => k.slice(1));
        return query("/api/runs", {...readFilter(params.q), state: params.state, program: params.program, since: params.since, sort: sortName(),
                                   reverse: sortName() ? (params.group ? "" : params.reverse) : "", columns: extra.join(","), offset: page * PAGE_ROWS || "", limit: PAGE_ROWS});
    }

    async function load(page) {
        const mine = turn, why = path(page);
        if (asked.get(page) === why) return;
        asked.set(page, why);
        try {
            const d = await api(why);
            if (mine !== turn) return;
            const had = anyJob;
            anyJob = anyJob || d.runs.some(r => r.job);
            const first = last === null || anyJob !== had, names = JSON.stringify([d.differing, d.columns.length]), before = last && JSON.stringify([last.differing, last.columns.length]);
            last = d;
            selected = d.selected;
            total = d.total;
            known = true;
            pages.set(page, d.runs);
            fresh.add(page);
            for (const r of d.runs) if (r.program) programs.add(r.program);
            trouble.hidden = true;
            if (first || names !== before) { table.set({columns: columns()}); drawTools(); }
            show();
        } catch (problem) {
            if (problem.away) throw problem;
            if (mine === turn) { fill(trouble, problem.detail || problem.message); trouble.hidden = false; }
        } finally {
            if (asked.get(page) === why) asked.delete(page);
        }
    }

    function show() {
        const indexing = last && last.indexed === false;
        fill(status, selected === total ? `${fmtNumber(total)} run${total === 1 ? "" : "s"}` : `${fmtNumber(selected)} of ${fmtNumber(total)} runs`,
             indexing ? ", still reading folders" : "", last && last.folders_too_deep ? `, ${last.folders_too_deep} folders too deep to look into` : "",
             last && last.columns_left_out ? `, ${last.columns_left_out} columns left out` : "",
             ...[["folders_linked", "links to folders, not followed"], ["folders_not_utf8", "folders with names that are not UTF-8"], ["leading_out", "runs with files that lead out of the root, not read"]]
                 .map(([key, text]) => last && last[key] ? `, ${last[key]} ${text}` : ""), last && last.sort_units ? `, several units apart: ${last.sort_units}` : "");
        if (known && total === 0 && !indexing) {
            if (!body.querySelector(".empty")) fill(body, empty("No runs yet", "A run is a folder that a recipe wrote. Start one in a shell, and it appears here by itself:",
                "build/finetune_full --model models/quickstart --dataset datasets/stories.jsonl --output runs/first"),
                el("p", {class: "note"}, "Or fill in a form: ", el("a", {href: "#/new"}, "New run"), ". For a first model and data: ", el("code", {}, "make quickstart")));
            return;
        }
        if (known && selected === 0) {
            if (!body.querySelector(".empty")) fill(body, empty("No run meets the filter", "The command line asks the same:", `build/runs list --where ${JSON.stringify(params.q || "loss < 2")}`),
                el("p", {}, el("button", {type: "button", onclick: () => change({q: "", state: "", program: "", since: ""})}, "Show all runs")));
            return;
        }
        if (body.firstChild !== table.element) fill(body, table.element);
        table.drawRows();
    }

    const table = Table({
        label: "Runs", columns: columns(), count: () => selected, row, key: r => r.id, name: r => r.name, selected: chosenRuns, sort: {key: params.sort, reverse: params.reverse === "true"},
        open: r => go(link("runs", [r.id])), onSelect: drawChosen,
        group: params.group ? groupOf : null,
        onSort: key => change(params.sort === key && params.reverse !== "true" ? {sort: key, reverse: "true", group: ""} : params.sort === key ? {sort: "", reverse: ""} : {sort: key, reverse: "", group: ""}),
        need: (from, to) => { for (let page = Math.floor(from / PAGE_ROWS); page * PAGE_ROWS < to; page++) if (!fresh.has(page)) load(page).catch(() => {}); },
    });
    function groupOf(r) {
        const name = params.group.replace(/^=/, ""), v = params.group.startsWith("=") ? r.values && r.values[name] : r[name];
        return `${name} ${v === null || v === undefined ? "none" : fmtValue(v)}`;
    }

    function change(changes) {
        setParams(changes);
        turn++;
        pages = new Map();
        fresh = new Set();
        asked = new Map();
        table.toTop();
        table.set({columns: columns(), sort: {key: params.sort, reverse: params.reverse === "true"}, group: params.group ? groupOf : null});
        drawTools();
        load(0).catch(() => {});
    }

    const tools = el("div", {class: "toolbar"}), chosen = el("div", {class: "toolbar chosen", hidden: true});
    let timer = 0;
    const filter = el("input", {type: "search", id: "filter", class: "filter", value: params.q || "", "aria-label": "Filter runs: words, /regex/ or lr<1e-3", placeholder: "Filter: words, /regex/, lr<1e-3 and loss<2", spellcheck: "false",
                                oninput: e => { clearTimeout(timer); timer = setTimeout(() => change({q: e.target.value}), 200); }});
    const choices = el("span", {class: "choices"});
    const chooser = columnChooser(allColumns, shownColumns, now => change({columns: now.join(",")}));
    add(tools, [filter, choices, chooser, el("button", {type: "button", title: "The table as CSV, all rows of the filter", onclick: saveTable}, "CSV"), status]);

    async function saveTable() {
        try {
            const keys = shownColumns(), lines = [["folder", ...keys.map(k => k.replace(/^=/, ""))].map(csvField).join(",")];
            for (let at = 0, all = 1; at < all;) {
                const d = await api(path(at / PAGE_ROWS));
                for (const r of d.runs) lines.push([r.folder, ...keys.map(k => (k.startsWith("=") ? r.values && r.values[k.slice(1)] : k === "job" ? r.job && `${r.job.id} ${r.job.state}` : r[k]))].map(csvField).join(","));
                all = d.runs.length ? d.selected : 0;
                at += PAGE_ROWS;
            }
            download("runs.csv", lines.join("\n") + "\n", "text/csv");
        } catch (problem) { say(problem.detail || problem.message, "bad"); }
    }

    function drawTools() {
        const focus = choices.contains(document.activeElement) ? document.activeElement.id : "";
        const select = (id, label, value, items, key) => el("label", {}, el("span", {class: "visually-hidden"}, label),
            el("select", {id, "aria-label": label, onchange: e => change({[key]: e.target.value})}, items.map(([v, t]) => el("option", {value: v, selected: (value || "") === v}, t))));
        fill(choices,
             select("pick-state", "State", params.state, [["", "all states"], ...["running", "finished", "stopped", "failed", "diverged", "lost"].map(s => [s, s])], "state"),
             select("pick-program", "Program", params.program, [["", "all programs"], ...[...new Set([...programs, params.program].filter(Boolean))].sort().map(s => [s, s])], "program"),
             select("pick-since", "Started", params.since, [["", "any time"], ["today", "today"], ["3d", "3 days"], ["2w", "2 weeks"]], "since"),
             select("pick-group", "Group by", params.group, [["", "no groups"], ["program", "by program"], ["state", "by state"], ...((last && last.differing) || []).map(n => [`=${n}`, `by ${n}`])], "group"));
        if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
    }

    function drawChosen() {
        const n = chosenRuns.size;
        chosen.hidden = n === 0;
        const button = chosen.querySelector("a");
        const ids = [...chosenRuns];
        fill(chosen, el("strong", {}, `${n} selected`),
             el("a", {class: "button main", id: "compare-chosen", href: link("compare", [], {ids: idsOf(ids.slice(0, 64))})}, n > 64 ? "Compare the first 64" : n === 1 ? "Chart" : "Compare"),
             el("a", {class: "button", href: query("/api/runs/metrics.csv", {ids: idsOf(ids.slice(0, 64))})}, "All metrics, CSV"),
             el("a", {class: "button", href: query("/api/runs/metrics.json", {ids: idsOf(ids.slice(0, 64))})}, "JSON"),
             el("button", {type: "button", onclick: () => { chosenRuns.clear(); drawChosen(); table.drawRows(); }}, "Clear"));
        if (button && document.activeElement === document.body) chosen.querySelector("a").focus();
    }

    fill(main, el("h1", {class: "visually-hidden"}, "Runs"), tools, trouble, body, chosen);
    drawTools();
    drawChosen();
    table.draw();
    fill(body, table.element);
    const key = e => { if (e.key === "/" && !/INPUT|TEXTAREA|SELECT/.test(e.target.tagName)) { e.preventDefault(); filter.focus(); } };
    document.addEventListener("keydown", key);
    poll(async () => {
        if (!known) { await load(0); if (last) token = last.token || 0; if (last && last.indexed === false) known = false; return; }
        const c = await api(query("/api/runs/changes", {since: String(token)}));
        const news = jobs !== null && c.jobs !== jobs;
        jobs = c.jobs;
        if (news || c.changed.length || c.removed.length || c.all || (last && last.indexed !== c.indexed)) {
            token = c.token;
            for (const id of c.removed) chosenRuns.delete(id);
            if (c.removed.length) drawChosen();
            fresh = new Set();
            if (selected === 0) await load(0);
            else table.drawRows();
        } else token = c.token;
    });
    return () => { clearTimeout(timer); document.removeEventListener("keydown", key); };
}

/* ---- one run ---- */

function facts(pairs) {
    return el("dl", {class: "facts"}, pairs.filter(([, v]) => v !== null && v !== undefined && v !== "").map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v))));
}

function section(title, content, open = true) {
    return el("details", {class: "section", open}, el("summary", {}, el("h2", {}, title)), content);
}

/* argv as one would type it, for servers that do not say it. */
function shellText(argv) {
    return argv.map(a => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(a) ? a : `'${a.replaceAll("'", "'\\''")}'`)).join(" ");
}

function runCommand(d) {
    if (d.command && d.command.text) return d.command.text;
    const c = d.run && (d.run.argv || d.run.command);
    return Array.isArray(c) ? shellText(c) : typeof c === "string" ? c : "";
}

function showRun(main, params, id) {
    const base = `/api/runs/${encodeURIComponent(id)}`;
    const head = el("header", {class: "run-head"}), trouble = el("p", {class: "problem", role: "alert", hidden: true});
    const chartBox = el("section", {"aria-label": "Curves"}), logBox = el("section", {"aria-label": "Log"}), side = el("div", {class: "side"}), below = el("div", {class: "below"});
    let d = null, charts = null, version = "", built = false, token = null, job = null, jobs = null;
    fill(main, head, trouble, el("div", {class: "run-body"}, el("div", {class: "run-main"}, chartBox, logBox, below), side));
    fill(head, el("h1", {}, id));

    function drawHead() {
        const part = d.planned_steps ? Math.min(1, (d.step || 0) / d.planned_steps) : null;
        setTitle(d.state === "running" && part !== null ? `${Math.floor(100 * part)} % ${d.name}` : d.name);
        const focus = head.contains(document.activeElement) ? document.activeElement.id : "";
        const live = d.state === "running";
        fill(head,
             el("div", {class: "title-line"}, colorDot(id), el("h1", {}, d.name), stateBadge(d.state), d.reason ? el("span", {class: "reason"}, d.reason) : null),
             part !== null ? el("div", {class: "big-progress"}, progressBar(part, "Progress of the run"), el("span", {}, `${Math.floor(100 * part)} %, step ${fmtNumber(d.step)} of ${fmtNumber(d.planned_steps)}`)) : null,
             facts([["Started", d.started ? `${fmtTime(d.started)} (${fmtAgo(d.started)})` : null], ["Elapsed", fmtDuration(d.seconds)], ["Left", live ? fmtDuration(d.eta_s) : null],
                    ["Tokens/s", fmtNumber(d.tokens_per_s, 3)], ["Loss", fmtNumber(d.loss)], ["Eval loss", fmtNumber(d.eval_loss)], ["Best eval loss", fmtNumber(d.best_eval_loss)],
                    ["Program", d.program], ["Folder", d.folder],
                    ["Job", job ? el("span", {class: "job-cell"}, jobBadge(job), jobButtons(job, () => polling.now()).filter(b => /^(retry|cancel|kill)/.test(b.textContent))) : null],
                    ["Why", job && job.reason && job.reason !== d.reason ? el("span", {class: "why"}, job.reason) : null]]),
             el("div", {class: "buttons", role: "group", "aria-label": "Actions"},
                live && !(job && job.state === "stopping") ? el("button", {id: "run-stop", type: "button", onclick: stop}, "Stop") : null,
                !live && !going() && d.state !== "finished" ? el("button", {id: "run-resume", type: "button", onclick: resume}, "Resume") : null,
                el("a", {id: "run-clone", class: "button", href: link("new", [], {from: id})}, "Clone with changes"),
                el("a", {id: "run-compare", class: "button", href: link("compare", [], {ids: idsOf([id])})}, "Compare"),
                !live && !going() ? el("button", {id: "run-delete", type: "button", class: "danger", onclick: remove}, "Delete") : null));
        if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
    }

    const going = () => job && /^(queued|running|stopping)$/.test(job.state);
    const failed = problem => say(problem.detail || problem.message, "bad");
    async function stop() {
        const how = job ? "It finishes its step, saves a checkpoint and ends. Resume goes on from there." : "This run was started in a shell. Stop it there with Ctrl-C: it finishes its step and saves a checkpoint.";
        if (!job) { await ask("Stop the run?", el("p", {}, how), "I see"); return; }
        if (!await ask("Stop the run?", [el("p", {}, how), commandBox(`build/studio run stop ${job.id}`)], "Stop it")) return;
        try { await api(`/api/jobs/${encodeURIComponent(job.id)}/stop`, {method: "POST", body: {now: false}}); say("Stopping"); } catch (problem) { failed(problem); }
    }
    async function resume() {
        const words = (d.command && d.command.program) || d.program || "finetune_full";
        if (!await ask("Resume the run?", [el("p", {}, "A job goes on from the last checkpoint, as this command does:"), commandBox(`${words.includes("/") ? words : `build/${words}`} --resume ${shellText([d.folder])}`)], "Resume")) return;
        const send = (body) => api(`${base}/resume`, {method: "POST", body});
        try {
            await send({}).catch(async (error) => {
                if (!error.problem || !error.problem.memory || !await ask("Resume the run?", el("p", {}, error.problem.memory), "Start it all the same")) throw error;
                return send({force: true});
            });
            say("Queued");
        } catch (problem) { failed(problem); }
    }
    async function remove() {
        try {
            const plan = await api(`${base}/delete`, {method: "POST", body: {confirm: false}});
            const sure = await ask(`Delete ${plan.files.length} files, ${fmtBytes(plan.bytes)}?`, [el("p", {}, "They cannot be brought back. The same command:"), commandBox(`rm -r -- ${shellText([d.folder])}`),
                el("ul", {class: "files"}, plan.files.slice(0, 200).map(f => el("li", {}, el("span", {}, f.name), el("span", {class: "number"}, fmtBytes(f.size)))),
                   plan.files.length > 200 ? el("li", {}, `and ${plan.files.length - 200} more`) : null)], "Delete", true);
            if (!sure) return;
            await api(`${base}/delete`, {method: "POST", body: {confirm: true}});
            chosenRuns.delete(id);
            say(`Deleted ${d.folder}`);
            go("#/runs");
        } catch (problem) { failed(problem); }
    }

    const groups = () => {
        const names = d.metrics.map(m => m.name).filter(n => !["step", "time", "tokens", "epoch", "time_s", "total_tokens"].includes(n));
        const want = params.metrics ? params.metrics.split(",").filter(n => names.includes(n)) : names.filter(n => /loss|grad|lr|tokens_per|accuracy|reward/.test(n)).slice(0, 6);
        const out = [];
        for (const n of want.length ? want : names.slice(0, 2)) {
            const main = n.replace(/^eval_/, ""), group = out.find(g => g[0] === main);
            if (n !== main && group) group.push(n);
            else out.push([n]);
        }
        return out;
    };

    function drawCharts() {
        if (!d.metrics || !d.metrics.length) {
            fill(chartBox, el("p", {class: "note"}, d.state === "running" ? "No step yet; curves appear by themselves." : "The run has no metrics."));
            charts = null;
            return;
        }
        if (charts) return;
        const names = d.metrics.map(m => ({key: m.name, title: m.name}));
        charts = chartSet({runs: () => [{id, name: d.name, state: d.state, reason: d.reason}], groups, params, onParams: setParams, axes: () => names.map(n => n.key),
                           tools: columnChooser(() => names, () => groups().flat(), now => { setParams({metrics: now.join(",")}); charts.draw(); }, "Metrics")});
        fill(chartBox, charts.element);
        charts.draw();
    }

    function drawSide() {
        const run = d.run || {}, command = runCommand(d);
        const given = (d.command && d.command.given) || run.given || null, opts = run.options || {};
        const rows = Object.entries(opts).map(([k, v]) => [k, fmtValue(v)]);
        const isGiven = k => (Array.isArray(given) ? given.includes(k) : command.includes(`--${k.replaceAll("_", "-")}`));
        const hashes = [];
        for (const [k, v] of flat(run, ""))
            if (/(sha|hash|commit|digest|checksum|fingerprint)/i.test(k) && typeof v !== "object" && String(v).length >= 6) hashes.push([k, el("code", {}, String(v))]);
        fill(side,
             section("Reproduce", [command ? commandBox(command, "Command of the run") : el("p", {class: "note"}, "The run does not say its command."),
                 d.command && d.command.environment && Object.keys(d.command.environment).length ? facts(Object.entries(d.command.environment)) : null,
                 facts(hashes.slice(0, 12))]),
             section("Options", rows.length ? optionTable(rows, isGiven) : el("p", {class: "note"}, "None.")),
             d.report ? section("Report", facts([...flat(d.report, "")].slice(0, 80).map(([k, v]) => [k, fmtValue(v)])), false) : null,
             d.checkpoints && d.checkpoints.length ? section("Checkpoints", el("ul", {class: "files"}, d.checkpoints.map(c =>
                 el("li", {}, el("span", {}, c.final ? "final" : `step ${fmtNumber(c.step)}`, c.best ? el("b", {class: "best"}, " best") : null), el("span", {class: "number"}, fmtBytes(c.bytes)))))) : null,
             d.files && d.files.length ? section("Files", el("ul", {class: "files"}, d.files.map(f =>
                 el("li", {}, el("a", {href: `${base}/files/${encodeURIComponent(f.name)}`}, f.name), el("span", {class: "number"}, fmtBytes(f.size)))))) : null);
    }

    function optionTable(rows, isGiven) {
        const all = recall("all-options", false);
        const list = el("table", {class: "plain"}, el("thead", {class: "visually-hidden"}, el("tr", {}, el("th", {scope: "col"}, "Option"), el("th", {scope: "col"}, "Value"))),
                        el("tbody", {}, rows.map(([k, v]) => el("tr", {class: isGiven(k) ? "given" : "default"}, el("th", {scope: "row"}, k), el("td", {}, v, isGiven(k) ? null : el("small", {}, " default"))))));
        list.classList.toggle("only-given", !all && rows.some(([k]) => isGiven(k)));
        return [list, el("label", {class: "note"}, el("input", {type: "checkbox", checked: all, onchange: e => { keep("all-options", e.target.checked); list.classList.toggle("only-given", !e.target.checked); }}), " with defaults")];
    }

    function* flat(value, prefix) {
        for (const [k, v] of Object.entries(value || {})) {
            if (v && typeof v === "object" && !Array.isArray(v)) yield* flat(v, `${prefix}${k}.`);
            else if (!Array.isArray(v)) yield [prefix + k, v];
        }
    }

    async function optional(path) {
        try { return await api(path); } catch (problem) { if (problem.away) throw problem; return null; }
    }

    async function drawBelow() {
        const [previews, rows] = await Promise.all([optional(`${base}/previews`), optional(query(`${base}/rows`, {limit: 100}))]);
        const text = v => (typeof v === "object" && v !== null ? JSON.stringify(v) : fmtValue(v));
        const tableOf = list => {
            const keys = [...new Set(list.flatMap(r => Object.keys(r)))].slice(0, 12);
            return el("div", {class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Rows"}, el("table", {class: "plain texts"}, el("thead", {}, el("tr", {}, keys.map(k => el("th", {scope: "col"}, k)))),
                el("tbody", {}, list.map(r => el("tr", {}, keys.map(k => el("td", {class: typeof r[k] === "number" ? "number" : null}, text(r[k]))))))));
        };
        fill(below,
             previews && previews.rows && previews.rows.length ? section("Samples during training", tableOf(previews.rows.slice(-50))) : null,
             rows && rows.rows && rows.rows.length ? section("Evaluation, row by row", [tableOf(rows.rows), rows.total > rows.rows.length ? el("p", {class: "note"}, `the first ${rows.rows.length} of ${fmtNumber(rows.total)}`) : null]) : null);
    }

    const log = logView(() => (job ? `/api/jobs/${encodeURIComponent(job.id)}/log` : null));
    fill(logBox, log.element);

    const polling = poll(async () => {
        if (!d || token === null) {
            try { d = await api(base); } catch (problem) {
                if (problem.status === 404) {
                    fill(main, empty("No such run", problem.detail, "build/runs list"), el("p", {}, el("a", {href: "#/runs"}, "All runs")));
                    polling.stop();
                    return;
                }
                throw problem;
            }
            const c = await api("/api/runs/changes?since=0");
            token = c.token;
            jobs = c.jobs;
        } else {
            const c = await api(query("/api/runs/changes", {since: String(token)})), news = c.jobs !== jobs;
            token = c.token;
            jobs = c.jobs;
            if (c.removed.includes(id)) { say("The run's folder is gone", "bad"); go("#/runs"); return; }
            if (!c.all && !news && !c.changed.includes(id)) { if (log.live()) await log.more(); return; }
            d = await api(base);
        }
        job = jobOf(d);
        if (!d.files) d.files = ((await optional(`${base}/files`)) || {}).files;
        drawHead();
        const now = JSON.stringify([d.run, d.report, d.checkpoints, (d.files || []).length, d.state]);
        if (now !== version) { version = now; const at = side.scrollTop; drawSide(); side.scrollTop = at; }
        const had = charts;
        drawCharts();
        if (had && charts) await charts.refresh();
        if (!built) { built = true; drawBelow().catch(() => {}); }
        await log.more();
    });
}

/* The tail of a log: follows the end unless one scrolls up; earlier parts on demand. */
function logView(path) { /* path(): of the log; null: there is none */
    const PART = 64 << 10;
    let start = null, next = 0, follow = true, errors = [];
    const text = el("pre", {class: "log", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Log"});
    const note = el("span", {class: "note"});
    const toggle = el("input", {type: "checkbox", id: "log-follow", checked: true, onchange: e => { follow = e.target.checked; if (follow) toEnd(); }});
    const wrap = el("input", {type: "checkbox", checked: recall("wrap", false), onchange: e => { keep("wrap", e.target.checked); text.classList.toggle("wrap", e.target.checked); }});
    text.classList.toggle("wrap", wrap.checked);
    const find = el("input", {type: "search", placeholder: "Search the log", "aria-label": "Search the log", onkeydown: e => { if (e.key === "Enter") search(); }});
    const found = el("ol", {class: "found", "aria-label": "Lines found"});
    const earlier = el("button", {type: "button", class: "small", hidden: true, onclick: () => before().catch(() => {})}, "Earlier lines");
    const jump = el("button", {type: "button", class: "small", hidden: true, onclick: () => at(errors[0])}, "First error");
    const details = el("details", {class: "section", open: true}, el("summary", {}, el("h2", {}, "Log")),
        el("div", {class: "toolbar thin"}, el("label", {}, toggle, " follow"), el("label", {}, wrap, " wrap"), find, jump, earlier, note), found, text);
    const toEnd = () => { text.scrollTop = text.scrollHeight; };
    text.addEventListener("scroll", () => {
        const end = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
        if (follow !== end) { follow = end; toggle.checked = end; }
    }, {passive: true});

    function put(part, first) {
        const lines = document.createDocumentFragment();
        for (const line of part.split(/(?<=\n)/)) lines.append(/\b(error|fail(ed|ure)?|nan|diverged)\b/i.test(line) ? el("span", {class: "error-line"}, line) : document.createTextNode(line));
        if (first) text.prepend(lines); else text.append(lines);
        while (!first && text.childNodes.length > 6000) text.firstChild.remove();
    }
    function state(d) {
        const size = d.size;
        errors = d.errors || errors;
        jump.hidden = !errors.length;
        earlier.hidden = !(start > 0);
        fill(note, size ? fmtBytes(size) : "nothing yet");
    }
    async function more() {
        details.classList.toggle("none", !path());
        if (!path()) {
            fill(note, "Started in a shell, so its output went there. A run started here keeps it.");
            return;
        }
        try {
            if (start === null) {
                const d = await api(query(path(), {offset: 0, limit: 1}));
                if (d.none) throw Object.assign(new Error(), {status: 404});
                start = next = Math.max(0, d.size - PART);
            }
            for (let i = 0; i < 16; i++) {
                const d = await api(query(path(), {offset: next, limit: PART}));
                if (d.size < next) { start = next = 0; text.replaceChildren(); continue; }
                if (d.text) put(d.text);
                next = d.next;
                state(d);
                if (next >= d.size || !d.text) break;
            }
            if (follow) toEnd();
        } catch (problem) {
            if (problem.away) throw problem;
            fill(note, problem.detail || problem.message);
        }
    }
    async function before() {
        const from = Math.max(0, start - PART), d = await api(query(path(), {offset: from, limit: start - from}));
        const high = text.scrollHeight;
        put(d.text, true);
        start = from;
        earlier.hidden = !(start > 0);
        text.scrollTop += text.scrollHeight - high;
    }
    async function at(offset) {
        follow = toggle.checked = false;
        start = Math.max(0, offset - 2048);
        const d = await api(query(path(), {offset: start, limit: PART}));
        text.replaceChildren();
        put(d.text);
        next = d.next;
        state(d);
        const mark = text.querySelector(".error-line");
        text.scrollTop = mark ? Math.max(0, mark.offsetTop - text.offsetTop - 40) : 0;
        text.focus();
    }
    async function search() {
        if (!find.value) { fill(found); return; }
        try {
            const d = await api(query(path(), {offset: 0, limit: 1, search: find.value}));
            fill(found, (d.matches || []).slice(0, 100).map(m => el("li", {}, el("button", {type: "button", class: "plain", onclick: () => at(m.offset)}, m.line))),
                 (d.matches || []).length ? null : el("li", {class: "note"}, `"${find.value}" is nowhere in the log`));
        } catch (problem) { say(problem.detail, "bad"); }
    }
    return {element: details, more, live: () => path() && details.open};
}
