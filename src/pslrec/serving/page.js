
"use strict";
const SHOWN_HISTORY = 12;
const SHOWN_HISTORY_ON_A_PHONE = 3;
const SHOWN_COLUMNS = 3;
const LIST_SEPARATOR = "|";
const element = (id) => document.getElementById(id);
const make = (tag, name, text) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
};

// What the page shows. The history is that of the data, the basket what was added to it.
const state = {user: null, history: [], basket: [], removed: new Set(), allowed: [], hidden: [], showsAll: false};
let token = sessionStorage.getItem("token") || "";
let columns = [];
let latest = 0;
let isRestoring = false;

function say(text, isBad) {
  element("message").textContent = text;
  element("message").className = isBad ? "bad" : "";
}

async function ask(path, body) {
  const headers = {"content-type": "application/json"};
  if (token) headers.authorization = "Bearer " + token;
  const options = body ? {method: "POST", headers, body: JSON.stringify(body)} : {headers};
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw new Error("the service cannot be reached");
  }
  const content = await response.json().catch(() => ({error: "the service gave no readable answer"}));
  if (response.status === 401) {
    element("token-part").hidden = false;
    element("token").focus();
  }
  if (!response.ok) throw new Error(content.error || "the service answered " + response.status);
  return content;
}

const nameOf = (entry) => entry.title || String(entry.item);
const isIn = (entries, item) => entries.some((entry) => String(entry.item) === String(item));

// Cards.

function button(text, label, action) {
  const made = make("button", "", text);
  made.type = "button";
  made.setAttribute("aria-label", label);
  made.addEventListener("click", action);
  return made;
}

function head(entry, place) {
  const made = make("div", "head");
  if (place !== undefined) made.append(make("span", "rank", place + 1));
  const name = make("span", "name", nameOf(entry));
  if (entry.title) name.append(" ", make("span", "id", entry.item));
  made.append(name);
  return made;
}

// Whether a column of texts has two values only, such as ja and nein.
function isYesOrNo(name) {
  return columns.some((column) => column.name === name && column.kind === "text" && column.values.length === 2);
}

function chips(entry) {
  const made = make("div", "chips");
  for (const [name, value] of Object.entries(entry.details || {})) {
    // A number or a yes, in whatever language, says nothing without the name of its column.
    const isPlain = typeof value === "string" && !isYesOrNo(name);
    const prefix = isPlain ? "" : name + " ";
    for (const part of String(value).split(LIST_SEPARATOR).slice(0, 6)) {
      const chip = make("span", "chip", prefix + (part.length > 60 ? part.slice(0, 60) + "…" : part));
      chip.title = name;
      made.append(chip);
    }
  }
  return made.childElementCount ? [made] : [];
}

function score(entry, highest) {
  const made = make("div", "score");
  const track = make("span", "track");
  const bar = make("i");
  bar.style.width = Math.max(0, 100 * entry.score / highest) + "%";
  track.append(bar);
  const number = make("span", "", entry.score.toPrecision(3));
  number.setAttribute("aria-label", "score " + entry.score.toPrecision(3));
  made.append(track, number);
  return made;
}

function why(entry) {
  if (!entry.because || !entry.because.length) return [];
  const reasons = entry.because.map((reason) => nameOf(reason) + " (" + reason.similarity.toFixed(2) + ")");
  return [make("div", "why", "because of " + reasons.join(", "))];
}

function actions(entry, isSimilar) {
  const made = make("div", "actions");
  const name = nameOf(entry);
  if (!isIn(state.basket, entry.item)) made.append(button("Add", "add " + name + " to the basket", () => add(entry)));
  made.append(button("Similar", "items similar to " + name, () => showNear(entry)));
  if (!isSimilar) made.append(button("Hide", "hide " + name, () => hide(entry)));
  return made;
}

function ranked(entries, isSimilar) {
  const highest = Math.max(...entries.map((entry) => Math.abs(entry.score)), 1e-9);
  return entries.map((entry, place) => {
    const card = make("li", "card");
    card.dataset.item = entry.item;
    card.append(head(entry, place), ...chips(entry), score(entry, highest), ...why(entry), actions(entry, isSimilar));
    return card;
  });
}

function owned(entry, isNew) {
  const card = make("li", isNew ? "card new" : "card");
  card.dataset.item = entry.item;
  const made = make("div", "actions");
  const name = nameOf(entry);
  made.append(
    button("Similar", "items similar to " + name, () => showNear(entry)),
    button("Remove", "remove " + name, () => remove(entry)),
  );
  const top = head(entry);
  top.append(made);
  card.append(top, ...chips(entry));
  return card;
}

function popular(entries) {
  const isShown = (entry) => !isIn(state.hidden, entry.item) && (!state.allowed.length || isIn(state.allowed, entry.item));
  return entries.filter(isShown).map((entry) => {
    const card = make("li", "card");
    card.dataset.item = entry.item;
    card.append(head(entry), ...chips(entry), actions(entry));
    return card;
  });
}

function showOwned() {
  const kept = state.history.filter((entry) => !state.removed.has(String(entry.item)));
  const n = kept.length + state.basket.length;
  const whose = state.user === null ? "Basket" : "History of " + state.user;
  element("has-title").textContent = whose + ": " + n + (n === 1 ? " item" : " items");
  element("basket-part").hidden = !state.basket.length;
  element("basket-title").hidden = state.user === null;
  element("rest-title").hidden = !kept.length;
  element("basket-list").replaceChildren(...state.basket.map((entry) => owned(entry, true)));
  const isNarrow = matchMedia("(max-width: 48rem)").matches;
  const shown = state.showsAll ? kept : kept.slice(0, isNarrow ? SHOWN_HISTORY_ON_A_PHONE : SHOWN_HISTORY);
  element("has-list").replaceChildren(...shown.map((entry) => owned(entry, false)));
  element("more").hidden = shown.length === kept.length;
  element("more").textContent = "Show all " + kept.length;
}

// Changes that somebody makes; each is answered by a new list.

function add(entry) {
  state.removed.delete(String(entry.item));
  if (!isIn(state.history, entry.item) && !isIn(state.basket, entry.item)) state.basket.unshift(entry);
  element("near").close();
  // The card that was clicked goes away, so the focus goes to the list that changes.
  element("gets-title").focus({preventScroll: true});
  update(nameOf(entry) + " was added; ");
}

function remove(entry) {
  state.basket = state.basket.filter((other) => String(other.item) !== String(entry.item));
  if (isIn(state.history, entry.item)) state.removed.add(String(entry.item));
  update(nameOf(entry) + " was removed; ");
  element("has-title").focus({preventScroll: true});
}

function hide(entry) {
  if (!isIn(state.hidden, entry.item)) state.hidden.push(entry);
  update(nameOf(entry) + " is hidden; ");
  element("gets-title").focus({preventScroll: true});
}

function allow(entry) {
  if (!isIn(state.allowed, entry.item)) state.allowed.push(entry);
  update(nameOf(entry) + " may be recommended; ");
}

// Filters.

const textOf = (value) => '"' + value.replace(/\\/g, "\\\\").replace(/"/g, '\\"') + '"';
const columnOf = (name) => /^[A-Za-z_]\w*$/.test(name) ? name : "`" + name + "`";

function condition() {
  const parts = [];
  const typed = element("where").value.trim();
  if (typed) parts.push("(" + typed + ")");
  for (const field of document.querySelectorAll("#column-filters [data-column]")) {
    if (field.value !== "") {
      const value = field.dataset.kind === "number" ? field.value : textOf(field.value);
      parts.push(columnOf(field.dataset.column) + " " + field.dataset.sign + " " + value);
    }
  }
  return parts.join(" and ");
}

function rules() {
  const found = {};
  const where = condition();
  if (where) found.where = where;
  if (element("most").value && element("most-column").value) {
    found.at_most = {[element("most-column").value]: Number(element("most").value)};
  }
  if (state.allowed.length) found.items = state.allowed.map((entry) => entry.item);
  if (state.hidden.length) found.exclude = state.hidden.map((entry) => entry.item);
  return found;
}

function labelled(text, ...fields) {
  const label = make("label", "", text);
  label.append(...fields);
  return label;
}

function choice(column) {
  const parts = new Set(column.values.flatMap((value) => value.split(LIST_SEPARATOR)));
  const isList = column.values.some((value) => value.includes(LIST_SEPARATOR));
  const field = make("select");
  Object.assign(field.dataset, {column: column.name, kind: "text", sign: isList ? "contains" : "=="});
  field.append(new Option("any", ""), ...[...parts].sort().map((value) => new Option(value, value)));
  return labelled(column.name, field);
}

function range(column) {
  const both = make("span", "range");
  for (const [sign, words] of [[">=", "from"], ["<=", "to"]]) {
    const field = make("input");
    field.type = "number";
    field.step = "any";
    field.placeholder = words;
    field.setAttribute("aria-label", column.name + " " + words);
    Object.assign(field.dataset, {column: column.name, kind: "number", sign});
    both.append(field);
  }
  const group = make("div", "field");
  group.append(make("span", "", column.name), both);
  return group;
}

function offerFilters(found) {
  columns = found;
  const choices = columns.filter((column) => column.kind === "text" && column.values.length > 1);
  const ranges = columns.filter((column) => column.kind === "number");
  element("column-filters").replaceChildren(
    ...choices.slice(0, SHOWN_COLUMNS).map(choice), ...ranges.slice(0, SHOWN_COLUMNS).map(range));
  element("most-column").replaceChildren(...[...choices, ...ranges].map((column) => new Option(column.name, column.name)));
  element("table-filters").hidden = !columns.length;
  element("no-filters").hidden = columns.length > 0;
  const example = choices.length ? columnOf(choices[0].name) + " == " + textOf(choices[0].values[0]) : "";
  const other = ranges.length ? columnOf(ranges[0].name) + " >= 10" : "";
  element("where").placeholder = [example, other].filter(Boolean).join(" and ");
}

function showFilters() {
  const asked = rules();
  const n = (asked.where ? 1 : 0) + (asked.at_most ? 1 : 0) + (asked.items ? 1 : 0) + state.hidden.length;
  element("filters-on").textContent = n ? "(" + n + " on)" : "";
  showPicked("allowed", (name) => "no longer choose from " + name);
  showPicked("hidden", (name) => "show " + name + " again");
}

// The items that a filter names, each of which goes away when it is clicked.
function showPicked(filter, label) {
  element(filter + "-part").hidden = !state[filter].length;
  element(filter + "-items").replaceChildren(...state[filter].map((entry) =>
    button(nameOf(entry) + " ×", label(nameOf(entry)), () => {
      state[filter] = state[filter].filter((other) => other !== entry);
      update();
      // The button is gone, so the focus goes to what is left beside it.
      (element(filter + "-items").querySelector("button") || element("allow")).focus();
    })));
}

function clearFilters() {
  for (const field of element("filters").querySelectorAll("input, select:not(#most-column)")) field.value = "";
  Object.assign(state, {allowed: [], hidden: []});
  update();
}

// Lists.

async function listFor(request) {
  const isChanged = state.basket.length || state.removed.size;
  if (state.user !== null && !isChanged) {
    const found = await ask("/recommend", {users: [state.user], with_history: true, ...request});
    const answer = found.recommendations[0];
    return {items: answer.items, history: answer.history};
  }
  const kept = state.history.filter((entry) => !state.removed.has(String(entry.item)));
  const items = [...state.basket, ...kept].map((entry) => entry.item);
  if (!items.length) return {items: null};
  const found = await ask("/recommend-for-history", {history: items, ...request});
  return {items: found.items};
}

async function update(news = "") {
  const asked = ++latest;
  showFilters();
  if (!isRestoring) remember();
  try {
    const found = await listFor({k: Number(element("k").value), explain: 3, details: true, ...rules()});
    if (asked !== latest) return;
    if (found.history) state.history = found.history;
    if (found.items) {
      element("gets-title").textContent = "Recommended";
      element("gets-list").replaceChildren(...ranked(found.items));
      const n = found.items.length;
      say(news + (n ? n + (n === 1 ? " item" : " items") + " recommended" : "nothing is left to recommend"), false);
    } else {
      const start = await ask("/search?text=&k=20&details=true");
      if (asked !== latest) return;
      element("gets-title").textContent = "Popular items to start with";
      element("gets-list").replaceChildren(...popular(start.items));
      say(news + "add items, and recommendations for them appear", false);
    }
    showOwned();
    element("answer").hidden = false;
    element("token-part").hidden = true;
  } catch (error) {
    if (asked === latest) say(error.message, true);
  }
}

function showUser(user) {
  Object.assign(state, {user, history: [], basket: [], removed: new Set(), showsAll: false});
  element("user").value = user === null ? "" : user;
  return update();
}

async function showRandom() {
  try {
    const found = await ask("/random-user");
    await showUser(found.user);
  } catch (error) {
    say(error.message, true);
  }
}

function pathOfSimilar(item) {
  const where = condition();
  const query = new URLSearchParams({k: 12, details: true});
  if (where) query.set("where", where);
  return "/similar/" + String(item).split("/").map(encodeURIComponent).join("/") + "?" + query;
}

async function showNear(entry) {
  try {
    const found = await ask(pathOfSimilar(entry.item));
    element("near-title").textContent = "Similar to " + nameOf(entry);
    element("near-list").replaceChildren(...ranked(found.items, true));
    if (!element("near").open) element("near").showModal();
    element("close").focus();
  } catch (error) {
    say(error.message, true);
  }
}

// Suggestions below a field.

// A field whose suggestions come from the search for items; `taken` is given the chosen one.
function suggesting(field, taken) {
  const list = element(field.id + "-suggestions");
  let suggested = [];
  let chosen = -1;
  let typedLast = 0;

  function show(entries) {
    suggested = entries;
    chosen = -1;
    list.replaceChildren(...entries.map((entry, place) => {
      const option = make("li", "", nameOf(entry));
      if (entry.title) option.append(" ", make("span", "id", entry.item));
      option.id = list.id + "-" + place;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      // Before the field loses its focus, which closes the list.
      option.addEventListener("mousedown", (event) => { event.preventDefault(); take(place); });
      return option;
    }));
    list.hidden = !entries.length;
    field.setAttribute("aria-expanded", String(entries.length > 0));
    field.removeAttribute("aria-activedescendant");
  }

  function choose(place) {
    chosen = (place + suggested.length) % suggested.length;
    [...list.children].forEach((option, other) => {
      option.setAttribute("aria-selected", String(other === chosen));
      if (other === chosen) option.scrollIntoView({block: "nearest"});
    });
    field.setAttribute("aria-activedescendant", list.id + "-" + chosen);
  }

  function take(place) {
    const entry = suggested[place];
    field.value = "";
    show([]);
    taken(entry);
    field.focus();
  }

  async function suggest() {
    const asked = ++typedLast;
    const text = field.value.trim();
    if (!text) return show([]);
    try {
      const found = await ask("/search?" + new URLSearchParams({text: text.slice(0, 200), k: 8, details: true}));
      if (asked !== typedLast) return;
      show(found.items);
      if (!found.items.length) say("no item matches " + text, false);
    } catch (error) {
      say(error.message, true);
    }
  }

  function key(event) {
    const isDown = event.key === "ArrowDown";
    if ((isDown || event.key === "ArrowUp") && suggested.length) {
      event.preventDefault();
      choose(isDown ? chosen + 1 : Math.max(chosen, 0) - 1);
    } else if (event.key === "Enter" && suggested.length) {
      event.preventDefault();
      take(Math.max(chosen, 0));
    } else if (event.key === "Escape") {
      show([]);
    }
  }

  field.addEventListener("input", (event) => {
    // What is typed here is not a filter yet.
    event.stopPropagation();
    suggest();
  });
  field.addEventListener("change", (event) => event.stopPropagation());
  field.addEventListener("keydown", key);
  field.addEventListener("blur", () => show([]));
}

// The address of an answer can be kept.

function remember() {
  const kept = new URLSearchParams();
  if (state.user !== null) kept.set("user", state.user);
  if (element("k").value !== "20") kept.set("k", element("k").value);
  for (const entry of state.basket) kept.append("add", entry.item);
  for (const item of state.removed) kept.append("remove", item);
  for (const entry of state.allowed) kept.append("only", entry.item);
  for (const entry of state.hidden) kept.append("hide", entry.item);
  if (condition()) kept.set("where", condition());
  if (rules().at_most) kept.set("most", element("most").value + " " + element("most-column").value);
  const hash = "#" + kept;
  if (location.hash !== hash) history.pushState(null, "", hash);
}

async function named(items) {
  const entries = [];
  for (const item of items) {
    const found = await ask("/search?" + new URLSearchParams({text: item, k: 1, details: true}));
    const is = found.items.length && String(found.items[0].item) === item;
    entries.push(is ? found.items[0] : {item});
  }
  return entries;
}

async function restore() {
  const kept = new URLSearchParams(location.hash.slice(1));
  isRestoring = true;
  try {
    if (![...kept.keys()].length) return await showRandom();
    for (const field of document.querySelectorAll("#column-filters [data-column]")) field.value = "";
    element("k").value = kept.get("k") || 20;
    element("where").value = kept.get("where") || "";
    const [most, ...column] = (kept.get("most") || "").split(" ");
    element("most").value = most;
    if (most) element("most-column").value = column.join(" ");
    state.allowed = await named(kept.getAll("only"));
    state.hidden = await named(kept.getAll("hide"));
    await showUser(kept.get("user"));
    state.basket = await named(kept.getAll("add"));
    state.removed = new Set(kept.getAll("remove"));
    if (state.basket.length || state.removed.size) await update();
    element("filters").open = Object.keys(rules()).length > 0;
  } catch (error) {
    say(error.message, true);
  } finally {
    isRestoring = false;
  }
}

async function start() {
  try {
    const facts = await ask("/version");
    const number = (value) => value.toLocaleString("en");
    element("facts").textContent = facts.run + ": " + facts.loss + " on " + facts.backbone + ", " + number(facts.users) + " users, " +
      number(facts.items) + " items";
    element("user").placeholder = "such as " + facts.example_user;
    element("k").max = facts.largest_k;
    element("token-part").hidden = true;
    offerFilters(facts.columns);
    await restore();
  } catch (error) {
    element("facts").textContent = "";
    say(error.message, true);
  }
}

let waiting = 0;
function updateSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(update, 250);
}

element("user-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const user = element("user").value.trim();
  if (user) showUser(user);
  else say("type the id of a user, or take a random one", true);
});
element("token-part").addEventListener("submit", (event) => {
  event.preventDefault();
  token = element("token").value.trim();
  sessionStorage.setItem("token", token);
  start();
});
element("random").addEventListener("click", showRandom);
element("nobody").addEventListener("click", () => { showUser(null); element("search").focus(); });
element("more").addEventListener("click", () => { state.showsAll = true; showOwned(); });
element("clear").addEventListener("click", clearFilters);
element("k").addEventListener("change", () => update());
element("filters").addEventListener("input", updateSoon);
element("filters").addEventListener("change", updateSoon);
suggesting(element("search"), add);
suggesting(element("allow"), allow);
element("close").addEventListener("click", () => element("near").close());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT)$/.test(event.target.tagName)) {
    event.preventDefault();
    element("search").focus();
  }
});
window.addEventListener("popstate", restore);
start();
