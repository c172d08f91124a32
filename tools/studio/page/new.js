/* new.js - the view "New run": a form made from what a program tells about its options, the command
 * that it makes, a look at the data before the start, and the jobs. */
"use strict";

/* The buttons of what may be done with a job: {id, state, folder, name, program}. done() is called
 * after each answer. jobLink(id): its page. */
let jobButtons, jobLink;
(() => {
    /* The options that most people set come first; the others are folded by group. */
    const COMMON = ["model", "dataset", "adapter", "output", "lr", "epochs", "batch_size"];
    const ENDED = ["succeeded", "failed", "diverged", "cancelled", "lost"];
    const wait = (ms) => new Promise((done) => setTimeout(done, ms));
    const word = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'");

    /* A command whose text changes. */
    function changingCommand(label) {
        const code = el("code", {tabindex: "0", role: "group", "aria-label": label});
        return {box: el("div", {class: "command"}, code, copyButton(() => code.textContent)), set: (text) => (code.textContent = text)};
    }

    function problemBox(error) {
        return el("p", {class: "problem", role: "alert"}, error.detail || error.message || String(error));
    }

    /* ---- the form ---- */

    const isNumber = (option) => ["int", "int64", "double", "number", "interval", "uint64"].includes(option.type);
    const shown = (value) => (value === null || value === undefined ? "" : typeof value === "boolean" ? (value ? "yes" : "no") : String(value));
    const same = (a, b) => shown(a) === shown(b) || (shown(a) !== "" && shown(b) !== "" && Number(a) === Number(b));
    /* What the field says becomes a value: a number where it is one, so that 1e-3 and 0.001 are equal. */
    function read(option, text) {
        const number = isNumber(option) && text.trim() !== "" ? Number(text) : NaN;
        return Number.isFinite(number) && (Number.isSafeInteger(number) || !/int/.test(option.type)) ? number : text;
    }

    /* One option: its label, its input, what it may be, and its problem. */
    function field(form, option) {
        const id = "option-" + option.name, values = form.values;
        const wrap = el("div", {class: "field"});
        const changed = el("span", {class: "changed"});
        const problem = el("span", {class: "problem", id: id + "-problem", role: "alert"});
        let input;
        const take = (value) => {
            if (value === "" || same(value, option.default)) delete values[option.name];
            else values[option.name] = value;
            mark();
            form.changed();
        };
        const mark = () => {
            const set = option.name in values, base = form.base;
            wrap.classList.toggle("set", set);
            const now = set ? values[option.name] : option.default;
            const before = base && (option.name in base ? base[option.name] : option.default);
            const differs = base && !same(now, before);
            wrap.classList.toggle("differs", Boolean(differs));
            changed.textContent = differs ? "● was " + (shown(before) || "not set") : set && !base ? "● changed" : "";
        };
        const describe = {id, name: option.name, "aria-describedby": id + "-help " + id + "-problem", autocomplete: "off"};
        if (option.type === "bool") {
            input = el("input", {...describe, type: "checkbox", onchange: () => take(input.checked)});
            input.checked = Boolean(option.name in values ? values[option.name] : option.default);
        } else if (option.choices && option.choices.length) {
            input = el("select", {...describe, onchange: () => take(input.value)},
                option.default === null && el("option", {value: ""}, "(not set)"),
                ...option.choices.map((choice) => el("option", {value: choice}, String(choice) + (same(choice, option.default) ? " (default)" : ""))));
            input.value = shown(option.name in values ? values[option.name] : option.default);
        } else {
            input = el("input", {...describe, type: "text", spellcheck: "false", inputmode: option.type.startsWith("int") ? "numeric" : null,
                placeholder: option.default === null ? "not set" : shown(option.default), oninput: () => take(read(option, input.value))});
            input.value = option.name in values ? shown(values[option.name]) : "";
        }
        const about = [option.range && "in " + option.range, option.default !== null && option.default !== undefined && "default " + shown(option.default)].filter(Boolean).join(", ");
        wrap.append(el("label", {for: id}, option.positional ? option.name : option.flag || option.name, option.unit && el("span", {class: "note"}, " " + option.unit), " ", changed),
            input, el("span", {class: "note help", id: id + "-help"}, option.help || "", about && " (" + about + ")"), problem);
        mark();
        form.fields.set(option.name, {option, wrap, input, problem, text: [option.name, option.flag, option.help, option.group].join(" ").toLowerCase()});
        return wrap;
    }

    function renderForm(main, params, isHere) {
        const form = {fields: new Map(), values: {}, base: null, program: null, changed: () => {}};
        const select = el("select", {id: "program", onchange: () => go(link("new", [], {program: select.value}))});
        const what = el("p", {class: "note"});
        const body = el("div", {class: "fields"});
        const search = el("input", {type: "search", id: "option-search", placeholder: "learning rate, memory, …", oninput: () => filter()});
        const hits = el("span", {class: "note", role: "status"});
        const command = changingCommand("The command"), complaint = el("div", {});
        const start = el("button", {type: "button", class: "main", disabled: true, onclick: () => begin()}, "Start");
        const preview = el("button", {type: "button", onclick: () => look()}, "Preview");
        const previewed = el("div", {class: "preview", "aria-live": "polite"});
        const cloned = el("p", {class: "note"});
        const slot = el("select", {id: "slot"});
        /* Shown once the plan exceeds what is free. Each change of the values hides it again. */
        const force = el("input", {type: "checkbox", id: "force"}), short = el("p", {class: "problem"});
        const shortage = el("div", {hidden: true, role: "alert"}, short, el("label", {for: "force"}, force, " Start it all the same. The program checks again when it starts, and refuses if memory is still too little."));
        const tellShortage = (warning) => {
            shortage.hidden = !warning;
            short.textContent = warning || "";
            if (!warning) force.checked = false;
        };
        main.append(
            el("div", {class: "new-run"},
                el("section", {class: "new-form", "aria-label": "options"},
                    el("div", {class: "row"}, el("label", {for: "program"}, "Program"), select), what, cloned,
                    el("div", {class: "row"}, el("label", {for: "option-search"}, "Find an option"), search, hits), body),
                el("section", {class: "new-side", "aria-label": "command and start"},
                    el("h2", {}, "Command"), command.box, complaint,
                    el("div", {class: "row"}, start, preview, el("span", {class: "row"}, el("label", {for: "slot"}, "It starts"), slot)), shortage, previewed)));

        const filter = () => {
            const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
            let count = 0;
            for (const one of form.fields.values()) {
                const fits = words.every((w) => one.text.includes(w) || one.text.replace(/_/g, "-").includes(w));
                one.wrap.hidden = !fits;
                count += fits;
            }
            for (const group of body.querySelectorAll("details")) {
                const any = [...group.querySelectorAll(".field")].some((one) => !one.hidden);
                group.hidden = !any;
                if (words.length && any) group.open = true;
            }
            hits.textContent = words.length ? `${count} of ${form.fields.size} options` : `${form.fields.size} options`;
        };

        const payload = () => ({program: form.program, values: form.values});
        let turn = 0;
        const refresh = async () => {
            const mine = ++turn;
            for (const one of form.fields.values()) { one.problem.textContent = ""; one.input.removeAttribute("aria-invalid"); }
            try {
                const answer = await api("/api/command", {method: "POST", body: payload()});
                if (mine !== turn) return;
                command.set(answer.text);
                command.box.classList.remove("stale");
                complaint.replaceChildren();
                start.disabled = false;
            } catch (error) {
                if (mine !== turn) return;
                command.box.classList.add("stale"); /* it is that of the last good values */
                complain(error);
            }
        };
        const complain = (error) => {
            const name = error.problem && error.problem.option, one = name && form.fields.get(String(name).replace(/^--/, "").replace(/-/g, "_"));
            if (one) {
                one.problem.textContent = error.detail || error.message;
                one.input.setAttribute("aria-invalid", "true");
                const group = one.wrap.closest("details");
                if (group) group.open = true;
            }
            complaint.replaceChildren(problemBox(error));
        };
        let timer = 0;
        form.changed = () => {
            tellShortage(null);
            const presets = {};
            for (const one of form.fields.values()) presets[one.option.name] = one.option.name in form.values ? shown(form.values[one.option.name]) : null;
            setParams(presets);
            clearTimeout(timer);
            timer = setTimeout(refresh, 150);
        };

        const look = async () => {
            previewed.replaceChildren(el("p", {class: "note"}, "The program reads the data…"));
            preview.disabled = true;
            try {
                const answer = await api("/api/preview", {method: "POST", body: {...payload(), rows: 4}});
                if (isHere()) previewed.replaceChildren(...drawPreview(answer));
                if (answer.memory && (!answer.memory.fits || shortage.hidden)) tellShortage(answer.memory.warning);
            } catch (error) {
                previewed.replaceChildren();
                complain(error);
            }
            preview.disabled = false;
        };

        const begin = async () => {
            start.disabled = true;
            try {
                const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("");
                const body = {...payload(), key};
                if (slot.value === "none") body.slot = "none";
                if (force.checked) body.force = true;
                let job = await api("/api/jobs", {method: "POST", body});
                complaint.replaceChildren(el("p", {class: "note", role: "status"}, `Job ${job.id}: ${job.state}. `, el("a", {href: jobLink(job.id)}, "Its log")));
                /* Its run page opens as soon as the run is there; what waits for a slot is shown in the queue. */
                let run = false;
                for (let turn = 0; isHere() && !run && turn < 40 && !ENDED.includes(job.state) && (job.state !== "queued" || turn < 12); turn++) {
                    await wait(250);
                    job = await api("/api/jobs/" + encodeURIComponent(job.id));
                    const seen = job.folder && job.state !== "queued" ? await api(query("/api/runs", {search: job.folder, limit: 50})) : null;
                    run = Boolean(seen && seen.runs.some((one) => one.id === job.folder));
                }
                if (isHere()) go(run ? runLink(job.folder) : jobLink(job.id));
            } catch (error) {
                if (error.problem && error.problem.memory) tellShortage(error.problem.memory);
                else complain(error);
            }
            start.disabled = false;
        };

        (async () => {
            const [programs, system, from] = await Promise.all([api("/api/programs"), api("/api/jobs").catch(() => null),
                params.from ? api("/api/runs/" + encodeURIComponent(params.from) + "/form").catch((error) => ({error})) : null]);
            if (!isHere()) return;
            for (const [kind, label] of [["recipe", "Recipes"], ["tool", "Tools"]]) {
                const some = programs.filter((p) => (p.kind === "recipe") === (kind === "recipe"));
                if (some.length) select.append(el("optgroup", {label}, ...some.map((p) => el("option", {value: p.name}, p.name))));
            }
            if (!programs.length) {
                fill(main, empty("No program to start", "Build the recipes, or name the folder of others with --programs:", "make"));
                return;
            }
            if (from && from.error) cloned.replaceChildren(problemBox(from.error));
            const usual = programs.find((p) => p.name === "finetune_lora") || programs.find((p) => p.kind === "recipe") || programs[0];
            form.program = params.program || (from && from.program) || usual.name;
            select.value = form.program;
            if (select.value !== form.program) throw Object.assign(new Error(`${form.program}: no such program here; choose one above`), {});
            const about = await api("/api/programs/" + encodeURIComponent(form.program));
            if (!isHere()) return;
            what.textContent = about.what || "";
            if (from && !from.error) {
                form.base = from.values;
                if (!about.options.some((o) => o.name in params)) Object.assign(form.values, from.values);
                fill(cloned, "Filled from ", el("a", {href: runLink(params.from)}, params.from), ". What differs from it is marked with ●.");
            }
            for (const option of about.options)
                if (option.name in params) {
                    const text = params[option.name];
                    form.values[option.name] = option.type === "bool" ? text === "yes" || text === "true" : read(option, text);
                }
            /* What equals the default is not sent. */
            for (const option of about.options)
                if (option.name in form.values && same(form.values[option.name], option.default)) delete form.values[option.name];
            const groups = new Map();
            const first = about.options.filter((o) => o.positional || COMMON.includes(o.name)).sort((a, b) => COMMON.indexOf(a.name) - COMMON.indexOf(b.name));
            body.append(...first.map((option) => field(form, option)));
            for (const option of about.options.filter((o) => !first.includes(o))) {
                const name = option.group || "other";
                if (!groups.has(name)) groups.set(name, []);
                groups.get(name).push(option);
            }
            for (const [name, options] of groups) {
                const set = options.filter((o) => o.name in form.values).length;
                body.append(el("details", {open: set > 0 || null}, el("summary", {}, name, el("span", {class: "note"}, ` ${options.length} options` + (set ? `, ${set} set` : ""))), ...options.map((option) => field(form, option))));
            }
            const busy = system ? Object.entries(system.slots || {}).filter(([, c]) => c && c.total).map(([kind, c]) => `${c.busy} of ${c.total} ${kind} busy`).join(", ") : "";
            slot.append(el("option", {value: "auto"}, "when a slot is free" + (busy ? ` (${busy})` : "")), el("option", {value: "none"}, "at once"));
            filter();
            if (form.base) form.changed();
            await refresh();
        })().catch((error) => isHere() && complaint.replaceChildren(problemBox(error)));
    }

    /* Rows as the model sees them. What is trained on is underlined, and coloured. */
    function drawPreview(answer) {
        const parts = [];
        if (answer.rows && answer.rows.length) {
            parts.push(el("h3", {}, "Rows as the model sees them"),
                el("p", {class: "note"}, el("span", {class: "token trained"}, "underlined"), " tokens are trained on; the ", el("span", {class: "token"}, "others"), " are only read. Point at one for its number."));
            answer.rows.forEach((row, i) => parts.push(el("p", {class: "tokens", tabindex: "0", "aria-label": `row ${i + 1}: ${row.length} tokens, ${row.labels} trained on`},
                ...row.tokens.map((t) => el("span", {class: t.label ? "token trained" : "token", title: `token ${t.id}` + (t.label ? ", trained on" : "")}, t.text.replace(/\n/g, "⏎\n")))),
                el("p", {class: "note"}, `row ${i + 1}: ${row.length} tokens, ${row.labels} of them trained on`)));
        }
        for (const [name, title] of [["survey", "Data"], ["memory", "Memory"], ["time", "Time"], ["disk", "Disk"]])
            if (answer[name] && Object.keys(answer[name]).length) parts.push(el("h3", {}, title), facts(answer[name]));
        if (answer.text) parts.push(el("details", {}, el("summary", {}, "What the program printed"), el("pre", {tabindex: "0"}, answer.text)));
        if (!parts.length) parts.push(el("p", {class: "note"}, "The program told nothing before a start."));
        return parts;
    }

    function facts(object) {
        const list = el("dl", {class: "facts"});
        for (const [name, value] of Object.entries(object)) {
            if (value === null || value === undefined) continue;
            const text = typeof value === "object" ? JSON.stringify(value) : /bytes$/.test(name) ? fmtBytes(value) : /(_s|seconds)$/.test(name) ? fmtSeconds(value) : shown(value);
            list.append(el("dt", {}, name.replace(/_/g, " ")), el("dd", {}, text));
        }
        return list;
    }

    /* ---- jobs ---- */

    jobLink = (id) => link("new", ["jobs"], {job: id});
    const runLink = (id) => link("runs", [id]);

    /* What may be done with a job in its state: [name, question, what is asked]. */
    function actions(job) {
        const all = [];
        if (job.state === "queued") all.push(["cancel", "Take it out of the queue?"]);
        if (job.state === "running") all.push(["stop", "It finishes its step and saves a checkpoint; it can be resumed."]);
        if (job.state === "stopping") all.push(["stop", "It was asked to stop. Kill it now, without a checkpoint?", {now: true}, "kill"]);
        if (ENDED.includes(job.state)) {
            if (job.folder && job.state !== "succeeded") all.push(["resume", null]);
            all.push(["retry", null], ["delete", ""]);
        }
        return all;
    }

    const shellOf = (job, verb) => `studio ${verb === "stop" ? "run" : "job"} ${verb} ${word(String(job.id))}`;
    const inShell = (text) => el("p", {class: "note"}, "The same in a shell: ", el("code", {}, text));

    async function act(job, [verb, question, body, label], done, stay) {
        const path = "/api/jobs/" + encodeURIComponent(job.id) + "/" + verb, name = `${job.id} ${job.name || job.program}`;
        try {
            if (verb === "delete") {
                const plan = await api(path, {method: "POST", body: {confirm: false}}), files = plan.files || [];
                if (!await ask(`Delete job ${name}?`, el("div", {}, el("p", {}, `These ${files.length} files, ${fmtBytes(plan.bytes)}, go for good. The folder of the run stays.`),
                    el("ul", {class: "files", tabindex: "0", "aria-label": "files"}, ...files.map((f) => el("li", {}, f.name, " ", el("span", {class: "note"}, fmtBytes(f.size))))),
                    inShell(shellOf(job, verb) + " --confirm")), "Delete", true)) return;
                body = {confirm: true};
            } else if (question) {
                if (!await ask(`${label || verb} job ${name}?`, el("div", {}, el("p", {}, question), inShell(shellOf(job, verb) + (body ? " --now" : ""))), label || verb, Boolean(body))) return;
            }
            const send = (more) => api(path, {method: "POST", body: {...body, ...more}});
            const answer = await send().catch(async (error) => {
                if (!error.problem || !error.problem.memory || !await ask(`${verb} job ${name}?`, el("p", {}, error.problem.memory), "Start it all the same")) throw error;
                return send({force: true});
            });
            say(`${label || verb}: ${name}`);
            if (stay) { /* the list of runs shows it */ }
            else if (verb === "delete") go(link("new", ["jobs"]));
            else if (answer && answer.id && answer.id !== job.id) go(jobLink(answer.id));
        } catch (error) {
            say(error.detail || error.message, "bad");
        }
        done();
    }

    function buttons(job, done) {
        return el("span", {class: "row"}, ...actions(job).map((a) => el("button", {type: "button", class: "small", title: shellOf(job, a[0]),
            "aria-label": `${a[3] || a[0]} job ${job.id}`, onclick: () => act(job, a, done)}, a[3] || a[0])));
    }

    /* Beside a run: without the deletion of the job, which would take its log. */
    jobButtons = (job, done) => actions(job).filter((a) => a[0] !== "delete" && (a[0] !== "retry" || job.state !== "succeeded")).map((a) => el("button", {type: "button", class: "small", title: shellOf(job, a[0]),
        "aria-label": `${a[3] || a[0]} job ${job.id}`, onclick: () => act(job, a, done, true)}, a[3] || a[0]));

    function renderJobs(main, params, isHere) {
        const chosen = params.job;
        const status = el("p", {class: "note", role: "status"}), table = el("div", {class: "jobs-table"}), detail = el("section", {"aria-label": "the job"});
        main.append(status, table, detail);
        let last = "", log = null, known = null;
        const draw = (answer) => {
            const text = JSON.stringify(answer);
            if (text === last) return;
            last = text;
            const held = document.activeElement && document.activeElement.getAttribute("aria-label");
            const jobs = answer.jobs || [];
            const counts = {};
            for (const job of jobs) counts[job.state] = (counts[job.state] || 0) + 1;
            status.textContent = jobs.length ? Object.entries(counts).map(([state, n]) => `${n} ${state}`).join(", ") +
                Object.entries(answer.slots || {}).filter(([, s]) => s && s.total).map(([kind, s]) => `; ${kind} slots: ${s.busy} of ${s.total} busy`).join("") : "";
            if (!jobs.length) {
                fill(table, empty("No job yet", "Start one from the form, or in a shell:", "studio run start finetune_lora model=FOLDER dataset=FILE"));
            } else {
                table.replaceChildren(el("table", {class: "jobs"},
                    el("thead", {}, el("tr", {}, ...["State", "Job", "Program", "Since", "Why", "Do"].map((h) => el("th", {scope: "col"}, h)))),
                    el("tbody", {}, ...jobs.map((job) => {
                        const at = (job.states || [])[(job.states || []).length - 1] || {};
                        return el("tr", {class: String(job.id) === chosen ? "chosen" : ""}, el("td", {}, stateBadge(job.state)),
                            el("td", {}, el("a", {href: jobLink(job.id)}, `${job.id} ${job.name || job.program}`), job.folder && [" ", el("a", {href: runLink(job.folder), "aria-label": "run " + job.folder}, "run")]),
                            el("td", {}, job.program), el("td", {}, at.time ? fmtTime(at.time) : ""), el("td", {class: "why"}, at.reason || ""), el("td", {}, buttons(job, () => turns.now())));
                    }))));
            }
            if (held) {
                const again = [...main.querySelectorAll("[aria-label]")].find((one) => one.getAttribute("aria-label") === held);
                if (again && again !== document.activeElement) again.focus();
            }
            const job = chosen && jobs.find((one) => String(one.id) === chosen);
            if (job) {
                if (!known) {
                    const box = commandBox(typeof job.command === "string" ? job.command : (job.command && job.command.text) || (job.argv || []).map(word).join(" "), "Command of the job");
                    known = el("ol", {class: "history"});
                    log = logBox("/api/jobs/" + encodeURIComponent(job.id) + "/log", isHere);
                    detail.replaceChildren(el("h2", {}, `Job ${job.id}: ${job.name || job.program}`), known, box, log.box);
                }
                known.replaceChildren(...(job.states || []).map((s) => el("li", {}, stateBadge(s.state), " ", s.time ? fmtTime(s.time) : "", s.reason ? ": " + s.reason : "")));
            } else if (chosen) fill(detail, el("p", {class: "note"}, `Job ${chosen} is not here: it was deleted, or belongs to another root.`));
        };
        const turns = poll(async () => {
            const answer = await api("/api/jobs");
            if (isHere()) draw(answer);
            if (log) await log.read();
        }, 1.2);
    }

    /* The end of a log, which follows until one scrolls up. */
    function logBox(path, isHere) {
        const text = el("pre", {class: "log", tabindex: "0", "aria-label": "log"});
        const follow = el("input", {type: "checkbox", id: "job-follow"});
        follow.checked = true;
        let offset = 0, busy = false;
        text.addEventListener("scroll", () => (follow.checked = text.scrollTop + text.clientHeight >= text.scrollHeight - 8));
        const read = async () => {
            if (busy) return;
            busy = true;
            try {
                for (let more = true; more && isHere();) {
                    const answer = await api(`${path}?offset=${offset}&limit=65536`);
                    more = answer.next > offset && answer.next < answer.size;
                    if (answer.next > offset) {
                        offset = answer.next;
                        text.append(answer.text);
                        if (text.textContent.length > 1 << 20) text.textContent = text.textContent.slice(-(1 << 19));
                        if (follow.checked) text.scrollTop = text.scrollHeight;
                    }
                }
            } finally { busy = false; }
        };
        return {box: el("div", {}, el("div", {class: "row"}, el("h3", {}, "Log"), el("label", {for: "job-follow"}, follow, " follow")), text), read};
    }

    /* ---- the view ---- */

    view("new", (main, params, parts) => {
        let here = true;
        const jobs = parts && parts[0] === "jobs";
        main.append(el("h1", {}, "New run"), el("nav", {class: "tabs", "aria-label": "new run"},
            el("a", {href: "#/new", "aria-current": jobs ? null : "page"}, "Form"), el("a", {href: "#/new/jobs", "aria-current": jobs ? "page" : null}, "Jobs")));
        const body = el("div", {});
        main.append(body);
        (jobs ? renderJobs : renderForm)(body, params, () => here);
        return () => (here = false);
    }, "New run");
})();
