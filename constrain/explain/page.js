"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const steps = data.steps;
  // The places: one before each token, and the one after the last.
  const places = steps.map((step) => step.before).concat([data.end]);
  const tokens = [];
  let here = -1;

  const number = (value) => value.toLocaleString("en");
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Text comes as a list of [text, escaped]: escapes are shown as such, line breaks as a sign and a line break.
  const write = (into, pieces) => {
    for (const [text, escaped] of pieces) {
      if (escaped) into.append(make("span", "escape", text));
      else into.append(text.replaceAll("\n", "\u23ce\n"));
    }
  };

  const shade = (step) => {
    if (!step.accepted) return "refused";
    if (step.forced) return "forced";
    const share = Math.log(step.before.allowed) / Math.log(data.vocabulary);
    return share < 0.35 ? "few" : share < 0.7 ? "some" : "many";
  };

  const show = (index, scroll) => {
    const next = Math.max(0, Math.min(places.length - 1, index));
    if (next === here) return;
    if (here >= 0) tokens[here].classList.remove("here");
    here = next;
    tokens[here].classList.add("here");
    if (scroll) tokens[here].scrollIntoView({ block: "nearest" });
    at("slider").value = here;
    at("slider").setAttribute("aria-valuetext", `token ${here + 1} of ${steps.length}`);
    cursor.setAttribute("x", (here * 1000) / places.length);
    history.replaceState(null, "", `#${here}`);
    describe();
  };

  // The lines of the schema that speak of the place; the grammar is scrolled by itself, and the page stays.
  const mark = (lines) => {
    for (const line of at("grammar").querySelectorAll(".marked")) line.classList.remove("marked");
    if (lines === null) return;
    const all = at("grammar").children;
    for (let index = lines[0]; index <= lines[1] && index < all.length; index++) all[index].classList.add("marked");
    const first = all[lines[0]];
    if (first) at("grammar").scrollTop = first.offsetTop - at("grammar").offsetTop - 40;
  };

  const describe = () => {
    const place = places[here];
    const step = steps[here];
    const rows = [];
    if (step) {
      at("where").textContent = `Token ${number(here + 1)} of ${number(steps.length)}`;
      rows.push(["token", step.shown, true], ["id", String(step.token)], ["bytes", step.bytes, true]);
      const choice = !step.accepted ? "refused" : step.forced ? "forced" : "free";
      rows.push(["choice", `${choice}: ${data.phrases[step.why]}`]);
      if (!step.accepted && step.readable) rows.push(["readable", step.readable, true]);
      if (step.probability !== null) rows.push(["probability", `${(100 * step.probability).toPrecision(3)} %`]);
    } else {
      at("where").textContent = data.refused ? "Where the text breaks the grammar" : "The end of the text";
      rows.push(["the text", data.refused ? "after the last byte that could be read"
        : place.complete ? "complete: the text may end here" : "incomplete: more is needed"]);
    }
    const share = (100 * place.allowed) / data.vocabulary;
    rows.push(["allowed", `${number(place.allowed)} of ${number(data.vocabulary)} tokens (${share.toPrecision(3)} %)`]);
    if (place.mask_us !== null) rows.push(["mask took", `${place.mask_us.toLocaleString("en")} \u00b5s`]);
    rows.push(["expected", data.phrases[place.expected]]);
    if (place.rules !== null) rows.push([data.rules_name, data.phrases[place.rules], true]);
    rows.push(["certainly next", place.forced || "nothing", Boolean(place.forced)]);
    if (step && place.complete) rows.push(["could end here", "yes"]);
    const list = at("details");
    list.replaceChildren();
    for (const [name, value, code] of rows) {
      list.append(make("dt", "", name));
      const cell = make("dd");
      cell.append(code ? make("code", "", value) : value);
      list.append(cell);
    }
    mark(place.lines);
    const table = at("best");
    table.replaceChildren();
    at("best-title").textContent = !place.best.length ? "" : data.model ? "The likeliest of them" : "Some of them, by id";
    for (const [id, text, probability] of place.best) {
      const row = make("tr", step && step.token === id ? "taken" : "");
      row.append(make("td", "number", String(id)));
      if (probability !== null) row.append(make("td", "number", `${(100 * probability).toFixed(2)} %`));
      const cell = make("td");
      cell.append(make("code", "", text));
      row.append(cell);
      table.append(row);
    }
  };

  // -- the page --------------------------------------------------------------------------------

  at("title").textContent = data.title;
  at("verdict").textContent = data.verdict;
  at("verdict").classList.toggle("bad", !data.valid);
  at("facts").textContent = data.facts;
  const text = at("text");
  const add = (element, index) => {
    element.dataset.index = index;
    tokens.push(element);
    text.append(element);
  };
  steps.forEach((step, index) => {
    const element = make("span", shade(step));
    write(element, step.text);
    add(element, index);
  });
  const end = make("span", data.refused ? "end refused" : "end", data.refused ? "\u2716" : places.at(-1).complete ? "end" : "\u2026");
  add(end, steps.length);
  if (data.unread.length) {
    const rest = make("span", "unread");
    write(rest, data.unread);
    text.append(rest);
  }

  if (data.grammar) {
    at("grammar-section").hidden = false;
    at("grammar-name").textContent = data.grammar.name;
    for (const line of data.grammar.lines) at("grammar").append(make("div", "", line || " "));
  }

  const drawing = "http://www.w3.org/2000/svg";
  const chart = at("chart");
  chart.setAttribute("viewBox", "0 0 1000 100");
  chart.setAttribute("preserveAspectRatio", "none");
  const shape = (name, attributes) => {
    const element = document.createElementNS(drawing, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    chart.append(element);
    return element;
  };
  const most = Math.log(data.vocabulary);
  for (let value = 1; value <= data.vocabulary; value *= 10) {
    const height = 4 + (92 * Math.log(value)) / most;
    const label = make("span", "", number(value));
    label.style.bottom = `${height}%`;
    at("y-axis").append(label);
    shape("line", { x1: 0, x2: 1000, y1: 100 - height, y2: 100 - height, stroke: "var(--line)", "stroke-width": 1,
      "vector-effect": "non-scaling-stroke" });
  }
  const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((gap) => steps.length / gap <= 12) || 1000;
  for (let token = 1; token <= steps.length; token += token === 1 && apart > 1 ? apart - 1 : apart) {
    const label = make("span", "", number(token));
    label.style.left = `${(100 * (token - 0.5)) / places.length}%`;
    at("x-axis").append(label);
  }
  const heights = places.map((place) => (place.allowed ? 4 + (92 * Math.log(place.allowed)) / Math.log(data.vocabulary) : 0));
  const width = 1000 / places.length;
  let line = "M0 100";
  heights.forEach((height, index) => { line += `V${100 - height}H${((index + 1) * width).toFixed(2)}`; });
  shape("path", { d: `${line}V100Z`, fill: "var(--soft)", opacity: "0.45" });
  const cursor = shape("rect", { y: 0, height: 100, width: Math.max(width, 2), fill: "var(--mark)", opacity: "0.6" });

  // -- the hand --------------------------------------------------------------------------------

  text.addEventListener("click", (event) => {
    const token = event.target.closest("[data-index]");
    if (token) show(Number(token.dataset.index));
  });
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect();
    show(Math.floor(((event.clientX - box.left) / box.width) * places.length), true);
  });
  at("slider").max = places.length - 1;
  at("slider").addEventListener("input", (event) => show(Number(event.target.value), true));
  at("first").addEventListener("click", () => show(0, true));
  at("back").addEventListener("click", () => show(here - 1, true));
  at("forward").addEventListener("click", () => show(here + 1, true));
  at("last").addEventListener("click", () => show(places.length - 1, true));
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: places.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(to, true);
  });
  addEventListener("hashchange", () => show(Number.parseInt(location.hash.slice(1), 10) || 0, true));
  const asked = Number.parseInt(location.hash.slice(1), 10);
  show(Number.isNaN(asked) ? (data.refused ? places.length - 2 : 0) : asked, true);
})();
