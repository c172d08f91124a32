/* spaces.js - the view "Spaces": stores of measurements, and the points of a space: which are
 * measured, missing and failed, a map of two dimensions, the picture of `samples plot`, the best,
 * effects, comparisons, and for each point its figures, run, log and command. */
"use strict";
(() => {
    const MARKS = {measured: "●", missing: "○", failed: "✖", invalid: "⊘"};
    const TABS = [["map", "Points"], ["picture", "Picture"], ["best", "Best"], ["effect", "Effect"], ["compare", "Compare"], ["missing", "Missing"]];
    const PLAIN_ROWS = 200; /* longer tables draw only the rows in sight */
    const SHADES = 7;       /* of the map's colours: classes shade-0 ... shade-6 */
    const MAP_MOST = 3000;  /* most points that the map draws */

    /* ---- answers of the server as tables ---- */

    const at = (answer, name) => answer.columns.findIndex((c) => c.name === name);
    const isText = (column) => column.type === "text" || column.type === "none";
    /* A message names options in `backquotes`. */
    function noteText(text) {
        return text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
    }

    function cellText(column, value) {
        if (value === null || value === undefined) return "";
        if (Array.isArray(value)) return value.map((one) => cellText(column, one)).join(", ");
        if (column.type === "time") return fmtTime(value);
        if (typeof value === "boolean") return value ? "yes" : "no";
        return typeof value === "number" ? fmtNumber(value, Math.min(column.digits || 5, 8)) : String(value);
    }

    /* Columns that say something: not hidden, and not empty in each row. */
    function shownColumns(answer, without) {
        return answer.columns.map((column, i) => ({column, i})).filter(({column, i}) =>
            !column.hidden && !(without || []).includes(column.name) && answer.rows.some((row) => row[i] !== null && row[i] !== ""));
    }

    /* The same answer with these columns first. */
    function reordered(answer, first) {
        const order = first.map((name) => at(answer, name)).filter((i) => i >= 0);
        answer.columns.forEach((_, i) => order.includes(i) || order.push(i));
        return {...answer, columns: order.map((i) => answer.columns[i]), rows: answer.rows.map((row) => order.map((i) => row[i]))};
    }

    function notesOf(answer, position) {
        return answer.notes.filter((n) => n.position === position).map((n) => el("p", {class: position === "warning" ? "problem" : "note"}, noteText(n.text)));
    }

    /* An answer with its notes, its command and downloads. open(row) is called for a row that is clicked. */
    function answerTable(answer, label, {open, without, address} = {}) {
        const parts = [...notesOf(answer, "warning"), ...notesOf(answer, "above")];
        if (!answer.rows.length) {
            parts.push(el("p", {class: "note"}, noteText(answer.none || "no rows")));
        } else {
            const columns = shownColumns(answer, without);
            const opens = (row) => el("button", {type: "button", class: "small", onclick: () => open(row)}, "Open");
            if (answer.rows.length > PLAIN_ROWS) {
                const table = Table({label, rows: answer.rows, key: (row) => String(answer.rows.indexOf(row)), open,
                    columns: columns.map(({column, i}) => ({key: column.name, title: column.name, unit: column.unit, number: !isText(column), sort: false, cell: (row) => cellText(column, row[i])}))});
                parts.push(table.element);
                requestAnimationFrame(() => table.draw());
            } else {
                parts.push(el("div", {class: "scroller answer", tabindex: "0", role: "region", "aria-label": label}, el("table", {class: "grid"},
                    el("thead", {}, el("tr", {}, open && el("th", {scope: "col"}, "Point"), columns.map(({column}) => el("th", {scope: "col", class: isText(column) ? null : "number"}, column.name, column.unit && el("small", {}, " " + column.unit))))),
                    el("tbody", {}, answer.rows.map((row) => el("tr", {}, open && el("td", {}, opens(row)), columns.map(({column, i}) => el("td", {class: isText(column) ? "text" : "number"}, cellText(column, row[i])))))))));
            }
        }
        parts.push(...notesOf(answer, "below"));
        if (answer.command) parts.push(commandBox(answer.command, "The same in a shell"));
        if (address && answer.rows.length) parts.push(el("p", {class: "note"}, "Download: ", ["csv", "json", "parquet"].map((format) => [el("a", {href: query(address[0], {...address[1], format}), download: ""}, format), " "])));
        return parts;
    }

    /* A field of a form over the answers. The value goes into the address, and the answer is asked for again. */
    function control(params, name, label, changed, {choices, hint, list} = {}) {
        const id = "ask-" + name;
        let input;
        if (choices) {
            input = el("select", {id, onchange: () => changed(name, input.value)}, choices.map(([value, text]) => el("option", {value}, text)));
            input.value = params[name] || choices[0][0];
        } else {
            input = el("input", {id, type: "text", spellcheck: "false", autocomplete: "off", placeholder: hint || "", list: list || null, value: params[name] || "", onchange: () => changed(name, input.value.trim())});
        }
        return el("div", {class: "control"}, el("label", {for: id}, label), input);
    }

    /* Draws a part of the page again, and keeps its focus and how far its parts are scrolled. */
    function redraw(body, ...parts) {
        const focus = body.contains(document.activeElement) ? document.activeElement : null, scrolled = [...body.querySelectorAll(".scroller")].map((e) => [e.scrollLeft, e.scrollTop]);
        fill(body, parts);
        body.querySelectorAll(".scroller").forEach((e, i) => scrolled[i] && e.scrollTo(...scrolled[i]));
        const key = focus && ["id", "data-point", "href"].find((name) => focus.getAttribute(name));
        const again = key && [...body.querySelectorAll(`[${key}]`)].find((e) => e.getAttribute(key) === focus.getAttribute(key));
        if (again) again.focus({preventScroll: true});
    }

    /* ---- all stores and spaces ---- */

    function spaceLink(store, about, more) {
        return link("spaces", ["space"], {store, about, ...more});
    }

    function renderList(main, isHere) {
        add(main, [el("h1", {}, "Spaces")]);
        const body = el("div", {}, el("p", {class: "note"}, "Looking for stores…"));
        main.append(body);
        let seen = null;
        poll(async () => {
            const texts = await Promise.all([apiText("/api/stores"), apiText("/api/spaces")]);
            if (!isHere() || texts.join() === seen) return;
            seen = texts.join();
            drawList(body, ...texts.map((text) => JSON.parse(text)));
        });
    }

    function drawList(body, stores, files) {
        const parts = [];
        /* A store keeps a copy of each space; the file that it was made from is better known. */
        const fileOf = (space) => files.spaces.find((one) => !one.problem && one.id === space.id) || space;
        if (!stores.stores.length)
            parts.push(empty("No measurements here yet", "A sweep measures the points of a space and keeps them in a store. In the studio's folder:", `sweep ${files.spaces.length ? files.spaces[0].path : "SPACE.yaml"} --store samples`));
        for (const store of stores.stores)
            parts.push(el("section", {class: "card", "aria-label": "store " + store.path}, el("h2", {}, store.path),
                store.problem && el("p", {class: "problem"}, store.problem),
                el("p", {class: "note"}, [fmtBytes(store.bytes), `operations: ${store.operations.length}`, `changed ${fmtAgo(store.modified)}`, store.experiments.join(", ")].filter(Boolean).join(" · ")),
                el("ul", {class: "spaces"}, store.spaces.map((space) => spaceItem(fileOf(space), store.path)))));
        const measured = new Set(stores.stores.flatMap((store) => store.spaces.map((space) => space.id)));
        const others = files.spaces.filter((space) => !measured.has(space.id) || space.problem);
        if (others.length)
            parts.push(el("section", {class: "card", "aria-label": "spaces not measured"}, el("h2", {}, "Not measured yet"), el("ul", {class: "spaces"}, others.map((space) => spaceItem(space, "samples")))));
        const out = (stores.left_out || 0) + (files.left_out || 0);
        if (out) parts.push(el("p", {class: "note"}, `${out} folders or files were not looked into: they lie too deep, are too large, or there are too many.`));
        redraw(body, parts);
    }

    function spaceItem(space, store) {
        if (space.problem) return el("li", {}, el("b", {}, space.path), " ", el("span", {class: "problem"}, space.problem));
        const file = space.path.split("/").pop();
        return el("li", {}, el("a", {href: spaceLink(store, space.path)}, space.name || file), el("span", {class: "note"}, " ", space.name ? file + " · " : "", space.id, " · ",
            space.size === null ? "not countable" : `${space.size} points`, " · ", space.dimensions.join(" × ")), space.description && el("p", {class: "note"}, space.description));
    }

    /* ---- one space ---- */

    function renderSpace(main, params, isHere) {
        const tab = () => (TABS.some(([name]) => name === params.tab) ? params.tab : "map");
        const heading = el("h1", {}, String(params.about || "space").split("/").pop());
        const counts = el("p", {class: "counts", role: "status"}), tabs = el("nav", {class: "tabs", "aria-label": "about the space"});
        const filters = el("div", {class: "controls"}), list = el("datalist", {id: "space-columns"});
        const body = el("div", {class: "space-body"}), panel = el("section", {class: "panel", "aria-label": "the point", tabindex: "-1", hidden: true});
        add(main, [el("p", {class: "crumbs"}, el("a", {href: "#/spaces"}, "Spaces"), " / ", params.store || ""), heading, counts, filters, list, tabs, el("div", {class: "space-columns"}, body, panel)]);
        const subject = () => ({store: params.store, about: params.about});
        const filtered = () => ({...subject(), where: params.where, operation: params.operation});
        let points = null, turn = 0, seen = null;

        const changed = (name, value) => { setParams({[name]: value}); if (name === "where" || name === "operation") load(); else draw(); };
        const openPoint = (identifier) => { setParams({point: identifier}); drawPanel(true); };
        /* The identifier of a row of any answer about this space: its own, else that of the point with the same values. */
        const identifierOf = (answer, row) => {
            const own = at(answer, "identifier");
            if (own >= 0) return row[own];
            const shared = answer.columns.map((c, i) => [i, c.dimension ? at(points, c.name) : -1]).filter(([, there]) => there >= 0);
            const found = points.rows.filter((p) => shared.every(([here, there]) => p[there] === row[here]));
            return found.length ? found[0][at(points, "identifier")] : null;
        };

        function drawTabs() {
            fill(tabs, TABS.map(([name, title]) => el("a", {href: link("spaces", ["space"], {...params, tab: name}), "aria-current": tab() === name ? "page" : null,
                onclick: (e) => { if (e.ctrlKey || e.metaKey) return; e.preventDefault(); setParams({tab: name}); drawTabs(); draw(); }}, title)));
        }

        /* Asks for the points, and draws them if they have changed. A sweep may be measuring them just now. */
        async function load() {
            const asked = query("/api/answers/points", filtered());
            let text;
            try {
                text = await apiText(asked);
            } catch (error) {
                if (error.away || error.detail === seen) return;
                seen = error.detail;
                if (!isHere()) return;
                fill(body, el("p", {class: "problem", role: "alert"}, error.detail || error.message));
                if (error.status === 404) {
                    const command = `sweep ${params.about} --store ${params.store || "samples"}`;
                    add(body, [empty("Nothing of it is measured", "This measures the space:", command), el("p", {}, el("button", {type: "button", class: "main", onclick: () => measure({}, command)}, "Measure it"))]);
                }
                return;
            }
            if (!isHere() || asked !== query("/api/answers/points", filtered()) || asked + text === seen || typing()) return;
            seen = asked + text;
            points = JSON.parse(text);
            const state = at(points, "state"), number = {};
            for (const row of points.rows) number[row[state]] = (number[row[state]] || 0) + 1;
            fill(counts, Object.keys({measured: 0, missing: 0, failed: 0, ...number}).map((name) => el("span", {class: "count point-" + name}, el("span", {"aria-hidden": "true"}, MARKS[name] || "·"), ` ${number[name] || 0} ${name}`)),
                el("span", {class: "note"}, ` of ${points.rows.length} points`));
            fill(list, points.columns.filter((c) => c.dimension || c.measured).map((c) => el("option", {value: c.name})));
            drawTabs();
            await draw();
            drawPanel(false);
        }

        const figures = () => shownColumns(points).filter(({column}) => column.measured && column.type !== "text").map(({column}) => column.name);
        const dimensions = (answer) => answer.columns.filter((c) => c.dimension);
        const usual = () => {
            const names = figures();
            return names.find((n) => n === params.target) || names.find((n) => /tokens_per_second$/.test(n)) || names.find((n) => /loss|accuracy|exact/.test(n)) || names[0] || "";
        };
        const targetControl = (label) => control({target: usual()}, "target", label, changed, {choices: figures().map((n) => [n, n])});

        async function draw() {
            const mine = ++turn, shown = tab();
            if (!points) return;
            try {
                const parts = await {map: drawMap, picture: drawPicture, best: drawBest, effect: drawEffect, compare: drawCompare, missing: drawMissing}[shown]();
                if (isHere() && mine === turn) {
                    redraw(body, parts);
                }
            } catch (error) {
                if (isHere() && mine === turn) {
                    for (const one of body.querySelectorAll(":scope > :not(.controls)")) one.remove();
                    add(body, [el("p", {class: "problem", role: "alert"}, noteText(error.detail || error.message))]);
                }
            }
        }

        /* Somebody writes into a field of the body, which a new drawing would empty. */
        const typing = () => body.contains(document.activeElement) && document.activeElement.matches("input") && document.activeElement.value !== document.activeElement.defaultValue;

        /* The map: a row and a column for each value of two dimensions; a mark for each point, coloured by a figure. */
        function drawMap() {
            const dims = dimensions(points), wide = dims.filter((d) => (d.levels || []).length > 1);
            const choice = (name, otherwise) => dims.find((d) => d.name === params[name]) || otherwise || dims[0];
            const x = choice("x", wide[wide.length - 1]), y = choice("y", wide.length > 1 ? wide[wide.length - 2] : dims.find((d) => d !== x));
            if (!x) return [el("p", {class: "note"}, "The space has no dimension."), answerTable(points, "points")];
            const target = usual(), column = points.columns[at(points, target)], t = at(points, target), s = at(points, "state"), id = at(points, "identifier");
            const values = t < 0 ? [] : points.rows.map((row) => middle(row[t])).filter((v) => v !== null);
            const low = Math.min(...values), high = Math.max(...values);
            const shade = (v) => (high > low ? Math.min(SHADES - 1, Math.floor((v - low) / (high - low) * SHADES)) : SHADES - 1);
            const cells = new Map(), xi = at(points, x.name), yi = y ? at(points, y.name) : -1;
            for (const row of points.rows.slice(0, MAP_MOST)) {
                const key = JSON.stringify([row[xi], yi < 0 ? null : row[yi]]);
                if (!cells.has(key)) cells.set(key, []);
                cells.get(key).push(row);
            }
            const others = dims.filter((d) => d !== x && d !== y && (d.levels || []).length > 1);
            const told = (row) => dims.map((d) => `${d.name} ${cellText(d, row[at(points, d.name)])}`).join(", ");
            const mark = (row) => {
                const state = row[s], v = t < 0 ? null : middle(row[t]), has = state === "measured" && v !== null;
                return el("button", {type: "button", class: `point point-${state}` + (has ? ` shade-${shade(v)}` : ""), "data-point": row[id],
                    title: told(row) + (has ? `: ${cellText(column, v)} ${column.unit}` : ": " + state) + (row[at(points, "reason")] ? "\n" + row[at(points, "reason")] : ""),
                    "aria-label": `${told(row)}: ` + (has ? `${cellText(column, v)} ${column.unit}` : state), onclick: () => openPoint(row[id])},
                    el("span", {"aria-hidden": "true"}, MARKS[state] || "·"), has ? " " + fmtNumber(v, 3) : "");
            };
            const xs = x.levels || [], ys = y ? y.levels || [] : [null];
            const table = el("div", {class: "scroller answer", tabindex: "0", role: "region", "aria-label": "map of the points"}, el("p", {class: "note"}, `across: ${x.name}` + (y ? `, down: ${y.name}` : "") + (others.length ? `; in a field: ${others.map((d) => d.name).join(", ")}` : "")), el("table", {class: "map"},
                el("thead", {}, el("tr", {}, el("td", {}), xs.map((v) => el("th", {scope: "col"}, cellText(x, v))))),
                el("tbody", {}, ys.map((v) => el("tr", {}, el("th", {scope: "row"}, y ? cellText(y, v) : ""), xs.map((u) => el("td", {}, (cells.get(JSON.stringify([u, v])) || []).map(mark))))))));
            const names = dims.map((d) => [d.name, d.name]);
            const legend = el("p", {class: "legend"}, values.length > 0 && [el("span", {}, fmtNumber(low, 4), " "), Array.from({length: SHADES}, (_, i) => el("span", {class: `swatch shade-${i}`})), el("span", {}, " ", fmtNumber(high, 4), " ", column.unit, "   ")],
                ["measured", "missing", "failed"].map((name) => el("span", {class: "count point-" + name}, `${MARKS[name]} ${name} `)));
            const place = new Map(), open = (row) => openPoint(place.get(row));
            const ordered = reordered(points, ["state", ...dims.map((d) => d.name), target]);
            ordered.rows.forEach((row, i) => place.set(row, points.rows[i][id]));
            return [el("div", {class: "controls"}, targetControl("Colour by"), control({x: x.name}, "x", "Across", changed, {choices: names}), y && control({y: y.name}, "y", "Down", changed, {choices: names})),
                legend, table, points.rows.length > MAP_MOST && el("p", {class: "note"}, `The map shows the first ${MAP_MOST} of ${points.rows.length} points; the filter "where" chooses others.`),
                el("h2", {}, "All points"), answerTable(ordered, "points", {open, without: ["identifier", "experiment"], address: ["/api/answers/points", filtered()]})];
        }
        const middle = (v) => (Array.isArray(v) ? v.reduce((sum, one) => sum + one, 0) / v.length : typeof v === "number" ? v : null);

        const aims = () => ({maximize: params.maximize, minimize: params.minimize});

        /* The picture that `samples plot` draws, with the point under the pointer told, and opened by a click. */
        async function drawPicture() {
            const dims = dimensions(points).filter((d) => (d.levels || []).length > 1).map((d) => d.name);
            const own = {...aims(), x: params.across, property: usual(), series: params.series, log: params.log};
            const wanted = [own.maximize, own.minimize].filter(Boolean).join(",").split(",").filter(Boolean);
            if (wanted.length) delete own.property;
            if (wanted.length === 2 && !own.x) own.x = wanted[1]; /* two aims, an axis for each: the Pareto front */
            const names = [...dims, ...figures()].map((n) => [n, n]);
            const controls = el("div", {class: "controls"}, targetControl("Figure"), control({across: own.x}, "across", "Across", changed, {choices: [["", "as fits: curves, heat map, lines"], ...names]}),
                control(params, "series", "A curve or row for each", changed, {choices: [["", "(none)"], ...dims.map((n) => [n, n])]}),
                control(params, "log", "Scale", changed, {choices: [["", "linear"], ["true", "logarithmic"]]}),
                control(params, "maximize", "High is better", changed, {hint: "two aims: the Pareto front", list: "space-columns"}), control(params, "minimize", "Low is better", changed, {list: "space-columns"}));
            let svg, table;
            try {
                [svg, table] = await Promise.all([apiText(query("/api/answers/plot.svg", {...filtered(), ...own})), api(query("/api/answers/plot", {...filtered(), ...own, log: null}))]);
            } catch (error) {
                return [controls, el("p", {class: "problem", role: "alert"}, noteText(error.detail || error.message))];
            }
            /* Its own style would break the page's policy even before it is shown; plot.css has the same. */
            const drawn = new DOMParser().parseFromString(svg.replace(/<style>[^<]*<\/style>/, ""), "image/svg+xml").documentElement;
            const picture = document.importNode(drawn, true), told = el("p", {class: "told", role: "status"}, "Point at a mark to see it; a click opens it.");
            picture.setAttribute("role", "group"); /* its marks are buttons */
            picture.setAttribute("aria-label", "picture of the points");
            const about = (row) => table.columns.map((c, i) => (row[i] === null || ["unit", "experiment", "property"].includes(c.name) ? "" : `${c.name} ${cellText(c, row[i])}`)).filter(Boolean).join(", ");
            for (const one of picture.querySelectorAll("[data-row]")) {
                const row = table.rows[Number(one.getAttribute("data-row"))];
                if (!row) continue;
                const open = () => { const identifier = identifierOf(table, row); if (identifier) openPoint(identifier); };
                one.setAttribute("tabindex", "0");
                one.setAttribute("role", "button");
                one.setAttribute("aria-label", about(row));
                one.classList.add("mark-of-point");
                one.addEventListener("pointerenter", () => fill(told, about(row)));
                one.addEventListener("focus", () => fill(told, about(row)));
                one.addEventListener("click", open);
                one.addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); open(); } });
            }
            return [controls, el("div", {class: "picture", tabindex: "0", role: "region", "aria-label": "picture"}, picture), told, answerTable(table, "points of the picture", {without: ["unit", "experiment"], open: (row) => { const identifier = identifierOf(table, row); if (identifier) openPoint(identifier); }, address: ["/api/answers/plot", {...filtered(), ...own, log: null}]})];
        }

        async function answered(question, own, controls, options) {
            const given = {...filtered(), ...own};
            try {
                const answer = await api(query("/api/answers/" + question, given));
                return [controls, answerTable(answer, question, {...options, open: options && options.open ? (row) => openPoint(identifierOf(answer, row)) : null, address: ["/api/answers/" + question, given]})];
            } catch (error) {
                return [controls, el("p", {class: "problem", role: "alert"}, noteText(error.detail || error.message))];
            }
        }

        function aimControls() {
            return [control(params, "maximize", "High is better", changed, {hint: usual(), list: "space-columns"}), control(params, "minimize", "Low is better", changed, {list: "space-columns"})];
        }

        function drawBest() {
            const own = {...aims(), per: params.per, count: params.count};
            if (!own.maximize && !own.minimize) own[/loss|time|runtime|memory/.test(usual()) ? "minimize" : "maximize"] = usual();
            return answered("best", own, el("div", {class: "controls"}, aimControls(), control(params, "per", "The best for each", changed, {hint: "dimension", list: "space-columns"}), control(params, "count", "How many", changed, {hint: "5"})), {open: true});
        }

        function drawEffect() {
            return answered("effect", {property: usual(), x: params.of}, el("div", {class: "controls"}, targetControl("Effect on"), control(params, "of", "Of", changed, {choices: [["", "all dimensions"], ...dimensions(points).map((d) => [d.name, d.name])]})));
        }

        function drawCompare() {
            const controls = el("div", {class: "controls"}, control(params, "left", "One side", changed, {hint: "batch_size=1, build=..., an operation"}), control(params, "right", "The other", changed, {hint: "batch_size=4"}),
                control(params, "regression", "Worse by more than", changed, {hint: "5%"}), targetControl("Figure"));
            if (!params.left || !params.right) return [controls, el("p", {class: "note"}, "Two sides are compared point by point, all else equal, with an interval for the ratio: give both. A side is ", el("code", {}, "NAME=VALUE"), ", ", el("code", {}, "build=ID"), ", ", el("code", {}, "host=TEXT"), ", an operation or a store.")];
            return compare(controls);
        }

        async function compare(controls) {
            const given = {store: params.store, where: params.where, left: params.left, right: params.right, regression: params.regression, property: usual()};
            try {
                return [controls, answerTable(await api(query("/api/answers/compare", given)), "compare", {address: ["/api/answers/compare", given]})];
            } catch (error) {
                return [controls, el("p", {class: "problem", role: "alert"}, noteText(error.detail || error.message))];
            }
        }

        async function drawMissing() {
            const plan = await api(query("/api/spaces/measure", subject()));
            const about = await answered("missing", {brief: true}, null);
            if (!plan.missing) return about;
            return [el("p", {}, `${plan.missing} points are missing or failed. This measures them:`), commandBox(plan.text, "measure what is missing"),
                el("p", {}, el("button", {type: "button", class: "main", onclick: () => measure({}, plan.text)}, "Measure the missing ones")), about];
        }

        async function measure(more, text) {
            if (!await askToStart(text)) return;
            try {
                const job = await api("/api/spaces/measure", {method: "POST", body: {...subject(), ...more}});
                say(`Job ${job.id} measures them`);
                go(link("new", ["jobs"], {job: job.id}));
            } catch (error) {
                say(error.detail || error.message, "bad");
            }
        }

        /* ---- the panel of a point ---- */

        async function drawPanel(focus) {
            const entity = params.point;
            for (const one of main.querySelectorAll("[data-point]")) one.classList.toggle("chosen", one.dataset.point === entity);
            panel.hidden = !entity;
            if (!entity) return;
            const close = el("button", {type: "button", class: "small", "aria-label": "Close the point", onclick: () => { setParams({point: null}); drawPanel(false); }}, "×");
            let point;
            try {
                point = await api(query("/api/spaces/point", {...subject(), entity}));
            } catch (error) {
                if (isHere() && params.point === entity) fill(panel, close, el("p", {class: "problem", role: "alert"}, error.detail || error.message));
                return;
            }
            if (!isHere() || params.point !== entity) return;
            const row = point.points.rows[0] || [], facts = el("dl", {class: "facts"}), numbers = el("dl", {class: "facts"});
            point.points.columns.forEach((c, i) => {
                if (row[i] === null || row[i] === undefined || ["identifier", "experiment", "state", "tries", "reason"].includes(c.name)) return;
                add(c.measured ? numbers : facts, [el("dt", {}, c.name), el("dd", {}, cellText(c, row[i]), c.unit && el("span", {class: "note"}, " " + c.unit))]);
            });
            const state = row[at(point.points, "state")], reason = row[at(point.points, "reason")];
            const parts = [el("div", {class: "row"}, el("h2", {}, el("span", {class: "point-" + state}, `${MARKS[state] || "·"} ${state || "unknown"}`)), close), reason && el("p", {class: "problem"}, reason), facts];
            const runs = point.runs.filter(Boolean), withRun = runs.filter((r) => r.run);
            if (withRun.length) parts.push(el("p", {}, withRun.map((r, i) => [el("a", {class: "button", href: link("runs", [r.run])}, withRun.length > 1 ? `Open run ${i + 1}` : "Open the run"), " "])));
            if (numbers.children.length) parts.push(el("h3", {}, "Figures"), numbers);
            for (const r of runs)
                if (r.log_end) parts.push(el("details", {open: state === "failed"}, el("summary", {}, "The end of its log, ", r.log), el("pre", {class: "log", tabindex: "0"}, r.log_end)));
            if (point.commands.length) parts.push(el("h3", {}, "Its command"), point.commands.map((c) => commandBox(c, "the point's command")));
            else if (point.no_commands) parts.push(el("p", {class: "note"}, noteText(point.no_commands)));
            if (point.measure) parts.push(el("h3", {}, state === "measured" ? "Measure it" : "Measure this one"), commandBox(point.measure.text, "measure this point"));
            if (point.results.rows.length) parts.push(el("details", {}, el("summary", {}, `${point.results.rows.length} results, each with who measured it`), answerTable(point.results, "results of the point")));
            fill(panel, parts);
            if (focus) { panel.focus({preventScroll: true}); panel.scrollIntoView({block: "nearest"}); }
        }

        add(filters, [control(params, "where", "Where", changed, {hint: "batch_size <= 2 and model_max_length == 64"}), control(params, "operation", "Operation", changed, {hint: "all"})]);
        fill(body, el("p", {class: "note"}, "Reading the store…"));
        poll(load);
    }

    function askToStart(text) {
        return ask("Start the sweep?", el("div", {}, el("p", {}, "It runs as a job, and can be stopped there. In a shell it is:"), commandBox(text)), "Start");
    }

    view("spaces", (main, params, parts) => {
        let here = true;
        if (parts[0] === "space") renderSpace(main, params, () => here);
        else renderList(main, () => here);
        return () => (here = false);
    }, "Spaces");
})();
