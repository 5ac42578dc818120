"use strict";
// Small charts for the explorer's overview: lines over training steps, and shares that add up to all.
window.partwayCharts = (() => {
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [340, 180, 40, 12, 8, 24];
  const MOST_MARKED = 15;

  function svg(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  /** The next of 1, 1.5, 2, 3, ... above a value: where an axis may end. */
  function roundedUp(value) {
    const power = 10 ** Math.floor(Math.log10(value || 1));
    return [1, 1.5, 2, 3, 4, 6, 8, 10].map((factor) => factor * power).find((end) => end >= value);
  }

  const brief = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

  /** Axes that begin at 0, and functions from numbers to places on them. */
  function frame(lastStep, end, unit) {
    const across = (step) => LEFT + ((WIDTH - LEFT - RIGHT) * step) / (lastStep || 1);
    const up = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / end;
    const text = (x, y, content, anchor) => svg("text", { x, y, "text-anchor": anchor }, content);
    const axes = [0, 0.5, 1].map((part) => [
      svg("line", { class: "rule", x1: LEFT, x2: WIDTH - RIGHT, y1: up(part * end), y2: up(part * end) }),
      text(LEFT - 5, up(part * end) + 4, brief(part * end) + unit, "end"),
    ]);
    axes.push([
      text(LEFT, HEIGHT - 7, "0", "middle"),
      text(WIDTH - RIGHT, HEIGHT - 7, `step ${lastStep.toLocaleString("en")}`, "end"),
    ]);
    return { across, up, axes: axes.flat() };
  }

  const figure = (element, title, legend, described, drawn) =>
    element(
      "figure.chart",
      element("figcaption", title),
      element("ul.legend", legend),
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": described }, ...drawn),
    );

  function lines({ title, is_share: isShare, series }, element) {
    const scale = isShare ? 100 : 1;
    const unit = isShare ? "%" : "";
    const points = series.flatMap((one) => one.points);
    const top = Math.max(...points.map(([, value]) => scale * value), 0);
    const end = isShare ? Math.min(100, Math.max(roundedUp(top), 10)) : roundedUp(top);
    const { across, up, axes } = frame(Math.max(...points.map(([step]) => step)), end, unit);
    const drawn = series.flatMap((one) => {
      const places = one.points.map(([step, value]) => [across(step), up(Math.max(0, scale * value))]);
      const marks = places.length <= MOST_MARKED ? places : [];
      return [
        svg("polyline", { class: `line c-${one.hue}`, points: places.map((place) => place.join()).join(" ") }),
        ...marks.map(([cx, cy]) => svg("circle", { class: `mark c-${one.hue}`, cx, cy, r: 2.6 })),
      ];
    });
    const last = (one) => brief(scale * one.points.at(-1)[1]) + unit;
    const words = series.map((one) => `${one.name} ${last(one)}`);
    const legend = series.map((one, place) => element("li", { class: `c-${one.hue}` }, words[place]));
    return figure(element, title, legend, `${title}, at the end: ${words.join(", ")}`, [...axes, ...drawn]);
  }

  function shares({ edges, shares: parts, counts }, names, element) {
    const { across, up, axes } = frame(edges.at(-1), 100, "%");
    const verdicts = Object.keys(parts);
    const bottom = edges.slice(1).map(() => 0);
    const drawn = verdicts.flatMap((verdict) =>
      parts[verdict].map((share, place) => {
        const low = bottom[place];
        bottom[place] += 100 * share;
        const [x, y] = [across(edges[place]), up(Math.min(100, bottom[place]))];
        const size = { width: across(edges[place + 1]) - x + 0.3, height: Math.max(0, up(low) - y) };
        return svg("rect", { class: `v-${verdict}`, x, y, ...size });
      }),
    );
    const words = verdicts.map((verdict) => `${names[verdict]}: ${counts[verdict].toLocaleString("en")}`);
    const legend = verdicts.map((verdict, place) => element("li", { class: `v-${verdict}` }, words[place]));
    const title = "Verdicts on self-samples";
    return figure(element, title, legend, `${title}: ${words.join(", ")}`, [...axes, ...drawn]);
  }

  return { lines, shares };
})();
