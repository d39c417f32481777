// Addresses: which place of the page does a URL name?
//
// `#/VIEW/TARGET?NAME=VALUE`, for example `#/skills/weather?q=rain`. Every view is made by `make(app, panel)`, which
// returns an object with these methods, all optional:
//
//   enter(route)  the view is shown, or its address changed while it was shown. `route` is
//                 `{ view, target, query, moved }`: `target` is undefined where the address names none, `query` is an
//                 object of strings, `moved` is false when only the connection is new. May return a promise; the
//                 scroll position is restored when it resolves.
//   leave()       another view is shown now.
//   away()        the connection is lost.
//   fresh()       the connection or the agent is new, so everything that was loaded is stale.
//
// A view tells where the person is with `app.here(view, { target, query })`, which changes the address and adds no step to
// the history. It sends the person elsewhere with `app.go(view, { target, query })`, or with a link to
// `href(view, target, query)`. Elements with `data-scroll="NAME"` get their scroll position back after a refresh.

/** The address of a place. */
export function href(view, target, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given).toString();
  return `#/${view}${target ? `/${encodeURIComponent(target)}` : ""}${search && `?${search}`}`;
}

/** The place that an address names. An address of the form `#VIEW` is understood as well. */
export function parse(hash) {
  const [, path, search] = /^#?\/?([^?]*)(?:\?(.*))?$/s.exec(hash) ?? [];
  const [view = "", ...rest] = (path ?? "").split("/");
  return { view, target: decoded(rest.join("/")) || undefined, query: Object.fromEntries(new URLSearchParams(search ?? "")) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Where each part of `panel` that scrolls stands. */
export function scrolled(panel) {
  const parts = [["", panel], ...[...panel.querySelectorAll("[data-scroll]")].map((node) => [node.dataset.scroll, node])];
  return Object.fromEntries(parts.filter(([, node]) => node.scrollTop > 0).map(([name, node]) => [name, Math.round(node.scrollTop)]));
}

/** Scrolls each part of `panel` to where it stood. */
export function scrollTo(panel, places) {
  for (const [name, top] of Object.entries(places ?? {})) {
    const node = name ? [...panel.querySelectorAll("[data-scroll]")].find((one) => one.dataset.scroll === name) : panel;
    if (node) node.scrollTop = top;
  }
}
