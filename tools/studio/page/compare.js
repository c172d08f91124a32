/* compare.js - several runs: options that differ, curves on one axis, figures, a heat map of two
 * options, parallel axes. The address holds all of it: ids, metrics, x, log, smooth, from, to, off,
 * figure, across, down. */
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
    const chips = el("ul", {class: "chips", "aria-label": "Runs compared"}), chartBox = el("section", {"aria-label": "Curves"}), tables = el("div", {class: "compare-tables"}), axes = el("section", {"aria-label": "Parallel axes"}), heat = el("section", {"aria-label": "Heat map"});
    const csv = el("a", {class: "button", href: query("/api/runs/metrics.csv", {ids: idsOf(ids)})}, "All metrics, CSV");
    const json = el("a", {class: "button", href: query("/api/runs/metrics.json", {ids: idsOf(ids)})}, "JSON");
    fill(main, el("div", {class: "title-line"}, title, csv, json, copyButton(() => location.href, "Copy the address"), copyButton(() => `build/runs compare ${shellText(ids)}`, "Copy the command")), trouble, chips, chartBox, tables, heat, axes);
    let d = null, charts = null, names = [], token = null, extremes = [];

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
                             o.steps && o.steps[i] !== null ? el("span", {class: "note"}, ` @ ${fmtNumber(o.steps[i])}`) : null,
                             o.best === i ? el("span", {class: "best-mark", title: "the best of them"}, " best") : null)));
                  }))));
    }

    /* Which is better: -1 less, of losses and times; 1 more, of tokens per second; 0: neither. */
    function directionOf(name) {
        return /loss|perplexity|seconds|_s$|bytes/.test(name) && !/per_s(econd)?$/.test(name) ? -1 : /per_s(econd)?$|accuracy|exact|f1|rouge|reward/.test(name) ? 1 : 0;
    }

    function bestOf(f) {
        const sign = directionOf(f.name);
        if (!sign) return null;
        let best = null;
        f.values.forEach((v, i) => { if (typeof v === "number" && (best === null || sign * v > sign * f.values[best])) best = i; });
        return f.values.filter(v => typeof v === "number").length > 1 && f.values.some(v => v !== f.values[best]) ? best : null;
    }

    /* Rows of a metric: its last value, and its best one; both extremes where neither is better. */
    function metricRows() {
        return extremes.flatMap(m => {
            const sign = directionOf(m.name), of = sign < 0 ? ["min"] : sign > 0 ? ["max"] : ["min", "max"];
            const row = (key, label) => ({name: `${m.name} ${label}`, unit: m.unit, values: m.values.map(v => v[key]), steps: key === "last" ? null : m.values.map(v => v[`${key}_step`])});
            return [row("last", "last"), ...of.map(key => row(key, sign ? "best" : key === "min" ? "lowest" : "highest"))].map(r => ({...r, best: bestOf({name: m.name, values: r.values})}));
        }).filter(r => r.values.some(v => v !== null));
    }

    function drawTables() {
        const figures = d.figures.map(f => ({...f, best: bestOf(f)}));
        const main = /^(loss|eval_loss|best_eval_loss|tokens_per_s|seconds|step)$/;
        const few = figures.filter(f => main.test(f.name)), more = [...figures.filter(f => !main.test(f.name)), ...d.report.filter(f => !main.test(f.name)).map(f => ({...f, best: bestOf(f)}))];
        const at = [...tables.querySelectorAll("details")].map(e => e.open);
        fill(tables,
             section(`Options that differ (${d.options.length})`, d.options.length ? matrix("Option", d.options) : el("p", {class: "note"}, ids.length === 1 ? "One run differs from nothing. Add another one from the list." : "None: these runs differ in nothing but their folder.")),
             section("Metrics", matrix("Metric", metricRows())),
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
        const wide = Math.max(160 + 100 * (dims.length - 1), (axes.clientWidth || 900) - 36), high = 260, left = 76, right = 84, top = 34, bottom = 20;
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
               el("span", {class: "note hint"}, "drag along an axis to keep a range, press it to take it back; a line opens its run")), el("div", {class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Axes"}, svg)]));
    }

    /* The best of a figure for each pair of values of two options. A cell opens its best run. */
    function drawHeat() {
        const levelsOf = q => [...new Set(q.values.map(v => (v === null ? "\u2013" : v)))].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1));
        const some = d.options.filter(q => q.name !== "output").map(q => ({...q, levels: levelsOf(q)})).filter(q => q.levels.length > 1 && q.levels.length <= 40).sort((a, b) => b.levels.length - a.levels.length);
        if (d.runs.length < 3 || some.length < 2) { fill(heat); return; }
        const of = [...d.figures, ...d.report].filter(f => directionOf(f.name) && f.values.some(v => typeof v === "number"));
        const figure = of.find(f => f.name === params.figure) || of.find(f => f.name === "best_eval_loss") || of.find(f => f.name === "loss") || of[0];
        if (!figure) { fill(heat); return; }
        /* Unless the address says which: the two options that fill the most cells. */
        const cells = (a, b) => new Set(d.runs.map((r, i) => (figure.values[i] === null ? null : `${a.values[i]}\n${b.values[i]}`)).filter(t => t !== null)).size;
        const named = name => some.filter(q => q.name === name);
        let pair = null;
        for (const a of params.across && named(params.across).length ? named(params.across) : some)
            for (const b of (params.down && params.down !== a.name && named(params.down).length ? named(params.down) : some).filter(q => q !== a))
                if (!pair || cells(a, b) > pair.filled) pair = {a, b, filled: cells(a, b)};
        const across = pair.a, down = pair.b;
        const sign = directionOf(figure.name), best = new Map();
        d.runs.forEach((r, i) => {
            const value = figure.values[i], key = `${levelOf(across, i)}\n${levelOf(down, i)}`, cell = best.get(key) || {count: 0, run: null, value: null};
            cell.count++;
            if (typeof value === "number" && (cell.value === null || sign * value > sign * cell.value)) Object.assign(cell, {value, run: r});
            else if (!cell.run) cell.run = r;
            best.set(key, cell);
        });
        function levelOf(q, i) { return q.levels.indexOf(q.values[i] === null ? "\u2013" : q.values[i]); }
        const values = [...best.values()].map(c => c.value).filter(v => v !== null), low = Math.min(...values), high = Math.max(...values);
        const shade = v => (high > low ? Math.round(6 * (sign < 0 ? (high - v) / (high - low) : (v - low) / (high - low))) : 3);
        const cellOf = (x, y) => {
            const c = best.get(`${x}\n${y}`);
            if (!c) return el("td", {}, el("span", {class: "point point-missing"}, "no run"));
            const told = `${c.run.name}: ${across.name} ${fmtValue(across.levels[x])}, ${down.name} ${fmtValue(down.levels[y])}, ${figure.name} ${c.value === null ? "none" : fmtNumber(c.value)}${c.count > 1 ? `, the best of ${c.count} runs` : ""}`;
            return el("td", {}, el("a", {class: `point ${c.value === null ? "point-failed" : `shade-${shade(c.value)}`}`, href: link("runs", [c.run.id]), title: told, "aria-label": told},
                c.value === null ? c.run.state : fmtNumber(c.value), c.count > 1 ? el("small", {}, ` of ${c.count}`) : null));
        };
        const pick = (label, key, now, items) => el("label", {}, `${label} `, el("select", {id: `heat-${key}`, onchange: e => { setParams({[key]: e.target.value}); drawHeat(); if (key === "figure") drawAxes(); document.getElementById(`heat-${key}`).focus(); }},
            items.map(q => el("option", {value: q.name, selected: q === now}, q.name))));
        const open = !heat.firstChild || heat.firstChild.open;
        fill(heat, section(`Heat map: ${figure.name} by ${across.name} and ${down.name}`, [
            el("div", {class: "toolbar thin"}, pick("figure", "figure", figure, of), pick("across", "across", across, some), pick("down", "down", down, some.filter(q => q !== across)),
               el("span", {class: "note"}, `the darker the better, ${sign < 0 ? "lowest" : "highest"} is best; a cell opens its best run`)),
            el("div", {class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Cells"}, el("table", {class: "map"},
                el("thead", {}, el("tr", {}, el("th", {scope: "col"}, `${down.name} \\ ${across.name}`), across.levels.map(v => el("th", {scope: "col"}, fmtValue(v))))),
                el("tbody", {}, down.levels.map((v, y) => el("tr", {}, el("th", {scope: "row"}, fmtValue(v)), across.levels.map((_, x) => cellOf(x, y)))))))], open));
    }

    const readExtremes = async () => (await api(query("/api/runs/extremes", {ids: idsOf(ids), metrics: groups().flat().join(",")}))).metrics;
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
            names = d.metrics.filter(n => !["step", "time", "tokens", "epoch", "time_s"].includes(n));
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
        drawHeat();
        drawAxes();
        if (!charts) {
            charts = chartSet({runs: () => d.runs, groups, params, onParams: setParams, axes: () => names,
                               tools: columnChooser(() => names.map(n => ({key: n, title: n})), () => groups().flat(), now => {
                                   setParams({metrics: now.join(",")});
                                   charts.draw();
                                   readExtremes().then(read => { extremes = read; drawTables(); }).catch(() => {});
                               }, "Metrics")});
            fill(chartBox, charts.element);
            await charts.draw();
        } else await charts.refresh();
        extremes = await readExtremes(); /* after the picture: both read the same files */
        drawTables();
        if (token === null) token = (await api("/api/runs/changes?since=0")).token;
    });
}, "Compare");
