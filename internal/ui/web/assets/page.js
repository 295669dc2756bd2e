// The script of the page: it brings in what a stream sends, sorts and filters the list, and draws
// charts. Without it the page is the same, of the time when it was loaded.
"use strict";
(() => {
	const byId = (id) => document.getElementById(id);
	const main = byId("main");
	const live = document.body.dataset.live === "yes";
	const table = byId("groups");
	const isGroup = main && main.dataset.stream !== undefined;

	// put writes a text where it differs, so that what has not changed stays selected and unspoken.
	const put = (node, text) => { if (node && node.textContent !== text) node.textContent = text; };
	const setBar = (svg, percent) => { if (svg) svg.querySelector(".fill").setAttribute("width", percent + "%"); };

	// --- the list ---

	const rows = new Map(); // by id: the row's element and its data
	const columns = ["read", "write", "limit", "wait", "dirty"];
	let sort = "limit", reverse = false, dirtyOrder = false, lastOrder = 0;

	const fill = (tr, r) => {
		for (const cell of tr.querySelectorAll("[data-f]")) put(cell, String(r[cell.dataset.f]));
		const link = tr.querySelector("th a");
		if (link.getAttribute("href") !== r.link) link.setAttribute("href", r.link);
		setBar(tr.querySelector(".meter"), r.bar);
		tr.className = [r.look, r.moves ? "" : "still", r.key ? "" : "nolimit"].filter(Boolean).join(" ");
	};

	const compare = (a, b) => {
		let c = 0;
		if (sort !== "target") {
			const at = columns.indexOf(sort);
			c = b.data.figures[at] - a.data.figures[at] || b.data.figures[0] + b.data.figures[1] - a.data.figures[0] - a.data.figures[1];
		}
		c = c || (a.data.target < b.data.target ? -1 : a.data.target > b.data.target ? 1 : 0);
		return reverse ? -c : c;
	};

	const isShown = (r) => {
		const text = byId("filter").value.toLowerCase();
		return (!text || r.target.toLowerCase().includes(text) || r.path.toLowerCase().includes(text)) && (!byId("active").checked || r.moves);
	};

	// arrange filters and sorts. Rows change their places at most every three seconds, and not below
	// a pointer or a focus, so that nobody opens another one than they meant.
	const arrange = (now) => {
		if ([...rows.values()].some((one) => !one.data)) return; // the first event is under way
		let shown = 0;
		for (const one of rows.values()) {
			const is = isShown(one.data);
			if (one.tr.hidden === is) one.tr.hidden = !is;
			if (is) shown++;
		}
		put(byId("count"), shown + (shown === 1 ? " group" : " groups"));
		byId("empty").hidden = shown > 0;
		const body = byId("rows");
		const busy = body.matches(":hover") || body.contains(document.activeElement);
		if (!now && (busy || Date.now() - lastOrder < 3000)) return;
		lastOrder = Date.now();
		const order = [...rows.values()].sort(compare);
		let at = body.firstElementChild;
		for (const one of order) {
			if (one.tr !== at) body.insertBefore(one.tr, at); else at = at.nextElementSibling;
		}
	};

	const copyOf = (id) => byId(id).content.firstElementChild.cloneNode(true);

	const takeDisks = (disks) => {
		const list = byId("disks");
		while (list.children.length > disks.length) list.lastElementChild.remove();
		while (list.children.length < disks.length) list.append(copyOf("disk"));
		disks.forEach((d, i) => {
			for (const cell of list.children[i].querySelectorAll("[data-f]")) put(cell, d[cell.dataset.f]);
			setBar(list.children[i].querySelector(".meter"), d.bar);
		});
	};

	const takeList = (e) => {
		if (e.whole) {
			const there = new Set(e.rows.map((r) => r.id));
			for (const id of [...rows.keys()]) if (!there.has(id)) e.gone.push(id);
		}
		for (const id of e.gone) {
			const one = rows.get(id);
			if (one) one.tr.remove();
			rows.delete(id);
		}
		let isNew = false;
		for (const r of e.rows) {
			let one = rows.get(r.id);
			if (!one) {
				one = { tr: copyOf("row") };
				one.tr.dataset.id = r.id;
				rows.set(r.id, one);
				byId("rows").append(one.tr);
				isNew = true;
			}
			one.data = r;
			fill(one.tr, r);
		}
		table.classList.toggle("noplans", !e.plans);
		put(byId("host"), e.host);
		put(byId("leftout"), String(e.leftOut));
		byId("left").hidden = !e.leftOut;
		takeDisks(e.disks);
		arrange(isNew && e.whole);
	};

	const readHeads = () => {
		for (const th of table.querySelectorAll("th[data-sort]")) {
			const by = th.getAttribute("aria-sort");
			if (by) {
				sort = th.dataset.sort;
				reverse = (by === "ascending") !== (sort === "target");
			}
			th.querySelector("a").addEventListener("click", (e) => {
				if (!live) return;
				e.preventDefault();
				reverse = sort === th.dataset.sort && !reverse;
				sort = th.dataset.sort;
				for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
				th.setAttribute("aria-sort", (sort === "target") !== reverse ? "ascending" : "descending");
				byId("sort").value = sort;
				remember();
				arrange(true);
			});
		}
	};

	// remember keeps what is chosen in the address.
	const remember = () => {
		const q = new URLSearchParams();
		if (sort !== "limit") q.set("sort", sort);
		if (reverse) q.set("reverse", "1");
		if (byId("filter").value) q.set("filter", byId("filter").value);
		if (byId("active").checked) q.set("active", "1");
		history.replaceState(null, "", "/" + (q.size ? "?" + q : ""));
	};

	if (table && live) {
		// What the page was loaded with is replaced by the first event.
		for (const tr of byId("rows").children) rows.set(tr.dataset.id, { tr, data: null });
		readHeads();
		byId("filter").addEventListener("input", () => { remember(); arrange(true); });
		byId("active").addEventListener("change", () => { remember(); arrange(true); });
		byId("tools").addEventListener("submit", (e) => {
			const at = byId("at");
			if (!at || !at.value.trim()) e.preventDefault();
		});
		if (!byId("at")) byId("show").hidden = true;
	}

	// --- one group ---

	const takeGroup = (e) => {
		if (e.shape !== main.dataset.shape) {
			reload(e.shape);
			return;
		}
		for (const node of main.querySelectorAll("[data-c]")) put(node, e.cells[node.dataset.c]);
		for (const node of main.querySelectorAll("[data-bar]")) setBar(node, e.cells[node.dataset.bar]);
		if (e.point) addPoint(e.point);
	};

	// reload brings in what a stream does not: other devices, limits, names.
	let reloading = false;
	const reload = async (shape) => {
		if (reloading) return;
		reloading = true;
		try {
			const answer = await fetch(location.href.split("#")[0].replace(/&(why|trace)=[^&]*/g, ""));
			if (answer.ok) {
				const page = new DOMParser().parseFromString(await answer.text(), "text/html");
				byId("body").replaceWith(page.getElementById("body"));
			}
			main.dataset.shape = shape;
		} finally {
			reloading = false;
		}
	};

	// A question is answered in its own part of the page.
	for (const id of ["trace", "why"]) {
		const section = byId(id);
		if (section) section.addEventListener("click", async (e) => {
			const link = e.target.closest("a.button");
			if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
			e.preventDefault();
			if (section.getAttribute("aria-busy") === "true") return; // it is asked
			section.setAttribute("aria-busy", "true");
			put(link, link.dataset.busy);
			try {
				const answer = await fetch(link.getAttribute("href").split("#")[0]);
				const page = new DOMParser().parseFromString(await answer.text(), "text/html");
				const told = page.getElementById(id);
				if (!told) throw new Error(answer.statusText);
				section.replaceChildren(...told.childNodes);
				const next = section.querySelector("a.button");
				if (next) next.focus({ preventScroll: true });
			} catch {
				location.href = link.href;
			} finally {
				section.removeAttribute("aria-busy");
			}
		});
	}

	// --- charts ---

	const past = byId("past");
	const keys = [["wbps", "Write", "write"], ["rbps", "Read", "read"], ["wiops", "Write operations", "write"], ["riops", "Read operations", "read"]];
	let data = null; // as /history has it
	let charts = [];
	const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

	const digits = (v) => v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2);
	const spell = (v, isOps) => {
		if (v === null || v === undefined) return "–";
		if (isOps) return Math.round(v) + " ops/s";
		for (const [size, name] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) if (v >= size * .9995) return digits(v / size) + " " + name + "/s";
		return Math.round(v) + " B/s";
	};
	const spellShort = (v, isOps) => {
		if (isOps) return v >= 1e3 ? +(v / 1e3).toPrecision(3) + "k" : String(+v.toPrecision(3));
		for (const [size, name] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) if (v >= size) return +(v / size).toPrecision(3) + " " + name;
		return v + " B";
	};

	const two = (n) => String(n).padStart(2, "0");
	const clock = (unix, span) => {
		const d = new Date(unix * 1000);
		const time = two(d.getHours()) + ":" + two(d.getMinutes());
		if (span > 2 * 86400) return two(d.getMonth() + 1) + "-" + two(d.getDate()) + (span < 10 * 86400 ? " " + time : "");
		return span <= 900 ? time + ":" + two(d.getSeconds()) : time;
	};

	// plotsOf lists what is to be drawn: a rate that moved or has a limit.
	const plotsOf = (d) => {
		const list = [];
		for (const dev of d.devices) for (const [key, title, kind] of keys) {
			const limits = dev.limits[key], isOps = key.endsWith("iops");
			if (isOps ? !limits : !limits && !dev.rates[key].some((v) => v > 0)) continue;
			const series = [{ name: title, kind, values: dev.rates[key], fill: true }];
			if (limits) series.push({ name: "Limit", kind: "limit", values: limits });
			list.push({ id: dev.node + " " + key, title: title + (d.devices.length > 1 ? " on " + dev.node : ""), isOps, series });
		}
		if (d.some.some((v) => v !== null)) list.push({ id: "wait", title: "Waiting for I/O", percent: true,
			series: [{ name: "Some task", kind: "wait", values: d.some, fill: true }, { name: "All tasks", kind: "full", values: d.full }] });
		return list;
	};

	const colorOf = (kind) => css({ write: "--line-write", read: "--line-read", limit: "--line-limit", wait: "--line-wait", full: "--line-limit" }[kind]);

	const draw = () => {
		if (!data || !past || typeof uPlot === "undefined") return;
		const list = plotsOf(data);
		const known = list.map((p) => p.id).join("|");
		if (charts.length && charts.known === known) {
			list.forEach((p, i) => charts[i].update(p));
			return;
		}
		for (const c of charts) c.end();
		const box = byId("charts");
		box.replaceChildren();
		charts = list.map((p) => chart(box, p));
		charts.known = known;
	};

	const chart = (box, p) => {
		const figure = document.createElement("figure");
		figure.className = "chart";
		const caption = document.createElement("figcaption");
		const title = document.createElement("strong");
		title.textContent = p.title;
		caption.append(title);
		for (const s of p.series) {
			const item = document.createElement("span");
			const mark = document.createElement("span");
			mark.className = "mark-line " + s.kind;
			mark.setAttribute("aria-hidden", "true");
			item.append(mark, s.name.toLowerCase());
			if (p.series.length > 1 || p.percent) caption.append(item);
		}
		const at = document.createElement("span");
		at.className = "at";
		caption.append(at);
		const area = document.createElement("div");
		area.setAttribute("role", "img");
		figure.append(caption, area);
		box.append(figure);
		const text = (v) => p.percent ? (v === null ? "–" : v.toFixed(0) + " %") : spell(v, p.isOps);
		const span = () => data.to - data.from;
		const width = () => Math.max(200, box.clientWidth);
		const tell = (i) => {
			const values = p.series.map((s) => s.name.toLowerCase() + " " + text(s.values[i] ?? null)).join(", ");
			at.textContent = i === null ? "" : clock(data.times[i], span()) + "  " + values;
		};
		// last is the newest point that is known.
		const last = () => {
			for (let i = data.times.length - 1; i >= 0; i--) if (p.series[0].values[i] !== null) return i;
			return null;
		};
		const axis = { stroke: css("--muted"), font: "12px " + css("--sans"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
		const plot = new uPlot({
			width: width(), height: p.percent ? 110 : 150, legend: { show: false }, padding: [12, 8, 0, 0],
			cursor: { y: false, drag: { x: false, y: false }, points: { show: false }, sync: { key: "past" } },
			scales: { x: { time: true, range: () => [data.from, data.to] }, y: { range: (u, lo, hi) => [0, p.percent ? 100 : Math.max(hi * 1.12, p.isOps ? 10 : 1000)] } },
			axes: [
				{ ...axis, values: (u, list) => list.map((v) => clock(v, span())), grid: { show: false }, space: 75, size: 26 },
				{ ...axis, values: (u, list) => list.map((v) => p.percent ? v + " %" : spellShort(v, p.isOps)), size: 62, space: 32 },
			],
			series: [{}, ...p.series.map((s) => ({
				stroke: colorOf(s.kind), width: s.kind === "limit" ? 1.5 : 1.75, dash: s.kind === "limit" ? [6, 5] : undefined, spanGaps: false,
				fill: s.fill ? colorOf(s.kind) + "26" : undefined, points: { show: false },
			}))],
			hooks: { setCursor: [(u) => tell(u.cursor.idx ?? last())] },
		}, [data.times, ...p.series.map((s) => s.values)], area);
		const describe = () => area.setAttribute("aria-label", "Chart: " + p.title + ". The page has its figures in words and as a table.");
		describe();
		tell(last());
		const fit = new ResizeObserver(() => plot.setSize({ width: width(), height: plot.height }));
		fit.observe(box);
		return {
			update: (next) => {
				p = next;
				plot.setData([data.times, ...p.series.map((s) => s.values)]);
				if (plot.cursor.idx === null || plot.cursor.idx === undefined) tell(last());
			},
			end: () => { fit.disconnect(); plot.destroy(); },
		};
	};

	// addPoint moves the charts on by what a stream has sent.
	let pending = [];
	const addPoint = (p) => {
		if (!data) {
			if (past.dataset.recorded) return; // it is being loaded
			data = { step: 1, from: p.time - 600, to: p.time, times: [], devices: [], some: [], full: [] };
		}
		pending.push(p);
		if (data.times.length && p.time - data.times[data.times.length - 1] < data.step) return;
		const mean = (of) => {
			const known = pending.map(of).filter((v) => v !== null && v !== undefined);
			return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
		};
		const dev = (q, node) => q.devices.find((d) => d.node === node);
		for (const d of p.devices) if (!data.devices.some((o) => o.node === d.node)) {
			const none = () => data.times.map(() => null);
			data.devices.push({ node: d.node, rates: Object.fromEntries(keys.map(([k]) => [k, none()])), limits: {} });
		}
		for (const d of data.devices) for (const [key] of keys) {
			d.rates[key].push(mean((q) => dev(q, d.node)?.rates[key]));
			const limit = dev(p, d.node)?.limits[key] ?? null;
			if (limit !== null && !d.limits[key]) d.limits[key] = data.times.map(() => null);
			if (d.limits[key]) d.limits[key].push(limit);
		}
		data.some.push(mean((q) => q.some));
		data.full.push(mean((q) => q.full));
		data.times.push(p.time);
		data.from += p.time - data.to;
		data.to = p.time;
		pending = [];
		while (data.times.length && data.times[0] < data.from) {
			data.times.shift();
			data.some.shift();
			data.full.shift();
			for (const d of data.devices) for (const all of [...Object.values(d.rates), ...Object.values(d.limits)]) all.shift();
		}
		draw();
	};

	const loadPast = async () => {
		const answer = await fetch(past.dataset.charts);
		if (!answer.ok) {
			delete past.dataset.recorded;
			return;
		}
		data = await answer.json();
		// What is not known yet at the end is what the stream will bring.
		while (live && data.times.length && data.devices.every((d) => keys.every(([k]) => d.rates[k][d.rates[k].length - 1] === null))) {
			data.times.pop();
			data.some.pop();
			data.full.pop();
			for (const d of data.devices) for (const all of [...Object.values(d.rates), ...Object.values(d.limits)]) all.pop();
		}
		draw();
	};

	if (past) {
		if (past.dataset.recorded) loadPast();
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
			charts.known = "";
			draw();
		});
	}

	// --- the stream ---

	const status = byId("status");
	let source = null, again = 0, paused = false;
	const tell = (kind, text) => {
		status.className = "status " + kind;
		put(byId("state"), text);
	};
	const take = (kind, handler) => source.addEventListener(kind, (e) => {
		const got = JSON.parse(e.data);
		if (got.version !== document.body.dataset.version) {
			location.reload(); // weir was exchanged for another one
			return;
		}
		tell("live", "live");
		put(byId("time"), got.time);
		handler(got);
	});
	const connect = () => {
		if (source || paused || document.hidden) return;
		source = new EventSource(isGroup ? main.dataset.stream : "/stream");
		take("list", takeList);
		take("group", takeGroup);
		source.addEventListener("trouble", (e) => tell("lost", JSON.parse(e.data)));
		source.addEventListener("error", () => {
			tell("lost", "no connection, since");
			if (source && source.readyState === EventSource.CLOSED) { // it does not try again by itself
				disconnect();
				clearTimeout(again);
				again = setTimeout(connect, 5000);
			}
		});
	};
	const disconnect = () => {
		if (source) source.close();
		source = null;
	};
	const pause = () => {
		paused = !paused;
		const button = byId("pause");
		button.setAttribute("aria-pressed", String(paused));
		put(button, paused ? "Go on" : "Pause");
		if (paused) {
			disconnect();
			tell("", "paused at");
		} else {
			connect();
		}
	};
	if (live && status) {
		byId("pause").hidden = false;
		byId("pause").addEventListener("click", pause);
		// A page that nobody sees costs nothing.
		document.addEventListener("visibilitychange", () => document.hidden ? disconnect() : connect());
		addEventListener("pagehide", disconnect);
		addEventListener("pageshow", connect);
		connect();
	}

	// --- keys ---

	for (const hint of document.querySelectorAll(".keys")) hint.hidden = false;
	const step = (by) => {
		const links = [...document.querySelectorAll("#rows tr:not([hidden]) th a")];
		const at = links.indexOf(document.activeElement);
		const next = links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))];
		if (next) next.focus();
	};
	document.addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const typing = e.target.matches("input, textarea, select");
		if (typing) {
			if (e.key === "Escape") e.target.blur();
			return;
		}
		switch (e.key) {
		case "/": if (table && live) { byId("filter").focus(); e.preventDefault(); } break;
		case "j": step(1); break;
		case "k": step(-1); break;
		case "o": if (table && live) byId("active").click(); break;
		case "p": if (live) pause(); break;
		case "Escape":
			if (isGroup) { const back = document.querySelector(".back a"); if (back) back.click(); }
			else if (document.activeElement) document.activeElement.blur();
			break;
		}
	});
})();
