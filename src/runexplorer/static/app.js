"use strict";
// The explorer's page. Everything it shows of a run becomes text nodes, never markup; addresses are its own.
(() => {
  const SHOWN_FILTERS = ["split", "order", "least", "most", "partial", "beyond", "evaluation", "compared"];
  const QUERY = ["text", ...SHOWN_FILTERS, "page"];
  // In the words of the files.
  const VERDICTS = Object.fromEntries(
    [
      "new_fully_correct",
      "known_fully_correct",
      "new_partially_correct",
      "known_partially_correct",
      "too_long",
      "spurious",
      "incorrect",
      "not_executable",
    ].map((verdict) => [verdict, verdict.replaceAll("_", " ")]),
  );
  // What the words of this page mean; shown when they are pointed at, and all together on the overview.
  const WORDS = {
    reference: "the given solution, y*",
    "fully correct": "a program that gives the right answer (FCS); the reference is one",
    "partially correct": "the beginning of a program that reaches a state known to lead to the answer (PCS)",
    "right by luck": "gives the right answer only for the numbers at hand: with others it differs from the reference",
    state: "the values of all variables after a step, whatever their names",
    "self-samples": "solutions that the model drew during training, each run and judged against the kept ones",
    guided: "drawn as the continuation of a kept beginning instead of from scratch",
    "pass@": "the share of problems with at least one right sample among k",
    new: "not kept before, so it is kept now",
    known: "equal to a solution that is kept already",
    gained: "not solved by any sample before, solved by one now",
    lost: "solved by a sample before, by none now",
    loss: "what training minimises: minus the log-probability of the learned solutions, summed",
    "too long": "right, but with more steps than the reference",
    spurious: "right by luck, so it is not kept",
    incorrect: "neither its answer nor any of its beginnings is known to be right",
    "not executable": "does not parse, or its first step fails",
  };
  const SPLITS = { train: "training", dev: "dev" };
  const SECONDS_BETWEEN_PULSES = 10;
  const TYPING_PAUSE = 250;
  const FEW_GROUPS = 12;
  const LONG_VALUE = 24;
  const LONG_QUESTION = 200;

  const byId = (id) => document.getElementById(id);
  const isNarrow = () => matchMedia("(max-width: 52rem)").matches;

  // Text. Characters that are not seen, or that reorder the others, are spelled out.

  const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\u2028\u2029]/gu;
  const HARMLESS = new Set(["\n", "\t"]);
  const HARMLESS_IN_PROSE = new Set(["\n", "\t", "\u200c", "\u200d", "\u00ad"]);

  function* textNodes(text, harmless = HARMLESS) {
    let shown = 0;
    for (const match of String(text).matchAll(UNSEEN)) {
      if (harmless.has(match[0])) continue;
      yield document.createTextNode(text.slice(shown, match.index));
      const code = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
      yield element("span.escape", { title: "a character that is not seen" }, `U+${code}`);
      shown = match.index + match[0].length;
    }
    yield document.createTextNode(String(text).slice(shown));
  }

  /** An element such as "td.number"; attributes may follow, with listeners in `on`; children are nodes or texts. */
  function element(selector, ...rest) {
    const [name, ...classes] = selector.split(".");
    const made = document.createElement(name);
    made.classList.add(...classes);
    const isPlain = rest[0]?.constructor === Object;
    const { on = {}, ...attributes } = isPlain ? rest.shift() : {};
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
    }
    for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
    for (const child of rest.flat(Infinity)) {
      if (child === null || child === undefined) continue;
      made.append(...(child instanceof Node ? [child] : textNodes(child)));
    }
    return made;
  }

  const code = (text) => element("code", { dir: "ltr" }, text);
  const prose = (text) => [...textNodes(text, HARMLESS_IN_PROSE)];
  const hidden = (text) => element("span.sr", text);
  const number = (value) => value.toLocaleString("en");
  /** A word with its meaning. */
  const word = (text, key = text) => element("abbr", { title: WORDS[key] }, text);
  const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

  const brief = (text) =>
    text.length > LONG_VALUE ? `${[...text].slice(0, LONG_VALUE - 4).join("")}…` : text;

  function percent(share) {
    if (share === 0) return "0%";
    if (share < 0.00001) return "< 0.001%";
    return `${Number((100 * share).toPrecision(share >= 0.9995 ? 3 : 2))}%`;
  }

  // Where the data come from: the server, or the scripts of an exported folder.

  class ServerSource {
    canTrace = true;
    run = () => this.ask("api/run");
    list = () => this.ask("api/list");
    pulse = () => this.ask("api/pulse");
    problem = (key, step, signal) =>
      this.ask(`api/problem?${new URLSearchParams({ key, step })}`, { signal });
    trace = (key, text, signal) =>
      this.ask("api/trace", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ key, text }),
        signal,
      });

    async ask(path, options = {}) {
      let response;
      try {
        response = await fetch(path, options);
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Error("The server does not answer; is partway explore still running?");
      }
      const isJson = response.headers.get("content-type") === "application/json";
      const answer = isJson ? await response.json() : { error: await response.text() };
      if (!response.ok) throw new Error(answer.error);
      return answer;
    }
  }

  class FolderSource {
    canTrace = false;
    waiting = new Map();

    constructor() {
      window.partwayData = (name, content) => this.waiting.get(name).resolve(content);
    }

    load(name) {
      if (!this.waiting.has(name)) {
        const script = element("script", { src: `data/${name}.js` });
        const entry = {};
        entry.promise = new Promise((resolve, reject) => {
          entry.resolve = resolve;
          script.addEventListener("error", () => reject(new Error(`data/${name}.js cannot be read.`)));
        });
        this.waiting.set(name, entry);
        document.head.append(script);
      }
      return this.waiting.get(name).promise;
    }

    run = () => this.load("run");
    list = () => this.load("list");

    async problem(key) {
      const place = shown.entries.findIndex((entry) => entry.key === key);
      if (place < 0) throw new Error("There is no such problem in this run.");
      return (await this.load(`problems-${Math.floor(place / shown.run.problems_per_file)}`))[key];
    }
  }

  // The address holds what is looked for and what is open, so that it can be shared, and the browser's back works.

  const readAddress = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

  function addressWith(changes) {
    const values = Object.entries({ ...readAddress(), ...changes }).filter(([, value]) => value);
    return `#${new URLSearchParams(values)}`;
  }

  function go(changes, { replacing = false } = {}) {
    const address = addressWith(changes);
    if (address === location.hash) return;
    history[replacing ? "replaceState" : "pushState"](null, "", address);
    follow();
  }

  const source =
    document.documentElement.dataset.source === "folder" ? new FolderSource() : new ServerSource();
  const shown = { run: null, entries: [], query: null, rows: [], problem: null, open: null };
  const latest = {};

  /** The signal of a new request of its kind; the one before it is given up. */
  function newest(kind) {
    latest[kind]?.abort();
    latest[kind] = new AbortController();
    return latest[kind].signal;
  }

  async function follow({ anew = false } = {}) {
    const address = readAddress();
    const query = JSON.stringify(QUERY.map((name) => address[name]));
    if (anew || query !== shown.query) {
      shown.query = query;
      showQuery(address);
      showList(partwaySearch.pageOf(partwaySearch.search(shown.entries, address), address.page));
    }
    const open = address.open ? `${address.open} ${address.step || ""}` : null;
    if (anew || open !== shown.open) {
      shown.open = open;
      document.body.classList.toggle("has-open", Boolean(open));
      markOpen();
      if (open) await loadProblem(address.open, address.step || "");
      else showRun();
    }
  }

  // The run.

  async function loadRun() {
    const facts = await source.run();
    shown.entries = partwaySearch.entriesOf(await source.list());
    showFacts(facts);
  }

  function showFacts(facts) {
    shown.run = facts;
    document.title = `${facts.name} · partway explorer`;
    byId("run-name").replaceChildren(...textNodes(facts.name));
    showProgress(facts);
    const splits = Object.entries(facts.splits);
    const all = splits.reduce((sum, [, size]) => sum + size, 0);
    byId("query").elements.split.replaceChildren(
      element("option", { value: "" }, `all ${number(all)}`),
      ...splits.map(([name, size]) =>
        element("option", { value: name }, `${SPLITS[name] || name} (${number(size)})`),
      ),
    );
    byId("beyond").hidden = !facts.totals.doubted;
    if (facts.other) {
      byId("compared").hidden = false;
      byId("compared-name").replaceChildren(...textNodes(`Compared with ${facts.other}`));
    }
  }

  function showProgress({ step, finished }) {
    const { max_steps: last, other } = shown.run;
    const steps = last > 0 && !finished ? `step ${number(step)} of ${number(last)}` : `step ${number(step)}`;
    const words = [finished ? `finished at ${steps}` : `in training, ${steps}`];
    if (other) words.push(`compared with ${other}`);
    if (!source.canTrace) words.push("a static copy");
    byId("run-progress").replaceChildren(...textNodes(words.join(" · ")));
  }

  function showRun() {
    newest("problem");
    shown.problem = null;
    byId("main").removeAttribute("aria-busy");
    const { name, settings, overview } = shown.run;
    byId("main").replaceChildren(
      ...[
        element("h1", { tabindex: "-1" }, name),
        element("p.note", "Choose a problem to see its solutions side by side, state by state."),
        element("button.to-list", { type: "button", on: { click: () => byId("query").scrollIntoView() } }, "Problems ↓"),
        element("dl.facts-grid", runFacts(shown.run).map(fact)),
        worthPart(overview.worth),
        chartsPart(overview),
        changesPart(overview.changes, shown.run),
        wordsPart(),
        part(
          "settings",
          "Settings",
          null,
          element(
            "dl.settings",
            settings.flatMap(([label, value]) => [element("dt", label), element("dd", value)]),
          ),
        ),
      ].filter(Boolean),
    );
  }

  const fact = ([label, value, note]) =>
    element("div.fact", element("dt", label), element("dd", value, note && element("small", note)));

  /** The numbers at a glance: what is kept, and what each evaluation gave. */
  function runFacts({ totals, splits, results, other }) {
    const facts = [];
    if (splits.train) {
      const kept = (key, sum, note) => [
        [word(key), " per problem"],
        (sum / splits.train).toFixed(2),
        note || `${number(sum)} kept`,
      ];
      const found = totals.fcs - totals.references;
      facts.push(
        kept("fully correct", totals.fcs, `${number(totals.references)} given, ${number(found)} found`),
      );
      facts.push(kept("partially correct", totals.pcs));
      if (totals.doubted) {
        const link = element("a", { href: addressWith({ beyond: "luck", page: "" }) }, number(totals.doubted));
        facts.push([word("right by luck"), link, `of ${number(totals.fcs)} fully correct`]);
      }
    }
    for (const { split, name, solved, of, metrics } of results) {
      const when = evaluationName(name);
      facts.push([`solved, ${split}`, `${number(solved)} of ${number(of)}`, `by any sample, ${when}`]);
      const passes = metrics.filter(([metric]) => /^pass@\d+$/.test(metric));
      for (const [metric, value] of passes.length > 2 ? [passes[0], passes.at(-1)] : passes)
        facts.push([[word(metric, "pass@"), `, ${split}`], percent(value), when]);
    }
    if (other) {
      const found = (change) =>
        element(
          "a",
          { href: addressWith({ compared: change, page: "" }) },
          `${number(partwaySearch.search(shown.entries, { compared: change }).length)} ${change}`,
        );
      facts.push([`solved, compared with ${other}`, [found("gained"), ", ", found("lost")], null]);
    }
    return facts;
  }

  /** An evaluation in words: of a step of training, or of the final model. */
  function evaluationName(name) {
    const step = shown.run.final_step;
    if (!/^\d+$/.test(name)) return step ? `final model (step ${number(step)})` : "final model";
    return Number(name) === step ? `final model (step ${number(step)})` : `step ${number(Number(name))}`;
  }

  function worthPart(worth) {
    if (!worth.length) return null;
    return part("worth", "Worth looking at", null, element("ul.worth", worth.map(problemLink)));
  }

  function problemLink({ key, id, question, why }) {
    return element(
      "li",
      element(
        "a",
        { href: addressWith({ open: key, step: "" }) },
        why ? element("b", `${why[0].toUpperCase()}${why.slice(1)}`) : element("span.id", id),
        element("span.question", { dir: "auto" }, prose(question)),
      ),
    );
  }

  function chartsPart({ charts, verdicts }) {
    const drawn = charts.map((chart) => partwayCharts.lines(chart, element));
    if (verdicts) drawn.push(partwayCharts.shares(verdicts, VERDICTS, element));
    if (!drawn.length) return null;
    return part("curves", "How training went", "As logged, nothing smoothed.", element("div.charts", drawn));
  }

  function changesPart(changes, { other }) {
    if (!changes) return null;
    const { first, last } = changes;
    const list = (change) =>
      element(
        "div",
        element("h3", word(change), `: ${number(changes[`${change}_count`])}`),
        element("ul.worth", changes[change].map(problemLink)),
        changes[`${change}_count`] > changes[change].length
          ? element("p.note", `and ${number(changes[`${change}_count`] - changes[change].length)} more`)
          : null,
      );
    const note = `Dev problems, ${evaluationName(first)} against ${evaluationName(last)}${other ? ", in this run alone" : ""}.`;
    return part("changes", "Gained and lost in training", note, element("div.changes", list("gained"), list("lost")));
  }

  function wordsPart() {
    const names = { "pass@": "pass@k", new: "new (verdict)", known: "known (verdict)" };
    return element(
      "details.part.words",
      element("summary", "What the words mean"),
      element(
        "dl.settings",
        Object.entries(WORDS).flatMap(([key, meaning]) => [
          element("dt", names[key] || key),
          element("dd", meaning),
        ]),
      ),
    );
  }

  async function watch() {
    if (shown.run.finished || !source.pulse) return;
    if (document.visibilityState === "visible") {
      try {
        const pulse = await source.pulse();
        byId("news").hidden = pulse.version === shown.run.version;
        showProgress(pulse);
      } catch (error) {
        byId("run-progress").replaceChildren(...textNodes(error.message));
      }
    }
    setTimeout(watch, 1000 * SECONDS_BETWEEN_PULSES);
  }

  async function refresh() {
    byId("news").hidden = true;
    try {
      await loadRun();
    } catch (error) {
      byId("run-progress").replaceChildren(...textNodes(error.message));
      return;
    }
    await follow({ anew: true });
  }

  // The list of problems.

  function showQuery(address) {
    const fields = byId("query").elements;
    for (const name of ["text", ...SHOWN_FILTERS]) {
      if (fields[name] !== document.activeElement) fields[name].value = address[name] || "";
    }
    const set = SHOWN_FILTERS.filter((name) => address[name]).length;
    byId("filters-set").textContent = set ? `(${set} set)` : "";
  }

  function showList({ problems, total, page, pages, first, rows }) {
    shown.rows = rows;
    const range = pages > 1 ? `, ${number(first)}–${number(first + rows.length - 1)} shown` : "";
    const places = total > problems ? ` in ${count(total, "row")}` : "";
    byId("total").textContent = total
      ? count(problems, "problem") + places + range
      : "No problem fits. Change the words or clear the filters.";
    const hadFocus = byId("entries").contains(document.activeElement);
    byId("entries").replaceChildren(...rows.map(entryOf));
    byId("entries").scrollTop = 0;
    byId("pager").hidden = pages === 1;
    byId("page-shown").textContent = `page ${number(page)} of ${number(pages)}`;
    for (const [id, target, usable] of [
      ["page-before", page - 1, page > 1],
      ["page-after", page + 1, page < pages],
    ]) {
      byId(id).disabled = !usable;
      byId(id).dataset.page = target;
    }
    markOpen();
    if (hadFocus) focusEntry(0);
  }

  function entryOf(row) {
    const facts = row.split === "train"
      ? [
          word(`${number(row.fcs)} FCS`, "fully correct"),
          row.pcs
            ? element("b.is-partial", " + ", word(`${number(row.pcs)} PCS`, "partially correct"))
            : null,
          row.doubted ? element("b.is-wrong", ", ", word(`${number(row.doubted)} by luck`, "right by luck")) : null,
        ]
      : [
          row.drawn
            ? element(
                "b",
                { class: row.passed ? "is-right" : "is-wrong" },
                `${number(row.passed)}/${number(row.drawn)} right`,
              )
            : "not evaluated",
        ];
    const change = changeOf(row);
    const link = element(
      "a.entry",
      { href: addressWith({ open: row.key, step: "" }), "data-key": row.key, tabindex: "-1" },
      element("span.head", element("span.id", row.id), change, element("span.facts", facts)),
      element("span.question", { dir: "auto" }, prose(row.question)),
    );
    return element("li", link);
  }

  function changeOf(row) {
    if (!row.other || !row.drawn || !row.other.drawn) return null;
    const gained = Number(row.passed > 0) - Number(row.other.passed > 0);
    return gained
      ? element("b", { class: gained > 0 ? "is-right" : "is-wrong" }, gained > 0 ? "▲ gained" : "▼ lost")
      : null;
  }

  const links = () => [...byId("entries").querySelectorAll("a")];

  /** The open problem is the current one, and one link of the list, that or the first, is reached by Tab. */
  function markOpen() {
    const open = readAddress().open;
    const all = links();
    const current = all.find((link) => link.dataset.key === open);
    for (const link of all) {
      link.toggleAttribute("aria-current", false);
      link.tabIndex = -1;
    }
    if (current) current.setAttribute("aria-current", "true");
    const reached = current || all[0];
    if (reached) reached.tabIndex = 0;
    current?.scrollIntoView({ block: "nearest" });
  }

  function focusEntry(place) {
    const all = links();
    if (!all.length) return;
    const link = all[Math.min(Math.max(place, 0), all.length - 1)];
    for (const other of all) other.tabIndex = other === link ? 0 : -1;
    link.focus();
  }

  function openNeighbour(distance) {
    const place = shown.rows.findIndex((row) => row.key === readAddress().open);
    const row = shown.rows[place + distance];
    if (row) go({ open: row.key, step: "" });
  }

  // One problem.

  async function loadProblem(key, step) {
    const signal = newest("problem");
    const main = byId("main");
    main.setAttribute("aria-busy", "true");
    const focusBefore = document.activeElement;
    try {
      const problem = await source.problem(key, step, signal);
      if (signal.aborted) return;
      const entry = shown.entries.find((one) => one.key === key);
      const isSame = shown.problem?.key === key;
      const typed = isSame ? byId("typed")?.value : "";
      const scrolled = isSame ? main.scrollTop : 0;
      shown.problem = problem;
      main.replaceChildren(problemBar(entry), ...problemParts(problem));
      main.scrollTop = scrolled;
      if (!isSame) {
        if (document.activeElement === focusBefore) main.querySelector("h1").focus({ preventScroll: true });
        if (isNarrow()) scrollTo(0, 0);
      }
      if (typed && byId("typed")) {
        byId("typed").value = typed;
        runTyped();
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      shown.problem = null;
      const again = element(
        "button",
        { type: "button", on: { click: () => follow({ anew: true }) } },
        "Try again",
      );
      main.replaceChildren(element("div.message", { role: "alert" }, element("p", error.message), again));
    }
    main.removeAttribute("aria-busy");
  }

  function problemParts(problem) {
    const trial = source.canTrace ? tryPart(problem) : null;
    const isLearned = problem.key.startsWith("train/"); // of the others, what the model wrote comes first
    const parts = [
      solutionsPart(problem),
      isLearned ? trial : null,
      treePart(problem),
      evaluationPart(problem),
      samplesPart(problem),
      isLearned ? null : trial,
    ].filter(Boolean);
    const jump = (part) =>
      element(
        "button",
        { type: "button", on: { click: () => part.scrollIntoView({ behavior: "smooth" }) } },
        part.dataset.title,
      );
    return [
      element(
        "h1",
        { tabindex: "-1", dir: "auto", class: isLong(problem.question) && "long" },
        prose(problem.question),
      ),
      answerPart(problem),
      element("div.jumps", { role: "group", "aria-label": "Parts of this page" }, parts.map(jump)),
      ...parts,
    ];
  }

  const isLong = (question) => question.length > LONG_QUESTION || question.trim().includes("\n");

  function answerPart({ answer, tests }) {
    if (!tests) return element("p.answer", "answer ", code(answer));
    if (!tests.length) return element("p.answer", "Right is what passes these tests.");
    const listed = element("pre.tests", { dir: "ltr" }, prose(tests.join("\n")));
    return element("div.answer", "Right is what passes these tests:", listed);
  }

  function problemBar({ key, id, split, other, drawn }) {
    const place = shown.rows.findIndex((row) => row.key === key);
    const step = (distance, sign, name) =>
      element(
        "button",
        {
          type: "button",
          disabled: !shown.rows[place + distance] || place < 0,
          on: { click: () => openNeighbour(distance) },
        },
        element("span", { "aria-hidden": "true" }, sign),
        hidden(name),
      );
    let compared = null;
    if (other && drawn && other.drawn)
      compared = `${shown.run.other}: ${number(other.passed)} of ${number(other.drawn)} right`;
    else if (other && split === "train")
      compared = `${shown.run.other}: ${number(other.fcs)} FCS, ${number(other.pcs)} PCS`;
    return element(
      "div.bar",
      element("button", { type: "button", class: "back", on: { click: closeProblem } }, "← Problems"),
      element("span", `${SPLITS[split] || split} problem`),
      element("span.id", id),
      compared && element("span.compared", compared),
      element("span.steps-aside", step(-1, "↑", "Previous problem"), step(1, "↓", "Next problem")),
    );
  }

  function part(id, title, note, ...children) {
    return element(
      "section.part",
      { id, "data-title": title, "aria-labelledby": `${id}-title` },
      element("header", element("h2", { id: `${id}-title` }, title), note && element("p", note)),
      ...children,
    );
  }

  function nameOf(problem, place) {
    if (problem.solutions[place].kind === "reference") return ["y*"];
    const before = problem.solutions[0].kind === "reference" ? 0 : 1;
    return ["ŷ", element("sub", String(place + before))];
  }

  const plainName = (problem, place) =>
    nameOf(problem, place)
      .map((piece) => piece.textContent ?? piece)
      .join("");

  function solutionsPart(problem) {
    const { solutions } = problem;
    if (!solutions.length) {
      return part(
        "solutions",
        "Kept solutions",
        null,
        element("p.note", "None yet: there is no reference, and no sample was right so far."),
      );
    }
    const first = plainName(problem, 0);
    const rows = solutions.some(({ steps }) => steps.some((step) => step.rows)) ? "; = marks its rows." : ".";
    const differs = `. ◆ is the first step that differs from ${first}${rows}`;
    const note = solutions.length > 1 ? ["The same letter is the same ", word("state"), differs] : null;
    const title =
      solutions.length > 1
        ? `Kept solutions (${number(solutions.length)})`
        : problem.has_reference
          ? "Reference"
          : "Kept solution";
    return part(
      "solutions",
      title,
      note,
      element(
        "div.cards",
        { tabindex: "0", role: "group", "aria-label": "Kept solutions, side by side" },
        solutions.map((_, place) => card(problem, place)),
      ),
    );
  }

  function card(problem, place) {
    const solution = problem.solutions[place];
    const [kind, look] = {
      reference: ["reference", "is-reference"],
      fully_correct: ["fully correct", "is-right"],
      partially_correct: ["partially correct", "is-partial"],
    }[solution.kind];
    const text = solution.steps.map((step) => step.text).join("\n");
    const toTry = element(
      "button",
      { type: "button", title: "Type on from here", on: { click: () => type(`${text}\n`) } },
      "Edit a copy",
    );
    return element(
      "article.card",
      { id: `solution-${place}`, "aria-label": `${kind} ${plainName(problem, place)}` },
      element(
        "header",
        element("span.name", nameOf(problem, place)),
        element("span", { class: `badge ${look}`, title: WORDS[kind] }, kind),
        solution.doubt !== undefined
          ? element("span.badge.is-wrong", { title: WORDS["right by luck"] }, "right by luck")
          : null,
        source.canTrace ? toTry : null,
      ),
      element("p.meta", historyOf(solution)),
      stepsTable(problem, solution.steps, solution),
      cardFooter(problem, solution),
    );
  }

  function historyOf({ kind, found, drawn, probability }) {
    const facts = [kind === "reference" ? "given" : `found at step ${number(found)}`];
    if (drawn)
      facts.push(
        kind === "partially_correct" ? `begins ${count(drawn, "sample")}` : `drawn ${count(drawn, "time")}`,
      );
    const pieces = [facts.join(" · ")];
    if (probability) {
      const whose = kind === "partially_correct" ? "its sample’s probability" : "probability";
      const given = probability.is_guided ? " after its prefix" : "";
      const title = `log-probability ${probability.log_prob.toFixed(2)} under the model at step ${number(probability.step)}`;
      pieces.push(
        " · ",
        element("span", { title }, `${whose} ${percent(probability.probability)}${given}`),
        hidden(`, ${title}`),
      );
    }
    return pieces;
  }

  function cardFooter(problem, solution) {
    if (solution.kind === "partially_correct") {
      const last = solution.steps.at(-1).state;
      const elsewhere = (problem.states[last]?.places ?? []).filter(
        ([place]) => problem.solutions[place] !== solution,
      );
      return elsewhere.length
        ? element("footer.note", `Right so far: reaches ${stateText(problem, last, elsewhere)}.`)
        : null;
    }
    const tick = element("span.is-right", { "aria-hidden": "true" }, "✓ ");
    if (problem.tests) return element("footer", tick, "passes the tests");
    if (solution.answer === undefined) return null;
    if (solution.doubt !== undefined)
      return element("footer.is-wrong", `Right answer by luck: ${solution.doubt}.`);
    return element("footer", tick, "answer ", code(solution.answer));
  }

  function placesText(problem, places) {
    const few = places.slice(0, 3).map(([place, length]) => `step ${length} of ${plainName(problem, place)}`);
    if (places.length > few.length) return `${few.join(", ")} and ${places.length - few.length} more`;
    return few.join(", ");
  }

  /** Steps on the left, states on the right; `rest` is what was written after the kept beginning. */
  function stepsTable(problem, steps, { deviates, failure, rest }, matching = 0) {
    const body = element("tbody");
    steps.forEach((step, place) => {
      const classes = [place === deviates ? "deviates" : "", place + 1 === matching ? "matching" : ""];
      body.append(stepRow(problem, step, place, classes, failure));
    });
    if (failure && failure.step >= steps.length) body.append(whyRow(failure, steps.length));
    if (rest && (rest.steps.length || rest.failure)) {
      body.append(element("tr.divider", element("td", { colspan: "3" }, "how the sample went on, not kept")));
      rest.steps.forEach((step, place) =>
        body.append(stepRow(problem, step, steps.length + place, ["dropped"], rest.failure)),
      );
      if (rest.failure && rest.failure.step >= steps.length + rest.steps.length)
        body.append(whyRow(rest.failure, steps.length + rest.steps.length));
    }
    const head = element(
      "tr",
      element("th.number", { scope: "col" }, hidden("number")),
      element("th.step", { scope: "col" }, "step"),
      element("th", { scope: "col" }, "state"),
    );
    return element("table.steps", element("thead", head), body);
  }

  function stepRow(problem, step, place, classes, failure) {
    const mark = classes.includes("deviates") ? ["◆ ", hidden("deviates here, step ")] : [];
    const why = !failure || place < failure.step ? "" : place === failure.step ? failure.message : "not run";
    const state = step.values ? stateOf(problem, step) : element("span.why", why);
    return element(
      "tr",
      { class: classes.join(" ").trim() || false },
      element("td.number", mark, String(place + 1)),
      element("td.step", code(step.text)),
      element(
        "td",
        state,
        classes.includes("matching") ? hidden(" the longest beginning that is right") : null,
      ),
    );
  }

  function whyRow(failure, place) {
    return element(
      "tr.dropped",
      element("td.number", String(place + 1)),
      element("td", { colspan: "2" }, element("span.why", failure.message)),
    );
  }

  function stateOf(problem, { values = [], rows, state }, { short = false } = {}) {
    const known = state === undefined ? null : problem.states[state];
    const hue = known?.hue === undefined ? "" : ` hue-${known.hue}`;
    // Of a table, a line for each row; "=" marks those that the first solution has, too.
    const listed = values.flatMap(([text, isMarked], place) => [
      !place ? "" : rows ? element("br") : ", ",
      isMarked ? element("b", rows ? "= " : "", text) : brief(text),
    ]);
    return element(
      "span",
      {
        class: `state${hue}`,
        "data-state": known ? String(state) : false,
        title: known ? stateText(problem, state) : false,
      },
      element("span.letter", known?.letter ? [hidden("state "), known.letter] : null),
      short ? null : element(rows ? "span.values.rows" : "span.values", { dir: "ltr" }, rows ? listed : ["{", listed, "}"]),
    );
  }

  /** A known state in words: its letter, if it has one, and where it is reached. */
  function stateText(problem, state, places = problem.states[state].places) {
    const { letter } = problem.states[state];
    return `${letter ? `state ${letter}, ` : ""}${placesText(problem, places)}`;
  }

  /** Pointing at a state shows where else it is reached. */
  function light(state) {
    const main = byId("main");
    main.classList.toggle("has-lit", state !== null);
    for (const chip of main.querySelectorAll(".state.is-lit")) chip.classList.remove("is-lit");
    if (state === null) return;
    for (const chip of main.querySelectorAll(`.state[data-state="${Number(state)}"]`))
      chip.classList.add("is-lit");
  }

  // Typing a program.

  function tryPart(problem) {
    const note = `It runs in the sandbox, step by step, and ends where it ${problem.ending}.`;
    return part(
      "try",
      "Try a program",
      null,
      element(
        "div.try",
        element(
          "div",
          element("label.sr", { for: "typed" }, "A program, one step per line"),
          element("textarea", {
            id: "typed",
            spellcheck: "false",
            autocapitalize: "off",
            autocomplete: "off",
            maxlength: "10000",
            placeholder: "one step to a line",
            "aria-keyshortcuts": "t",
            "aria-describedby": "try-note",
            on: {
              input: () => {
                clearTimeout(latest.typing);
                latest.typing = setTimeout(runTyped, TYPING_PAUSE);
              },
            },
          }),
        ),
        element(
          "div.card",
          { id: "typed-result", role: "status", "aria-live": "polite" },
          element("p.empty", "Its states and verdict appear here."),
        ),
      ),
      element("p.note", { id: "try-note" }, note),
    );
  }

  function type(text) {
    const field = byId("typed");
    field.value = text;
    field.focus({ preventScroll: true });
    field.setSelectionRange(text.length, text.length);
    byId("try").scrollIntoView({ behavior: "smooth", block: "nearest" });
    runTyped();
  }

  async function runTyped() {
    const signal = newest("trace");
    const [problem, text, result] = [shown.problem, byId("typed").value, byId("typed-result")];
    if (!text.trim()) {
      result.replaceChildren(element("p.empty", "Its states and verdict appear here."));
      return;
    }
    try {
      const view = await source.trace(problem.key, text, signal);
      if (!signal.aborted) result.replaceChildren(...typedParts(problem, view));
    } catch (error) {
      if (error.name !== "AbortError") result.replaceChildren(element("p.empty.is-wrong", error.message));
    }
  }

  function typedParts(problem, view) {
    const look = view.is_right ? "is-right" : view.matching ? "is-partial" : "is-wrong";
    const footer = [];
    if (problem.tests) footer.push(view.is_right ? "Passes the tests. " : "Does not pass the tests. ");
    else if (view.answer !== undefined)
      footer.push("answer ", code(view.answer), view.is_right ? " is right. " : " is wrong. ");
    if (view.same_as !== undefined) footer.push(`This is ${plainName(problem, view.same_as)}. `);
    else if (view.matching)
      footer.push(
        `Longest matching prefix: ${count(view.matching, "step")}, reaching ${stateText(problem, stateAt(view))}.`,
      );
    else if (!view.is_right) footer.push("No prefix reaches a known state.");
    return [
      element("header", element("span", { class: `verdict ${look}` }, VERDICTS[view.verdict])),
      element(
        "p.meta",
        view.deviates === null || !problem.solutions.length
          ? ""
          : `deviates from ${plainName(problem, 0)} at step ${view.deviates + 1}`,
      ),
      view.steps.length || view.failure
        ? stepsTable(problem, view.steps, view, view.is_right ? 0 : view.matching)
        : null,
      element("footer", footer),
    ].filter(Boolean);
  }

  const stateAt = (view) => view.steps[view.matching - 1].state;

  // The tree of shared prefixes.

  function treePart(problem) {
    if (problem.solutions.length < 2) return null;
    const root = element("p.root", "start");
    return part(
      "tree",
      "Tree",
      "Solutions part where their steps differ.",
      element(
        "div.tree",
        { tabindex: "0", role: "group", "aria-label": "Tree of solutions" },
        root,
        branchList(problem, problem.tree),
      ),
    );
  }

  function branchList(problem, branches) {
    return element(
      "ul",
      branches.map((branch) => {
        const steps = problem.solutions[branch.solution].steps.slice(
          branch.start,
          branch.start + branch.length,
        );
        const lines = steps.map((step) =>
          element("div.line", stateOf(problem, step, { short: true }), code(step.text)),
        );
        if (branch.leaf !== undefined) lines.at(-1).append(leafButton(problem, branch.leaf));
        return element("li", lines, branch.branches.length ? branchList(problem, branch.branches) : null);
      }),
    );
  }

  function leafButton(problem, place) {
    const kind = {
      reference: "is-reference",
      fully_correct: "is-right",
      partially_correct: "is-partial",
    }[problem.solutions[place].kind];
    const target = () => {
      const found = byId(`solution-${place}`);
      found.scrollIntoView({ behavior: "smooth", block: "center" });
      for (const other of document.querySelectorAll(".card.is-lit")) other.classList.remove("is-lit");
      found.classList.add("is-lit");
    };
    return element(
      "button",
      { type: "button", class: `leaf badge ${kind}`, on: { click: target } },
      nameOf(problem, place),
    );
  }

  // Samples.

  function evaluationPart(problem) {
    const { evaluation } = problem;
    if (!evaluation) return null;
    const choose = element(
      "select",
      { "aria-label": "Evaluation", on: { change: (event) => go({ step: event.target.value }) } },
      evaluation.names.map((name) =>
        element("option", { value: name, selected: name === evaluation.name }, evaluationName(name)),
      ),
    );
    const total = `${number(evaluation.passed)} of ${number(evaluation.drawn)} right`;
    const which = evaluation.names.length > 1 ? [choose] : [evaluationName(evaluation.name)];
    return part(
      "evaluation",
      "Evaluation samples",
      null,
      element("p.legend", total, " ", ...which),
      groupList(problem, evaluation, evaluationLabel),
    );
  }

  function evaluationLabel(group) {
    const reason = group.result.replace(/^failed: /, "");
    const label = group.is_right ? "✓ right" : group.failure ? "✕ fails" : `✕ ${reason}`;
    const notes = [
      !group.is_right && group.matching ? `right up to step ${group.matching}` : null,
      group.pass1 ? "also at low temperature" : null,
    ];
    return [label, group.is_right ? "is-right" : "is-wrong", notes.filter(Boolean).join(" · ")];
  }

  function samplesPart(problem) {
    const { samples } = problem;
    if (!samples) return null;
    const verdicts = Object.keys(VERDICTS).filter((verdict) => samples.verdicts[verdict]);
    const bar = element(
      "div.shares",
      { "aria-hidden": "true" },
      verdicts.map((verdict) => {
        const share = element("span", { class: `v-${verdict}` });
        share.style.flexGrow = samples.verdicts[verdict];
        return share;
      }),
    );
    const legend = element(
      "ul.legend",
      verdicts.map((verdict) =>
        element(
          "li",
          { class: `v-${verdict}` },
          `${VERDICTS[verdict]}: ${number(samples.verdicts[verdict])}`,
        ),
      ),
    );
    const sum = (beginning) =>
      verdicts
        .filter((verdict) => verdict.startsWith(beginning))
        .reduce((total, verdict) => total + samples.verdicts[verdict], 0);
    const note = [
      `${number(sum("new_"))} `,
      word("new"),
      `, ${number(sum("known_"))} `,
      word("known"),
      `, ${number(samples.drawn - sum("new_") - sum("known_"))} neither.`,
    ];
    return part(
      "samples",
      `Self-samples (${number(samples.drawn)})`,
      note,
      bar,
      legend,
      groupList(problem, samples, sampleLabel),
    );
  }

  /** The verdicts on equal samples: new when it was first drawn, known from then on. */
  function sampleLabel(group) {
    const counts = Object.entries(group.verdicts).sort((a, b) => b[1] - a[1]);
    const often = counts[0][0];
    const label =
      counts.length > 1
        ? counts.map(([verdict, times]) => `${number(times)} ${VERDICTS[verdict]}`).join("; ")
        : VERDICTS[often];
    const look = often.endsWith("fully_correct")
      ? "is-right"
      : often.endsWith("partially_correct") || often === "too_long"
        ? "is-partial"
        : "is-wrong";
    const sign = { "is-right": "✓", "is-partial": "◐", "is-wrong": "✕" }[look];
    const when =
      group.first === group.last
        ? `step ${number(group.first)}`
        : `steps ${number(group.first)}–${number(group.last)}`;
    return [
      `${sign} ${label}`,
      look,
      group.guided ? `${when}, ${number(group.guided)} guided` : when,
    ];
  }

  function groupList(problem, { groups, others, drawn }, labelOf) {
    const item = (group) => groupItem(problem, group, drawn, labelOf);
    const list = element("ol.groups", groups.slice(0, FEW_GROUPS).map(item));
    const rarer = others ? element("p.note.more", `and ${count(others, "rarer one")}`) : null;
    if (groups.length <= FEW_GROUPS) return element("div", list, rarer);
    const all = () => {
      more.remove();
      list.append(...groups.slice(FEW_GROUPS).map(item));
      list.children[FEW_GROUPS].querySelector("summary").focus();
    };
    const more = element(
      "button",
      { type: "button", class: "more", on: { click: all } },
      `Show ${number(groups.length - FEW_GROUPS)} more`,
    );
    return element("div", list, more, rarer);
  }

  function groupItem(problem, group, drawn, labelOf) {
    const [label, look, note] = labelOf(group);
    const often = element("span.count", `${number(group.count)}×`);
    often.style.setProperty("--share", `${group.count > 1 ? (100 * group.count) / drawn : 0}%`);
    const preview = group.steps.map((step) => step.text).join("; ") || group.written || "";
    const details = element(
      "details",
      element(
        "summary",
        often,
        element(
          "span.label",
          element("span", { class: look }, label),
          note ? element("span.note", ` · ${note}`) : null,
        ),
        element("code.preview", { dir: "ltr" }, preview.replaceAll("\n", " ")),
      ),
    );
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(groupInside(problem, group));
    });
    return element("li", details);
  }

  function groupInside(problem, group) {
    const { steps, matching, failure, written, same_as: same } = group;
    const remarks = [];
    if (same !== undefined) remarks.push(`This is ${plainName(problem, same)}.`);
    else if (!group.is_right && matching)
      remarks.push(`Right up to step ${matching}: ${stateText(problem, stateAt(group))}.`);
    else if (!group.is_right && problem.solutions.length) remarks.push("No prefix reaches a known state.");
    return element(
      "div.inside",
      element("p.note", remarks),
      steps.length || failure
        ? stepsTable(problem, steps, group, group.is_right || same !== undefined ? 0 : matching)
        : null,
      written === undefined ? null : element("p.note", "As written:"),
      written === undefined ? null : element("code.written", { dir: "ltr" }, written),
    );
  }

  // From the keyboard.

  function closeProblem() {
    const open = readAddress().open;
    if (isNarrow()) go({ open: "", step: "" });
    const place = links().findIndex((link) => link.dataset.key === open);
    focusEntry(Math.max(place, 0));
  }

  function onListKey(event) {
    const place = links().indexOf(document.activeElement);
    const moves = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: Infinity };
    if (event.key in moves) {
      if (event.key === "ArrowUp" && place === 0) byId("text").focus();
      else focusEntry(moves[event.key]);
    } else if (event.key === "PageDown" && !byId("page-after").disabled) byId("page-after").click();
    else if (event.key === "PageUp" && !byId("page-before").disabled) byId("page-before").click();
    else return;
    event.preventDefault();
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    const field = event.target.closest?.("input, textarea, select");
    if (event.key === "Escape") {
      if (field?.id === "text" && field.value) {
        field.value = "";
        go({ text: "", page: "" }, { replacing: true });
      } else closeProblem();
    } else if (field?.id === "text" && event.key === "ArrowDown") focusEntry(0);
    else if (field) return;
    else if (event.key === "/") byId("text").select();
    else if (event.key === "?") byId("keys").showModal();
    else if (event.key === "j") openNeighbour(1);
    else if (event.key === "k") openNeighbour(-1);
    else if (event.key === "t" && byId("typed")) {
      byId("try").scrollIntoView({ block: "nearest" });
      byId("typed").focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  }

  function listen() {
    const form = byId("query");
    const changed = () => {
      const fields = Object.fromEntries(
        ["text", ...SHOWN_FILTERS].map((name) => [name, form.elements[name].value.trim()]),
      );
      go({ ...fields, page: "" }, { replacing: true });
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      changed();
      focusEntry(0);
    });
    form.addEventListener("input", (event) => {
      clearTimeout(latest.search);
      latest.search = setTimeout(changed, event.target.tagName === "SELECT" ? 0 : 120);
    });
    form.addEventListener("reset", () => setTimeout(changed));
    for (const id of ["page-before", "page-after"])
      byId(id).addEventListener("click", (event) => go({ page: event.currentTarget.dataset.page }));
    byId("entries").addEventListener("keydown", onListKey);
    byId("news").addEventListener("click", refresh);
    byId("help").addEventListener("click", () => byId("keys").showModal());
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      byId("main").focus();
    });
    const main = byId("main");
    main.addEventListener("pointerover", (event) =>
      light(event.target.closest("[data-state]")?.dataset.state ?? null),
    );
    main.addEventListener("pointerleave", () => light(null));
    document.addEventListener("keydown", onKey);
    addEventListener("hashchange", () => follow());
  }

  async function start() {
    listen();
    byId("filters").open = !isNarrow() && innerHeight > 700;
    try {
      await loadRun();
    } catch (error) {
      byId("main").replaceChildren(element("p.message", { role: "alert" }, error.message));
      return;
    }
    await follow({ anew: true });
    watch();
  }

  start();
})();
