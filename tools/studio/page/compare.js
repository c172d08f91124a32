/* compare.js - several runs: options that differ, curves on one axis, figures, parallel axes. The
 * address holds all of it: ids, metrics, x, log, smooth, from, to, off. */
"use strict";

view("compare", (main, params) => {
    const ids = (params.ids || "").split(",").filter(Boolean).map(t => t.replaceAll("%2C", ","));
    if (!ids.length) {
        const list = el("div");
        fill(main, el("h1", {}, "Compare"), empty("No runs chosen", "Tick runs in the list, then press Compare. In a shell:", "build/runs compare runs/first runs/second"), list,
             el("p", {}, el("a", {class: "button main", href: "#/runs"}, "Choose runs")));
        return;
    }
    const title = el("h1", {}, ids.length === 1 ? "One run" : `${ids.length} runs`), trouble = el("p", {class: "problem", role: "alert", hidden: true});
    const chips = el("ul", {class: "chips", "aria-label": "Runs compared"}), chartBox = el("section", {"aria-label": "Curves"}), tables = el("div", {class: "compare-tables"}), axes = el("section", {"aria-label": "Parallel axes"});
    const csv = el("a", {class: "button", href: query("/api/runs/metrics.csv", {ids: idsOf(ids)})}, "All metrics, CSV");
    fill(main, el("div", {class: "title-line"}, title, csv, copyButton(() => location.href, "Copy the address"), copyButton(() => `build/runs compare ${shellText(ids)}`, "Copy the command")), trouble, chips, chartBox, tables, axes);
    let d = null, charts = null, names = [], token = null;

    function without(id) {
        go(link("compare", [], {...params, ids: idsOf(ids.filter(k => k !== id))}));
    }

    function drawChips() {
        fill(chips, d.runs.map(r => el("li", {}, colorDot(r.id), el("a", {href: link("runs", [r.id]), title: r.folder}, r.name), stateBadge(r.state),
            ids.length > 1 ? el("button", {type: "button", class: "plain", "aria-label": `Leave out ${r.name}`, title: "Leave out", onclick: () => without(r.id)}, "\u00d7") : null)));
    }

    function groups() {
        const want = params.metrics ? params.metrics.split(",") : names.filter(n => n === "loss" || n === "eval_loss");
        const out = [];
        for (const n of want) {
            const other = out.find(g => g[0] === n.replace(/^eval_/, ""));
            if (other && n.startsWith("eval_")) other.push(n); else out.push([n]);
        }
        return out.length ? out : [["loss"]];
    }

    /* Rows of names, columns of runs. Marks the best of a row, and how the values lie by a bar. */
    function matrix(caption, rows) {
        const head = el("tr", {}, el("th", {scope: "col"}, caption), d.runs.map(r => el("th", {scope: "col", class: "run"}, colorDot(r.id), el("a", {href: link("runs", [r.id])}, r.name))));
        return el("div", {class: "scroll-x", tabindex: "0", role: "region", "aria-label": caption},
                  el("table", {class: "plain matrix"}, el("thead", {}, head), el("tbody", {}, rows.map(o => {
                      return el("tr", {}, el("th", {scope: "row"}, o.name, o.unit ? el("small", {}, ` ${o.unit}`) : null), o.values.map((v, i) =>
                          el("td", {class: [typeof v === "number" ? "number" : "", o.best === i ? "best" : ""].join(" ").trim() || null}, v === null ? el("span", {class: "note"}, "\u2013") : fmtValue(v),
                             o.best === i ? el("span", {class: "best-mark", title: "the best of them"}, " best") : null)));
                  }))));
    }

    /* A figure's best where the server does not say it: least losses and times, most tokens per second. */
    function bestOf(f) {
        if (f.best !== undefined) return f.best;
        const sign = /loss|perplexity|seconds|_s$|bytes/.test(f.name) && !/per_s(econd)?$/.test(f.name) ? -1 : /per_s(econd)?$|accuracy|exact|f1|rouge/.test(f.name) ? 1 : 0;
        if (!sign) return null;
        let best = null;
        f.values.forEach((v, i) => { if (typeof v === "number" && (best === null || sign * v > sign * f.values[best])) best = i; });
        return f.values.filter(v => typeof v === "number").length > 1 && f.values.some(v => v !== f.values[best]) ? best : null;
    }

    function drawTables() {
        const figures = d.figures.map(f => ({...f, best: bestOf(f)}));
        const main = /^(loss|eval_loss|best_eval_loss|tokens_per_s|seconds|step)$/;
        const few = figures.filter(f => main.test(f.name)), more = figures.filter(f => !main.test(f.name));
        const at = [...tables.querySelectorAll("details")].map(e => e.open);
        fill(tables,
             section(`Options that differ (${d.options.length})`, d.options.length ? matrix("Option", d.options) : el("p", {class: "note"}, ids.length === 1 ? "One run differs from nothing. Add another one from the list." : "None: these runs differ in nothing but their folder.")),
             section("Final figures", matrix("Figure", few)),
             more.length ? section(`Report (${more.length})`, matrix("Figure", more), false) : null);
        [...tables.querySelectorAll("details")].forEach((e, i) => { if (i in at) e.open = at[i]; });
    }

    /* Parallel axes: the options that differ and have numbers or few values, then a figure. Drag
     * along an axis to keep the runs in that range. */
    const ranges = new Map();
    function drawAxes() {
        if (d.runs.length < 3 || !d.options.length) { fill(axes); return; }
        const figure = d.figures.find(f => f.name === (params.figure || "eval_loss") && f.values.some(v => v !== null)) || d.figures.find(f => f.name === "loss") || d.figures[0];
        const dims = [...d.options.filter(o => new Set(o.values.filter(v => v !== null).map(String)).size > 1 && o.name !== "output").slice(0, 6), figure].filter(Boolean);
        if (dims.length < 2) { fill(axes); return; }
        const wide = Math.max(280, (axes.clientWidth || 900) - 36), high = 260, left = 76, right = 84, top = 34, bottom = 20;
        const svg = svgEl("svg", {viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, class: "axes", role: "img", "aria-label": `Parallel axes: ${dims.map(q => q.name).join(", ")}. The table above has the same values.`});
        const scales = dims.map(q => {
            const numbers = q.values.filter(v => v !== null), numeric = numbers.every(v => typeof v === "number");
            const levels = [...new Set(numbers.map(v => (numeric ? v : String(v))))].sort((a, b) => (numeric ? a - b : a < b ? -1 : 1));
            const low = levels[0], span = levels[levels.length - 1];
            const log = numeric && low > 0 && span / low > 20;
            const f = v => (v === null ? null : !numeric ? (levels.length < 2 ? 0.5 : levels.indexOf(String(v)) / (levels.length - 1)) : log ? (Math.log(v) - Math.log(low)) / (Math.log(span) - Math.log(low)) : span > low ? (v - low) / (span - low) : 0.5);
            return {f, levels, numeric};
        });
        const x = i => left + (wide - left - right) * (dims.length > 1 ? i / (dims.length - 1) : 0.5), y = t => top + (high - top - bottom) * (1 - t);
        const kept = k => dims.every((q, i) => { const r = ranges.get(q.name), t = scales[i].f(q.values[k]); return !r || (t !== null && t >= r[0] && t <= r[1]); });
        d.runs.forEach((r, k) => {
            let path = "", pen = "M";
            dims.forEach((q, i) => { const t = scales[i].f(q.values[k]); if (t === null) { pen = "M"; return; } path += `${pen}${x(i).toFixed(1)} ${y(t).toFixed(1)}`; pen = "L"; });
            const line = svgEl("path", {class: `curve c${runColor(r.id)} axis-line${kept(k) ? "" : " aside"}`, d: path}), t = svgEl("title");
            t.textContent = `${r.name}: ${dims.map(q => `${q.name} ${fmtValue(q.values[k])}`).join(", ")}`;
            line.append(t);
            line.addEventListener("click", () => go(link("runs", [r.id])));
            svg.append(line);
        });
        dims.forEach((q, i) => {
            const axis = svgEl("line", {class: "frame", x1: x(i), x2: x(i), y1: top, y2: high - bottom});
            const text = (t, yy, c, anchor = "middle", dx = 0) => { const e = svgEl("text", {class: c, x: x(i) + dx, y: yy, "text-anchor": anchor}); e.textContent = t; svg.append(e); };
            svg.append(axis);
            text(q.name.length > 18 ? `${q.name.slice(0, 17)}\u2026` : q.name, 16, "ink");
            const s = scales[i], ends = s.levels.length <= 8 ? s.levels : [s.levels[0], s.levels[s.levels.length - 1]];
            const side = i === dims.length - 1 ? 1 : -1;
            for (const v of ends) text((typeof v === "number" ? fmtNumber(v) : fmtValue(v)).slice(0, 12), y(s.f(v)) + 4.5, "note", side > 0 ? "start" : "end", 7 * side);
            const r = ranges.get(q.name);
            if (r) svg.append(svgEl("rect", {class: "zone", x: x(i) - 7, width: 14, y: y(r[1]), height: Math.max(2, y(r[0]) - y(r[1]))}));
            const grip = svgEl("rect", {class: "grip", x: x(i) - 12, width: 24, y: top - 6, height: high - top - bottom + 12});
            let from = null;
            const value = e => { const b = svg.getBoundingClientRect(); return Math.max(0, Math.min(1, 1 - ((e.clientY - b.top) * high / b.height - top) / (high - top - bottom))); };
            grip.addEventListener("pointerdown", e => { from = value(e); grip.setPointerCapture(e.pointerId); });
            grip.addEventListener("pointerup", e => { if (from === null) return; const to = value(e); if (Math.abs(to - from) > 0.03) ranges.set(q.name, [Math.min(from, to), Math.max(from, to)]); else ranges.delete(q.name); from = null; drawAxes(); });
            svg.append(grip);
        });
        const chosen = d.runs.filter((r, k) => kept(k));
        fill(axes, section("Parallel axes", [
            el("div", {class: "toolbar thin"}, el("label", {}, "figure ", el("select", {onchange: e => { setParams({figure: e.target.value}); drawAxes(); }}, d.figures.map(f => el("option", {value: f.name, selected: f === figure}, f.name)))),
               ranges.size ? el("button", {type: "button", class: "small", onclick: () => { ranges.clear(); drawAxes(); }}, "All runs") : null,
               ranges.size ? el("a", {class: "button small", href: link("compare", [], {...params, ids: idsOf(chosen.map(r => r.id))})}, `Compare only these ${chosen.length}`) : null,
               el("span", {class: "note hint"}, "drag along an axis to keep a range, press it to take it back; a line opens its run")), svg]));
    }

    let changedIds = true;
    poll(async () => {
        if (token !== null) {
            const c = await api(query("/api/runs/changes", {since: String(token)}));
            token = c.token;
            changedIds = c.all || ids.some(id => c.changed.includes(id) || c.removed.includes(id));
        }
        if (!changedIds) return;
        try {
            d = await api(query("/api/runs/compare", {ids: idsOf(ids)}));
            for (const o of d.options) /* numbers come as text where an option has words, too */
                if (o.values.every(v => v === null || typeof v === "number" || (String(v).trim() !== "" && Number.isFinite(Number(v)))))
                    o.values = o.values.map(v => (v === null ? null : Number(v)));
            trouble.hidden = true;
        } catch (problem) {
            if (problem.away) throw problem;
            fill(trouble, problem.detail || problem.message);
            trouble.hidden = false;
            if (token === null) token = (await api("/api/runs/changes?since=0")).token;
            return;
        }
        runColors(ids);
        setTitle(`Compare ${d.runs.map(r => r.name).slice(0, 3).join(", ")}${d.runs.length > 3 ? ", ..." : ""}`);
        drawChips();
        drawTables();
        drawAxes();
        if (!charts) {
            const metrics = new Set();
            for (const id of ids.slice(0, 8)) for (const m of (await api(`/api/runs/${encodeURIComponent(id)}`)).metrics || []) metrics.add(m.name);
            names = [...metrics].filter(n => !["step", "time", "tokens", "epoch", "time_s"].includes(n));
            charts = chartSet({runs: () => d.runs, groups, params, onParams: setParams,
                               tools: columnChooser(() => names.map(n => ({key: n, title: n})), () => groups().flat(), now => { setParams({metrics: now.join(",")}); charts.draw(); }, "Metrics")});
            fill(chartBox, charts.element);
            await charts.draw();
        } else await charts.refresh();
        if (token === null) token = (await api("/api/runs/changes?since=0")).token;
    });
}, "Compare");
