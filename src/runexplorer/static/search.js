"use strict";
// Finding problems: the list as objects, and what of it fits a query, in order and by page.
globalThis.partwaySearch = (() => {
  const PAGE_SIZE = 50;

  /** A list as it is handed out, each problem an object: how it stands is spread, in the other run is `other`. */
  function entriesOf({ standing, rows }) {
    const named = (numbers) => Object.fromEntries(standing.map((name, place) => [name, numbers[place]]));
    return rows.map(([split, line, id, question, here, there]) => ({
      key: `${split}/${line}`,
      split,
      id,
      question,
      ...named(here),
      other: there && named(there),
    }));
  }

  const kept = (standing) => standing.fcs + standing.pcs;
  const isSolved = (standing) => standing && standing.passed > 0;
  const isUnsolved = (standing) => standing && standing.drawn > 0 && standing.passed === 0;
  const rate = (entry, without) => (entry.drawn ? entry.passed / entry.drawn : without);
  const hasBuffer = (entry) => entry.split === "train";
  const TESTS = {
    partial: { yes: (e) => e.pcs > 0, no: (e) => hasBuffer(e) && e.pcs === 0 },
    beyond: { luck: (e) => e.doubted > 0 },
    evaluation: { solved: isSolved, unsolved: isUnsolved },
    compared: {
      gained: (e) => isSolved(e) && isUnsolved(e.other),
      lost: (e) => isUnsolved(e) && isSolved(e.other),
      more: (e) => e.other && kept(e) > kept(e.other),
      fewer: (e) => e.other && kept(e) < kept(e.other),
    },
  };
  // What was never evaluated comes last, whichever way it is ordered.
  const ORDERS = {
    solutions: (e) => -kept(e),
    found: (e) => -e.found,
    hardest: (e) => rate(e, 2),
    easiest: (e) => -rate(e, -1),
  };

  /** What all must occur in a problem: words, and phrases in quotation marks, in any case. */
  const wordsOf = (text) =>
    [...text.toLowerCase().matchAll(/"([^"]+)"?|(\S+)/g)].map(([, phrase, word]) => phrase || word);

  /** The entries that fit, in the order asked for; an empty field of the query looks for anything. */
  function search(entries, query) {
    const tests = Object.entries(TESTS).flatMap(([name, choices]) => choices[query[name]] ?? []);
    if (query.split) tests.push((e) => e.split === query.split);
    if (query.least || query.most) {
      const [least, most] = [Number(query.least || 0), query.most ? Number(query.most) : Infinity];
      tests.push((e) => hasBuffer(e) && least <= kept(e) && kept(e) <= most);
    }
    const words = wordsOf(query.text || "");
    // Texts come last: only what the numbers let through is searched.
    if (words.length)
      tests.push((e) => {
        e.lowered ??= `${e.id}\n${e.question}`.toLowerCase();
        return words.every((word) => e.lowered.includes(word));
      });
    const found = entries.filter((e) => tests.every((test) => test(e)));
    const order = ORDERS[query.order];
    // Stable: equal ones stay in the order of the files.
    return order ? found.sort((a, b) => order(a) - order(b)) : found;
  }

  /** One page of what was found, the last one if there are fewer pages. */
  function pageOf(found, wanted) {
    const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE));
    const page = Math.min(Math.max(Number(wanted) || 1, 1), pages);
    const first = (page - 1) * PAGE_SIZE;
    const rows = found.slice(first, first + PAGE_SIZE);
    const problems = new Set(found.map((e) => `${e.id}\n${e.question}`)).size; // a file of each split may have it
    return { problems, total: found.length, page, pages, first: found.length ? first + 1 : 0, rows };
  }

  return { entriesOf, search, pageOf };
})();
