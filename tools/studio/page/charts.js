/* charts.js - the server's SVG with a cursor, zoom, a legend with exact values, and downloads.
 *
 * insertSvg(text)  an SVG element of that document, without its style (plot.css has it).
 * chartSet({runs, groups, params, onParams, note})  charts that share cursor and zoom:
 *     tools: an element for the bar; axes() -> names of metrics that can be x; runs() -> [{id, name, state, reason}], groups() -> [["loss", "eval_loss"], ["lr"]];
 *     params: x, log, smooth, from, to, off (curves that are not shown)
 *     -> {element, draw(), refresh()} */
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function svgEl(tag, attributes) {
    const e = document.createElementNS(SVG, tag);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    return e;
}

function insertSvg(text) {
    /* The page's policy forbids the style; without it there is no complaint in the console. */
    const doc = new DOMParser().parseFromString(text.replace(/<style>[^<]*<\/style>/g, ""), "image/svg+xml");
    const svg = doc.documentElement;
    if (svg.localName !== "svg" || doc.querySelector("parsererror")) return el("p", {class: "note"}, "The picture could not be read.");
    for (const e of svg.querySelectorAll("style,script,foreignObject")) e.remove();
    return document.importNode(svg, true);
}

/* The index of the value nearest to v in ascending numbers; -1: none. */
function nearest(x, v) {
    let low = 0, high = x.length - 1;
    if (high < 0) return -1;
    while (high - low > 1) {
        const mid = (low + high) >> 1;
        if (x[mid] < v) low = mid; else high = mid;
    }
    return Math.abs(x[low] - v) <= Math.abs(x[high] - v) ? low : high;
}

const AXES = ["step", "time", "tokens", "epoch"];
const idsOf = ids => ids.map(id => id.replaceAll(",", "%2C")).join(",");

function csvField(v) {
    const text = v === null || v === undefined ? "" : String(v);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function chartSet(options) {
    const o = {params: {}, onParams: () => {}, ...options};
    const p = o.params;
    const charts = [];
    const box = el("div", {class: "charts"}), bar = el("div", {class: "toolbar", role: "group", "aria-label": "Charts"}), list = el("div", {class: "chart-list"});
    add(box, [bar, list]);
    let full = false, generation = 0;

    const change = changes => { Object.assign(p, changes); o.onParams(changes); drawBar(); draw(); };
    const off = () => new Set((p.off || "").split("|").filter(Boolean));
    const hidden = (id, metric) => off().has(`${id} ${metric}`);

    const axis = x => el("option", {value: x, selected: (p.x || "step") === x}, x);
    const others = () => [...new Set([...(o.axes ? o.axes() : []), ...(p.x ? [p.x] : [])])].filter(n => !AXES.includes(n));

    function drawBar() {
        const focus = bar.contains(document.activeElement) ? document.activeElement.id : "";
        const smooth = p.smooth === undefined || p.smooth === "" ? -1 : Number(p.smooth);
        const shown = el("output", {for: "chart-smooth"}, smooth < 0 ? "auto" : smooth === 0 ? "none" : `${smooth} points`);
        fill(bar,
             el("label", {}, "x ", el("select", {id: "chart-x", onchange: e => change({x: e.target.value === "step" ? "" : e.target.value, from: "", to: ""})},
                AXES.map(axis), others().length ? el("optgroup", {label: "metrics"}, others().map(axis)) : null)),
             el("label", {}, el("input", {id: "chart-log", type: "checkbox", checked: p.log === "true", onchange: e => change({log: e.target.checked ? "true" : ""})}), " log y"),
             el("label", {class: "slider"}, "smoothing ", el("input", {id: "chart-smooth", type: "range", min: "-1", max: "100", value: String(smooth),
                oninput: e => { shown.textContent = e.target.value < 0 ? "auto" : e.target.value === "0" ? "none" : `${e.target.value} points`; },
                onchange: e => change({smooth: e.target.value === "-1" ? "" : e.target.value})}), " ", shown),
             p.from || p.to ? el("button", {id: "chart-reset", type: "button", class: "small", onclick: () => change({from: "", to: ""})}, "Whole range") : null,
             o.tools || null,
             el("span", {class: "note hint"}, "drag to zoom, double click for the whole range"));
        if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
    }

    function picture(group, extra) {
        const runs = o.runs(), ids = runs.map(r => r.id);
        return query("/api/runs/plot.svg", {ids: idsOf(ids), metrics: group.join(","), x: p.x || "step", log: p.log === "true" ? "true" : "",
                                            smooth: p.smooth, from: p.from, to: p.to, colors: runColors(ids).join(","), ...extra});
    }

    function curvesPath(metric, extra) {
        return query("/api/runs/curves", {ids: idsOf(o.runs().map(r => r.id)), metric, x: p.x || "step", from: p.from, to: p.to, ...extra});
    }

    /* One chart: a figure with the picture, its overlay, the legend. */
    function makeChart(group) {
        const c = {group, curves: [], plot: null};
        const stage = el("div", {class: "stage"}), legend = el("div", {class: "legend", role: "group", "aria-label": `Curves of ${group[0]}`});
        const note = el("span", {class: "note"}), name = group.join(" and ");
        const say_why = problem => { if (!problem.away) say(problem.detail || problem.message, "bad"); };
        const item = (text, work) => el("button", {type: "button", onclick: () => work().catch(say_why)}, text);
        const tools = menu("Save", [
            el("a", {class: "button", "data-save": "csv", download: fileName(c, "csv")}, "CSV, all points"),
            el("a", {class: "button", "data-save": "json", download: fileName(c, "json")}, "JSON, all points"),
            item("SVG", async () => download(fileName(c, "svg"), await pictureText(c), "image/svg+xml")),
            item("PNG", async () => download(fileName(c, "png"), await pngOf(c))),
            item("Copy as SVG", async () => copyText(await pictureText(c))),
            item("Copy as PNG", () => copyPng(c))], () => {
            for (const a of tools.querySelectorAll("a[data-save]")) a.href = pointsPath(c, a.dataset.save);
        });
        tools.classList.add("right");
        c.figure = el("figure", {class: "chart", tabindex: "0", role: "group", "aria-label": `Chart of ${name}. Arrow keys move the cursor, plus zooms in, 0 shows the whole range.`}, stage,
                      el("figcaption", {}, legend, el("div", {class: "foot"}, note, tools)));
        Object.assign(c, {stage, legend, note, name});
        pointer(c);
        return c;
    }

    const fraction = (plot, v) => (v - plot.xMin) / (plot.xMax - plot.xMin || 1);
    const xOf = (plot, v) => plot.left + plot.width * fraction(plot, v);
    const yOf = (plot, v) => {
        const t = plot.log ? (Math.log(v) - Math.log(plot.yMin)) / (Math.log(plot.yMax) - Math.log(plot.yMin)) : (v - plot.yMin) / (plot.yMax - plot.yMin);
        return plot.top + plot.height * (1 - t);
    };

    function readPlot(c) {
        const g = c.svg && c.svg.querySelector("g.plot"), d = g && g.dataset;
        c.plot = d ? {left: +d.left, top: +d.top, width: +d.width, height: +d.height, xMin: +d.xMin, xMax: +d.xMax, yMin: +d.yMin, yMax: +d.yMax,
                      log: d.log === "1", xTitle: d.xTitle, yTitle: d.yTitle} : null;
    }

    async function drawOne(c, turn) {
        const width = Math.max(320, Math.min(2000, Math.round(c.stage.clientWidth || 800)));
        try {
            const [text, ...data] = await Promise.all([apiText(picture(c.group, {width, legend: "false"})),
                ...c.group.map(m => api(curvesPath(m, full ? {full: "true"} : {width: Math.max(200, width - 100)})))]);
            if (turn !== generation) return;
            const begun = performance.now();
            c.curves = data.flatMap(d => d.curves.map(k => ({...k, metric: d.metric, unit: d.unit})));
            c.svg = insertSvg(text);
            c.svg.setAttribute("aria-label", `Curves of ${c.name}`);
            fill(c.stage, c.svg);
            readPlot(c);
            overlay(c);
            drawLegend(c);
            c.figure.dataset.redraw = (performance.now() - begun).toFixed(1);
        } catch (problem) {
            if (problem.away) throw problem;
            c.svg = c.plot = null;
            c.curves = [];
            fill(c.stage, el("p", {class: "note"}, problem.detail || problem.message));
            fill(c.legend);
        }
    }

    function overlay(c) {
        if (!c.plot) return;
        const q = c.plot;
        c.line = svgEl("line", {class: "cursor", y1: q.top, y2: q.top + q.height, visibility: "hidden"});
        c.zone = svgEl("rect", {class: "zone", y: q.top, height: q.height, visibility: "hidden"});
        c.dots = svgEl("g", {class: "cursor-dots", "pointer-events": "none"});
        c.svg.append(c.zone, c.line, c.dots);
        /* Values that no axis can show: a mark at the upper edge. */
        for (const k of c.curves)
            for (const odd of k.nonfinite || []) {
                if (odd.x === null || odd.x < q.xMin || odd.x > q.xMax) continue;
                const x = xOf(q, odd.x), m = svgEl("path", {class: `odd f${runColor(k.id)}`, d: `M${x} ${q.top + 9}l-5 -9h10z`});
                m.append(svgEl("title"));
                m.firstChild.textContent = `${k.name} ${k.metric}: ${odd.value} at ${fmtNumber(odd.x)}`;
                c.svg.append(m);
            }
        markDiverged(c);
        showHidden(c);
    }

    /* A recipe ends where a loss or a gradient is not finite, and writes no such step: its last point
     * in the first chart has the mark. */
    function markDiverged(c) {
        if (c !== charts[0]) return;
        for (const run of o.runs()) {
            const k = run.state === "diverged" && c.curves.find(q => q.id === run.id && q.metric === c.group[0] && q.x.length), q = c.plot;
            const at = k && k.x[k.x.length - 1];
            if (!k || at < q.xMin || at > q.xMax) continue;
            const m = svgEl("path", {class: `odd diverged f${runColor(k.id)}`, d: `M${xOf(q, at)} ${q.top + 9}l-5 -9h10z`});
            m.append(svgEl("title"));
            m.firstChild.textContent = `${run.name}: ${run.reason || "diverged"}`;
            c.svg.append(m);
        }
    }

    function showHidden(c) {
        if (!c.svg) return;
        const names = new Map(o.runs().map(r => [r.id, r.name]));
        const hide = new Set();
        for (const k of c.curves)
            if (hidden(k.id, k.metric))
                for (const base of [names.get(k.id), k.name, k.id]) { hide.add(`${base} ${k.metric}`); if (c.group.length === 1) hide.add(base); }
        for (const e of c.svg.querySelectorAll("[data-curve]")) e.classList.toggle("hidden", hide.has(e.dataset.label));
    }

    function drawLegend(c) {
        const one = o.runs().length === 1;
        fill(c.legend, c.curves.map((k, i) => {
            const on = !hidden(k.id, k.metric);
            const swatch = svgEl("svg", {width: 22, height: 10, "aria-hidden": "true"});
            swatch.append(svgEl("line", {class: `curve c${runColor(k.id)}${k.metric.startsWith("eval_") ? " dotted" : ""}`, x1: 1, y1: 5, x2: 21, y2: 5}));
            return el("button", {type: "button", class: "entry", "aria-pressed": String(on), title: on ? "Hide this curve" : "Show this curve", onclick: () => {
                const now = off(), key = `${k.id} ${k.metric}`;
                now.has(key) ? now.delete(key) : now.add(key);
                p.off = [...now].join("|");
                o.onParams({off: p.off});
                for (const other of charts) { showHidden(other); for (const b of other.legend.querySelectorAll("button")) b.setAttribute("aria-pressed", String(!hidden(b.dataset.run, b.dataset.metric))); }
            }, "data-run": k.id, "data-metric": k.metric}, swatch, el("span", {class: "label"}, one ? k.metric : c.group.length > 1 ? `${k.name} ${k.metric}` : k.name),
            el("b", {"data-value": String(i)}, fmtNumber(k.y[k.y.length - 1])));
        }));
        const count = c.curves.reduce((s, k) => s + k.count, 0), shown = c.curves.reduce((s, k) => s + k.shown, 0);
        const odd = c.curves.reduce((s, k) => s + (k.nonfinite_count || 0), 0);
        c.note.closest("figure").classList.toggle("dense", shown > 10000);
        fill(c.note, shown < count ? [`${fmtNumber(shown)} of ${fmtNumber(count)} points drawn: lowest and highest of each column. `,
                                      el("a", {class: "full-data", href: pointsPath(c, "csv")}, "All as CSV"), " ",
                                      el("button", {type: "button", class: "small", onclick: () => { full = true; draw(); }}, "All points")]
                                   : count ? `all ${fmtNumber(count)} points` : "",
             odd ? el("strong", {class: "bad"}, ` ${odd} NaN or infinite, marked above`) : null,
             (c === charts[0] ? o.runs() : []).filter(r => r.state === "diverged").map(r => el("strong", {class: "bad"}, ` ${r.name} diverged, marked above`)));
    }

    function cursorAt(v) {
        for (const c of charts) {
            if (!c.plot) continue;
            const q = c.plot, inside = v !== null && v >= q.xMin && v <= q.xMax;
            c.line.setAttribute("visibility", inside ? "visible" : "hidden");
            if (inside) { c.line.setAttribute("x1", xOf(q, v)); c.line.setAttribute("x2", xOf(q, v)); }
            const dots = [];
            c.curves.forEach((k, i) => {
                const at = inside ? nearest(k.x, v) : k.x.length - 1, b = c.legend.querySelector(`[data-value="${i}"]`);
                if (b) b.textContent = at < 0 ? "" : inside ? `${fmtNumber(k.y[at], 5)} @ ${fmtNumber(k.x[at])}` : fmtNumber(k.y[at]);
                if (!inside || at < 0 || hidden(k.id, k.metric)) return;
                const y = yOf(q, k.y[at]), x = xOf(q, k.x[at]);
                if (Number.isFinite(y) && x >= q.left - 1 && x <= q.left + q.width + 1 && y >= q.top && y <= q.top + q.height)
                    dots.push(svgEl("circle", {class: `f${runColor(k.id)}`, cx: x, cy: y, r: 4}));
            });
            c.dots.replaceChildren(...dots);
        }
    }

    function pointer(c) {
        let begun = null, at = null;
        const valueAt = e => {
            const q = c.plot, r = c.svg.getBoundingClientRect(), scale = c.svg.viewBox.baseVal.width / r.width;
            const t = ((e.clientX - r.left) * scale - q.left) / q.width;
            return q.xMin + Math.max(0, Math.min(1, t)) * (q.xMax - q.xMin);
        };
        c.stage.addEventListener("pointermove", e => {
            if (!c.plot) return;
            at = valueAt(e);
            cursorAt(at);
            if (begun === null) return;
            const a = xOf(c.plot, Math.min(begun, at)), b = xOf(c.plot, Math.max(begun, at));
            c.zone.setAttribute("x", a);
            c.zone.setAttribute("width", b - a);
            c.zone.setAttribute("visibility", b - a > 3 ? "visible" : "hidden");
        });
        c.stage.addEventListener("pointerleave", () => { if (begun === null) cursorAt(null); });
        c.stage.addEventListener("pointerdown", e => { if (c.plot && e.button === 0 && e.pointerType !== "touch") { begun = valueAt(e); c.stage.setPointerCapture(e.pointerId); } });
        c.stage.addEventListener("pointerup", e => {
            if (begun === null || !c.plot) return;
            const end = valueAt(e), from = Math.min(begun, end), to = Math.max(begun, end);
            begun = null;
            c.zone.setAttribute("visibility", "hidden");
            if ((to - from) / (c.plot.xMax - c.plot.xMin) > 0.01) zoom(from, to);
        });
        c.stage.addEventListener("pointercancel", () => { begun = null; });
        c.stage.addEventListener("dblclick", () => change({from: "", to: ""}));
        c.figure.addEventListener("keydown", e => {
            if (e.target !== c.figure || !c.plot || e.ctrlKey || e.metaKey || e.altKey) return;
            const q = c.plot, wide = q.xMax - q.xMin;
            if (at === null || at < q.xMin || at > q.xMax) at = q.xMax;
            if (e.key === "ArrowLeft" || e.key === "ArrowRight") { at = Math.max(q.xMin, Math.min(q.xMax, at + (e.key === "ArrowLeft" ? -1 : 1) * wide / (e.shiftKey ? 10 : 100))); cursorAt(at); }
            else if (e.key === "+" || e.key === "=") zoom(Math.max(q.xMin, at - wide / 4), Math.min(q.xMax, at + wide / 4));
            else if (e.key === "0" || e.key === "Escape") change({from: "", to: ""});
            else return;
            e.preventDefault();
        });
        c.figure.addEventListener("blur", () => cursorAt(null));
    }

    function zoom(from, to) {
        const whole = !p.x || p.x === "step" || p.x === "tokens";
        change({from: String(whole ? Math.floor(from) : Number(from.toPrecision(7))), to: String(whole ? Math.ceil(to) : Number(to.toPrecision(7)))});
    }

    const fileName = (c, end) => `${c.group.join("-")}.${end}`;
    /* All points of a chart, in lines of run, step, key and value. */
    const pointsPath = (c, kind) => query(`/api/runs/metrics.${kind}`, {ids: idsOf(o.runs().map(r => r.id)), metrics: c.group.join(",")});
    const pictureText = c => apiText(picture(c.group));

    /* A promise of the picture in pixels, twice as fine as on the page. */
    function pngOf(c) {
        return new Promise((done, failed) => {
            const image = new Image();
            image.onload = () => {
                const canvas = el("canvas", {width: String(2 * image.naturalWidth), height: String(2 * image.naturalHeight)});
                canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
                canvas.toBlob(blob => (blob ? done(blob) : failed(new Error("the picture could not be made"))));
            };
            image.onerror = () => failed(new Error("the picture could not be read"));
            image.src = picture(c.group);
        });
    }

    async function copyPng(c) {
        if (!window.ClipboardItem) throw new Error("this browser copies no pictures; save the PNG instead");
        await navigator.clipboard.write([new ClipboardItem({"image/png": pngOf(c)})]);
        say("Copied");
    }

    /* New charts where the groups changed; else the same ones anew. */
    async function draw() {
        const groups = o.groups();
        if (groups.map(g => g.join()).join("|") !== charts.map(c => c.group.join()).join("|")) {
            charts.splice(0, charts.length, ...groups.map(makeChart));
            fill(list, charts.map(c => c.figure));
        }
        const turn = ++generation;
        if (!o.runs().length) return;
        try { await Promise.all(charts.map(c => drawOne(c, turn))); } catch (problem) { if (!problem.away) throw problem; }
    }

    /* What is new since the last step. The picture is drawn again only if there is something. */
    async function refresh() {
        const c = charts[0], known = c && c.curves.find(k => k.metric === c.group[0]);
        if (!known || full) return draw();
        const last = Math.max(...c.curves.map(k => k.last_step));
        const news = await api(query("/api/runs/curves", {ids: idsOf(o.runs().map(r => r.id)), metric: c.group[0], since_step: last}));
        if (news.curves.some(k => k.x.length || k.nonfinite_count || k.last_step !== (c.curves.find(q => q.id === k.id && q.metric === c.group[0]) || {}).last_step)) await draw();
    }

    let width = 0, timer = 0;
    const resized = new ResizeObserver(() => {
        const now = list.clientWidth;
        if (now === 0 || Math.abs(now - width) < 24) return;
        const first = width === 0;
        width = now;
        clearTimeout(timer);
        if (!first) timer = setTimeout(draw, 150);
    });
    resized.observe(list);
    onLeave(() => { resized.disconnect(); clearTimeout(timer); generation++; });
    drawBar();
    return {element: box, draw, refresh};
}
