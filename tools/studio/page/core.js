/* core.js - the page's ground: elements, the API, views by address, polling, formats, the table.
 *
 * The scripts are plain and share one scope: core, charts, runs, compare, new, spaces, in this
 * order. What a server says is put on the page as text only, never as markup.
 *
 *   el(tag, {class, on..., ...}, ...children)   an element; strings become text
 *   api(path, {method, body, signal})           JSON of the server; throws an Error with .status,
 *                                               .detail, .problem, and .away when nobody answers
 *   view(name, render, title)                   render(main, params, parts) at #/name/part?params;
 *                                               it may return a function called on leaving
 *   go(hash), link(name, parts, params), setParams({k: v or null})
 *   poll(fn, seconds)                           while the page is visible, until the view is left
 *   fmtNumber, fmtBytes, fmtSeconds, fmtTime, fmtAgo, fmtDuration
 *   Table({...})                                a table that scrolls through any number of rows
 *   say(text, kind), copyButton(text), empty(title, text, command), ask(...), runColors(ids) */
"use strict";

/* Elements */

function el(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) e.addEventListener(name.slice(2).toLowerCase(), value);
        else if (["value", "checked", "disabled", "indeterminate", "selected", "open"].includes(name)) e[name] = value;
        else e.setAttribute(name, value === true ? "" : value);
    }
    add(e, children);
    return e;
}

function add(e, children) {
    for (const c of children) {
        if (c === null || c === undefined || c === false) continue;
        if (Array.isArray(c)) add(e, c);
        else e.append(c instanceof Node ? c : document.createTextNode(String(c)));
    }
    return e;
}

function fill(e, ...children) {
    e.replaceChildren();
    return add(e, children);
}

/* The server */

let serverAway = false;

function showAway(away) {
    if (away === serverAway) return;
    serverAway = away;
    const bar = document.getElementById("away");
    bar.hidden = !away;
    fill(bar, away ? "Server away, trying again. Runs go on without it." : "");
    if (!away) document.dispatchEvent(new Event("server-back"));
}

async function request(path, options = {}) {
    const method = options.method || "GET";
    const init = {method, signal: options.signal, headers: {Accept: options.accept || "application/json"}};
    if (method !== "GET") {
        init.headers["Content-Type"] = "application/json";
        init.body = JSON.stringify(options.body === undefined ? {} : options.body);
    }
    if (options.match) init.headers["If-Match"] = options.match;
    let answer;
    try {
        answer = await fetch(path, init);
    } catch (problem) {
        if (problem.name === "AbortError") throw problem;
        showAway(true);
        throw Object.assign(new Error("the server does not answer"), {away: true, status: 0, detail: "the server does not answer"});
    }
    showAway(false);
    if (answer.ok) return answer;
    let p = {};
    try { p = await answer.json(); } catch { /* no JSON: the status must do */ }
    const detail = p.detail || p.title || `the server answered ${answer.status}`;
    throw Object.assign(new Error(detail), {status: answer.status, detail, problem: p});
}

async function api(path, options) {
    const answer = await request(path, options);
    const text = await answer.text();
    return text ? JSON.parse(text) : null;
}

async function apiText(path, options) {
    return (await request(path, {accept: "*/*", ...options})).text();
}

/* A path with parameters: null and "" are left out, a list is joined by commas. */
function query(path, params) {
    const parts = [];
    for (const [k, v] of Object.entries(params || {})) {
        if (v === null || v === undefined || v === "" || v === false) continue;
        const text = Array.isArray(v) ? v.map(encodeURIComponent).join(",") : v === true ? "true" : String(v);
        parts.push(`${k}=${encodeURIComponent(text)}`);
    }
    return parts.length ? `${path}?${parts.join("&")}` : path;
}

/* Views: the address holds what is shown */

const views = new Map();
let current = {name: "", parts: [], params: {}, leave: []};

function view(name, render, title) {
    views.set(name, {render, title});
}

function link(name, parts, params) {
    return query("#/" + [name, ...(parts || [])].map(encodeURIComponent).join("/"), params);
}

function go(hash) {
    if (location.hash === hash) open();
    else location.hash = hash;
}

function readHash() {
    const hash = location.hash.replace(/^#\/?/, "");
    const at = hash.indexOf("?");
    const path = at < 0 ? hash : hash.slice(0, at);
    const params = {};
    if (at >= 0) for (const [k, v] of new URLSearchParams(hash.slice(at + 1))) params[k] = v;
    let parts;
    try { parts = path.split("/").map(decodeURIComponent); } catch { parts = path.split("/"); }
    return {name: parts[0] || "runs", parts: parts.slice(1), params};
}

function setParams(changes) {
    Object.assign(current.params, changes);
    for (const k of Object.keys(current.params))
        if (current.params[k] === null || current.params[k] === undefined || current.params[k] === "") delete current.params[k];
    history.replaceState(null, "", link(current.name, current.parts, current.params));
    markNav();
}

/* What must end when this view is left. */
function onLeave(fn) {
    current.leave.push(fn);
}

function setTitle(text) {
    document.title = text ? `${text} - studio` : "studio";
}

function markNav() {
    for (const a of document.querySelectorAll("#nav a")) {
        if (a.dataset.view === current.name) a.setAttribute("aria-current", "page");
        else a.removeAttribute("aria-current");
    }
}

function open() {
    for (const fn of current.leave.splice(0)) fn();
    const main = document.getElementById("main");
    const first = current.name === "";
    current = {...readHash(), leave: []};
    const v = views.get(current.name);
    main.replaceChildren();
    main.className = `view-${current.name}`;
    markNav();
    setTitle(v ? v.title : "");
    if (!v) {
        add(main, [empty("There is no such view", `The address names "${current.name}".`), el("p", {}, el("a", {href: "#/runs"}, "All runs"))]);
        return;
    }
    window.scrollTo(0, 0);
    const left = v.render(main, current.params, current.parts);
    if (typeof left === "function") current.leave.push(left);
    if (!first) main.focus({preventScroll: true});
}

/* Calls fn now and every so many seconds, one at a time, only while the page is visible. */
function poll(fn, seconds = 1.5) {
    let ended = false, timer = 0, busy = false, failures = 0;
    const turn = async () => {
        clearTimeout(timer);
        if (ended || busy || document.hidden) return;
        busy = true;
        try { await fn(); failures = 0; }
        catch (problem) {
            failures++;
            if (!problem.away && problem.name !== "AbortError" && failures === 1) say(problem.detail || problem.message, "bad");
        }
        busy = false;
        if (!ended && !document.hidden) timer = setTimeout(turn, 1000 * Math.min(10, seconds * (1 + Math.min(failures, 4))));
    };
    const stop = () => { ended = true; clearTimeout(timer); document.removeEventListener("visibilitychange", turn); };
    document.addEventListener("visibilitychange", turn);
    onLeave(stop);
    turn();
    return {stop, now: turn};
}

/* Formats */

function fmtNumber(v, digits = 4) {
    if (v === null || v === undefined || v === "") return "";
    if (typeof v !== "number") return String(v);
    if (Number.isNaN(v)) return "NaN";
    if (!Number.isFinite(v)) return v > 0 ? "inf" : "-inf";
    const a = Math.abs(v);
    if (Number.isInteger(v) && a < 1e9) return a < 1e4 ? String(v) : v.toLocaleString("en-US").replaceAll(",", "\u202f");
    if (a >= 1e9 || a < 1e-3) return v.toExponential(Math.max(0, digits - 1)).replace(/\.?0+e/, "e").replace("e+", "e");
    return a >= 1e4 ? Math.round(v).toLocaleString("en-US").replaceAll(",", "\u202f") : String(Number(v.toPrecision(digits)));
}

function fmtBytes(n) {
    if (typeof n !== "number") return "";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (n >= 1024 && i < 4) { n /= 1024; i++; }
    return `${i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

function fmtSeconds(s) {
    if (typeof s !== "number" || !Number.isFinite(s)) return "";
    if (s < 10) return `${s.toFixed(1)} s`;
    if (s < 60) return `${Math.round(s)} s`;
    const two = n => String(Math.floor(n)).padStart(2, "0");
    if (s < 3600) return `${Math.floor(s / 60)}:${two(s % 60)}`;
    if (s < 86400) return `${Math.floor(s / 3600)}:${two(s / 60 % 60)}:${two(s % 60)}`;
    return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600 % 24)} h`;
}
const fmtDuration = fmtSeconds;

function fmtTime(t) {
    if (typeof t !== "number" || !(t > 0)) return "";
    const d = new Date(1000 * t), two = n => String(n).padStart(2, "0");
    return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

function fmtAgo(t) {
    if (typeof t !== "number" || !(t > 0)) return "";
    const s = Date.now() / 1000 - t;
    if (s < 60) return "just now";
    if (s < 3600) return `${Math.floor(s / 60)} min ago`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
    return s < 30 * 86400 ? `${Math.floor(s / 86400)} d ago` : fmtTime(t).slice(0, 10);
}

/* A value of an option, as one would type it. */
function fmtValue(v) {
    if (v === null || v === undefined) return "";
    if (typeof v === "number") return fmtNumber(v, 6);
    if (typeof v === "boolean") return v ? "yes" : "no";
    return typeof v === "object" ? JSON.stringify(v) : String(v);
}

/* What only this browser keeps: colours of runs, chosen columns. */
function recall(name, otherwise) {
    try { return JSON.parse(localStorage.getItem(`studio.${name}`)) ?? otherwise; } catch { return otherwise; }
}

function keep(name, value) {
    try { localStorage.setItem(`studio.${name}`, JSON.stringify(value)); } catch { /* not kept: no harm */ }
}

/* A run keeps its colour: the one that its id gives or, where a comparison had that already, the
 * free one that it got there. */
const keptColors = recall("colors", {});

function runColor(id) {
    if (id in keptColors) return keptColors[id];
    let h = 2166136261;
    for (let i = 0; i < id.length; i++) h = Math.imul(h ^ id.charCodeAt(i), 16777619) >>> 0;
    return h % 8;
}

function runColors(ids) {
    const used = Array(8).fill(0);
    let changed = false;
    for (const id of ids) if (id in keptColors) used[keptColors[id]]++;
    for (const id of ids) {
        if (id in keptColors) continue;
        const own = runColor(id);
        let best = own;
        for (let i = 0; i < 8; i++) if (used[(own + i) % 8] < used[best]) best = (own + i) % 8;
        used[best]++;
        keptColors[id] = best;
        changed = true;
    }
    if (changed) keep("colors", keptColors);
    return ids.map(runColor);
}

/* Short words to the user */

function say(text, kind) {
    const box = document.getElementById("toasts");
    const t = el("div", {class: `toast ${kind || ""}`}, el("span", {}, text),
                 el("button", {class: "plain", "aria-label": "Dismiss", onclick: () => t.remove()}, "\u00d7"));
    box.append(t);
    while (box.children.length > 4) box.firstChild.remove();
    setTimeout(() => t.remove(), kind === "bad" ? 12000 : 4000);
}

async function copyText(text) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const t = el("textarea", {class: "offscreen", value: text, "aria-hidden": "true"});
        document.body.append(t);
        t.select();
        document.execCommand("copy");
        t.remove();
    }
    say("Copied");
}

function copyButton(text, label = "Copy") {
    return el("button", {type: "button", class: "small", onclick: () => copyText(typeof text === "function" ? text() : text)}, label);
}

/* A command with its button. */
function commandBox(text, label) {
    return el("div", {class: "command"}, el("code", {tabindex: "0", role: "group", "aria-label": label || "Command"}, text), copyButton(text));
}

function empty(title, text, command) {
    return el("div", {class: "empty"}, el("h2", {}, title), text && el("p", {}, text), command && commandBox(command));
}

function download(name, data, type) {
    const url = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], {type}));
    const a = el("a", {href: url, download: name});
    document.body.append(a);
    a.click();
    a.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* Asks once. Resolves to true only by the named button. */
function ask(title, content, action, danger) {
    return new Promise(resolve => {
        const d = el("dialog", {class: "ask", "aria-labelledby": "ask-title"});
        const end = yes => { d.close(); d.remove(); resolve(yes); };
        add(d, [el("h2", {id: "ask-title"}, title), content,
                el("div", {class: "buttons"}, el("button", {type: "button", onclick: () => end(false)}, "Keep as is"),
                   el("button", {type: "button", class: danger ? "danger" : "main", onclick: () => end(true)}, action))]);
        d.addEventListener("cancel", e => { e.preventDefault(); end(false); });
        document.body.append(d);
        d.showModal();
    });
}

/* A state: a dot and its word. */
function stateBadge(state) {
    return el("span", {class: `state state-${String(state || "unknown").replace(/[^a-z]/g, "")}`}, el("i", {"aria-hidden": "true"}), state || "unknown");
}

function progressBar(part, label) {
    const bar = el("span", {class: "meter", role: "progressbar", "aria-label": label || "Progress", "aria-valuemin": "0", "aria-valuemax": "100",
                            "aria-valuenow": String(Math.round(100 * part))}, el("i"));
    bar.firstChild.style.width = `${Math.max(0, Math.min(100, 100 * part))}%`;
    return bar;
}

/* A table that draws only the rows in sight.
 *   columns: [{key, title, unit, number, cell(row) -> Node or text, sort: false, className}]
 *   count() rows, row(i) -> row or null while it is not there, need(from, to) asks for rows
 *   key(row), open(row), selected: Set of keys or null, onSelect(), sort {key, reverse}, onSort(key)
 *   group(row) -> text: a heading is shown where it changes */
function Table(options) {
    const o = {rowHeight: 34, label: "Table", selected: null, sort: {}, ...options};
    const head = el("thead"), body = el("tbody");
    const table = el("table", {role: "grid", "aria-label": o.label, class: "grid", "aria-multiselectable": o.selected ? "true" : null}, head, body);
    const box = el("div", {class: "scroller"}, table);
    let at = 0, anchor = 0, frame = 0, scrolled = false;
    const widths = new Map();

    const count = () => (o.rows ? o.rows.length : o.count());
    const row = i => (o.rows ? o.rows[i] : o.row(i));
    const later = () => { if (!frame) frame = requestAnimationFrame(() => { frame = 0; drawRows(); }); };

    function drawHead() {
        const cells = o.columns.map(c => {
            const sorted = o.sort.key === c.key;
            const label = el("span", {}, c.title, c.unit && el("small", {}, ` ${c.unit}`));
            return el("th", {scope: "col", class: c.number ? "number" : null, "data-key": c.key,
                             "aria-sort": sorted ? (o.sort.reverse ? "descending" : "ascending") : null},
                      c.sort === false || !o.onSort ? label :
                      el("button", {type: "button", class: "sort", onclick: () => o.onSort(c.key)}, label,
                         el("span", {"aria-hidden": "true", class: "arrow"}, sorted ? (o.sort.reverse ? "\u25be" : "\u25b4") : "")));
        });
        if (o.selected) {
            const all = el("input", {type: "checkbox", "aria-label": "Select all rows shown", onclick: () => {
                for (let i = 0; i < count(); i++) if (row(i)) all.checked ? o.selected.add(o.key(row(i))) : o.selected.delete(o.key(row(i)));
                chosen();
            }});
            cells.unshift(el("th", {scope: "col", class: "tick"}, all));
        }
        fill(head, el("tr", {}, cells));
        for (const th of head.querySelectorAll("th[data-key]"))
            if (widths.has(th.dataset.key)) th.style.minWidth = `${widths.get(th.dataset.key)}px`;
    }

    function chosen() { if (o.onSelect) o.onSelect(); drawRows(); }

    function pick(i, range) {
        if (!o.selected || !row(i)) return;
        const on = !o.selected.has(o.key(row(i)));
        const [from, to] = range ? [Math.min(anchor, i), Math.max(anchor, i)] : [i, i];
        for (let k = from; k <= to; k++) if (row(k)) on || range ? o.selected.add(o.key(row(k))) : o.selected.delete(o.key(row(k)));
        anchor = i;
        chosen();
    }

    function drawRows() {
        const n = count(), h = o.rowHeight, high = box.clientHeight || 600;
        const from = Math.max(0, Math.floor(box.scrollTop / h) - 8), to = Math.min(n, from + Math.ceil(high / h) + 16);
        if (o.need) o.need(from, to);
        at = Math.max(0, Math.min(at, n - 1));
        const focused = body.contains(document.activeElement) && document.activeElement.closest("tr[data-row]");
        const inner = focused && document.activeElement !== focused, label = inner && document.activeElement.getAttribute("aria-label");
        const across = o.columns.length + (o.selected ? 1 : 0);
        const space = size => { const tr = el("tr", {class: "space", "aria-hidden": "true"}, el("td", {colspan: String(across)})); tr.firstChild.style.height = `${size}px`; return tr; };
        const rows = [];
        if (from > 0) rows.push(space(from * h));
        for (let i = from; i < to; i++) {
            const r = row(i);
            const attributes = {"data-row": String(i), "aria-rowindex": String(i + 2), tabindex: i === at ? "0" : "-1"};
            if (!r) { rows.push(el("tr", attributes, el("td", {colspan: String(across), class: "note"}, "\u2026"))); continue; }
            const picked = o.selected && o.selected.has(o.key(r));
            if (o.selected) attributes["aria-selected"] = picked ? "true" : "false";
            attributes["data-id"] = o.key ? o.key(r) : null;
            const tr = el("tr", attributes,
                          o.selected && el("td", {class: "tick"}, el("input", {type: "checkbox", tabindex: "-1", checked: picked, "aria-label": `Select ${o.name ? o.name(r) : o.key(r)}`})),
                          o.columns.map(c => el("td", {class: [c.number ? "number" : "", c.className || ""].join(" ").trim() || null}, c.cell(r))));
            if (o.group && (i === 0 || !row(i - 1) || o.group(row(i - 1)) !== o.group(r))) {
                tr.classList.add("group");
                (tr.querySelector("td.name") || tr.lastChild).append(el("small", {class: "group-name"}, o.group(r)));
            }
            rows.push(tr);
        }
        if (to < n) rows.push(space((n - to) * h));
        body.replaceChildren(...rows);
        table.setAttribute("aria-rowcount", String(n + 1));
        if (focused) {
            const again = body.querySelector(`tr[data-row="${at}"]`);
            const same = again && label && [...again.querySelectorAll("[aria-label]")].find(e => e.getAttribute("aria-label") === label);
            if (again) (same || (inner && again.querySelector("input,a")) || again).focus({preventScroll: true});
        }
        const all = head.querySelector("th.tick input");
        if (all) {
            all.checked = n > 0 && o.selected.size >= n;
            all.indeterminate = o.selected.size > 0 && !all.checked;
        }
        /* Columns keep their widths. They are not measured while one scrolls. */
        const measured = !scrolled;
        scrolled = false;
        if (measured) for (const th of head.querySelectorAll("th[data-key]")) {
            const w = Math.ceil(th.offsetWidth);
            if (w > (widths.get(th.dataset.key) || 0)) { widths.set(th.dataset.key, w); th.style.minWidth = `${w}px`; }
        }
    }

    function moveTo(i) {
        at = Math.max(0, Math.min(count() - 1, i));
        const top = at * o.rowHeight, room = box.clientHeight - head.offsetHeight - o.rowHeight;
        if (top < box.scrollTop) box.scrollTop = top;
        else if (top > box.scrollTop + room) box.scrollTop = top - room;
        drawRows();
        const tr = body.querySelector(`tr[data-row="${at}"]`);
        if (tr) tr.focus({preventScroll: true});
    }

    box.addEventListener("scroll", () => { scrolled = true; later(); }, {passive: true});
    body.addEventListener("click", e => {
        const tr = e.target.closest("tr[data-row]");
        if (!tr || e.target.closest("a,button")) return;
        at = Number(tr.dataset.row);
        if (e.target.closest("td.tick") || e.ctrlKey || e.metaKey || e.shiftKey) { e.preventDefault(); setTimeout(() => pick(at, e.shiftKey)); }
        else if (o.open && row(at) && !String(getSelection())) o.open(row(at));
    });
    body.addEventListener("keydown", e => {
        if (!e.target.closest("tr[data-row]") || e.target.closest("button") || e.altKey || e.ctrlKey || e.metaKey) return;
        const page = Math.max(1, Math.floor(box.clientHeight / o.rowHeight) - 2);
        const step = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9}[e.key];
        if (step) { e.preventDefault(); moveTo(at + step); if (e.shiftKey && o.selected) { o.selected.add(o.key(row(at))); chosen(); } }
        else if (e.key === " " && o.selected) { e.preventDefault(); pick(at, e.shiftKey); }
        else if (e.key === "Enter" && o.open && !e.target.closest("a") && row(at)) o.open(row(at));
    });
    if ("ResizeObserver" in window) new ResizeObserver(later).observe(box);
    return {
        element: box, table,
        draw() { drawHead(); drawRows(); },
        drawRows,
        set(changes) { if (changes.columns) widths.clear(); Object.assign(o, changes); drawHead(); drawRows(); },
        toTop() { box.scrollTop = 0; at = 0; },
        get selected() { return o.selected; },
    };
}

/* Which columns are shown: a button that opens a list of ticks. */
function columnChooser(all, shown, onChange, label = "Columns") {
    const list = el("div", {class: "menu-list"});
    const find = el("input", {type: "search", placeholder: "Find a column", "aria-label": "Find a column", oninput: () => draw()});
    const draw = () => fill(list, all().filter(c => c.title.toLowerCase().includes(find.value.toLowerCase())).slice(0, 300).map(c =>
        el("label", {}, el("input", {type: "checkbox", checked: shown().includes(c.key), onchange: e => {
            const now = shown().filter(k => k !== c.key);
            if (e.target.checked) now.push(c.key);
            onChange(now);
        }}), " ", c.title)));
    return menu(label, [find, list], draw);
}

/* A button with a panel below it; Escape and a click elsewhere close it. */
function menu(label, content, onOpen) {
    const panel = el("div", {class: "menu-panel", hidden: true}, content);
    const show = on => { panel.hidden = !on; button.setAttribute("aria-expanded", String(on)); if (on && onOpen) onOpen(); };
    const button = el("button", {type: "button", "aria-expanded": "false", "aria-haspopup": "true", onclick: () => show(panel.hidden)}, label);
    const box = el("div", {class: "menu"}, button, panel);
    const away = e => { if (!panel.hidden && !box.contains(e.target)) show(false); };
    document.addEventListener("pointerdown", away);
    onLeave(() => document.removeEventListener("pointerdown", away));
    box.addEventListener("keydown", e => { if (e.key === "Escape" && !panel.hidden) { show(false); button.focus(); e.stopPropagation(); } });
    return box;
}

/* Start: index.html has #nav, #main, #away, #toasts. */
document.addEventListener("DOMContentLoaded", () => {
    const nav = document.getElementById("nav");
    for (const [name, v] of views) if (v.title) nav.append(el("a", {href: `#/${name}`, "data-view": name}, v.title));
    window.addEventListener("hashchange", open);
    open();
});
