/** What the page may do with this server: `token` asks its user for the server's token before anything else. */
export type PageMode = 'read-only' | 'write' | 'token';

export interface PageFacts {
  /** Where the app is mounted, with a slash at both ends. */
  base: string;
  /** What the page sends with its writes; empty where it may not write, or has to be told. */
  token: string;
  mode: PageMode;
  version: string;
}

/** Fills the places that `web/index.html` keeps for what only the running server knows. */
export function fillPage(html: string, { base, token, mode, version }: PageFacts): string {
  let filled = setAttribute(html, '<base href="', escapeHtml(base));
  for (const [name, value] of Object.entries({ token, mode, version })) {
    filled = setAttribute(filled, `<meta name="troupe-${name}" content="`, escapeHtml(value));
  }
  return filled;
}

/** Shown in a checkout where nobody has built the page. */
export function missingPage(base: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <base href="${escapeHtml(base)}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Troupe</title>
  </head>
  <body>
    <h1>The page is not built</h1>
    <p>The runtime and its API are running. To see the page, run <code>npm run build:web</code> in the checkout and load this again.</p>
    <p><a href="api/openapi.json">The API</a></p>
  </body>
</html>
`;
}

/** The value that `opening` opens, up to its quotation mark. */
function setAttribute(html: string, opening: string, value: string): string {
  const at = html.indexOf(opening);
  const end = html.indexOf('"', at + opening.length);
  return at < 0 || end < 0 ? html : html.slice(0, at + opening.length) + value + html.slice(end);
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (mark) => ENTITIES[mark] ?? mark);
}
