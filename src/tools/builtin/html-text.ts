/**
 * Comments, what is not for readers, tags, and other markup. Whatever has begun matches up to the end of the page if need
 * be: an alternative that could fail late would cost the square of a page that is made for it.
 */
const MARKUP =
  /<!--[\s\S]*?(?:-->|$)|<(?:(script|style|noscript|template|svg)\b)[^>]*(?:>[\s\S]*?(?:<\/\1[^>]*>?|$)|$)|<(\/?)([a-z][a-z0-9]*)([^>]*)>?|<[!?/][^>]*>?/gi;
const BLOCK =
  /^(?:address|article|aside|blockquote|br|caption|d[dlt]|details|div|fieldset|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|option|p|pre|section|summary|table|title|tr|ul)$/;
const CELL = /^t[dh]$/;
const HREF = /\bhref\s*=\s*(?:"([^"]{1,300})"|'([^']{1,300})'|([^\s"'>]{1,300}))/i;
const ENTITY = /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,8}));/gi;
const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  mdash: '—',
  ndash: '–',
  hellip: '…',
};

/** A page as lines of text, with the targets of its links in brackets. */
export function htmlText(html: string): string {
  const parts: string[] = [];
  const target: { href: string | null } = { href: null };
  let isListing = false;
  let at = 0;
  const take = (end: number): void => {
    const text = html.slice(at, end);
    parts.push(decodeEntities(isListing ? text : text.replace(/\s+/g, ' ')));
  };
  for (const match of html.matchAll(MARKUP)) {
    take(match.index);
    at = match.index + match[0].length;
    const [, , slash = '', name = '', rest = ''] = match;
    const element = name.toLowerCase();
    const opens = slash === '';
    if (element === 'pre') isListing = opens;
    if (element === 'a') parts.push(followLink(target, opens ? rest : null));
    else if (CELL.test(element)) parts.push(' ');
    else if (BLOCK.test(element)) parts.push(element === 'li' && opens ? '\n- ' : '\n');
  }
  take(html.length);
  return tidy(parts.join(''));
}

/** Between its tags a link is its words; behind them stands where it goes. */
function followLink(target: { href: string | null }, opening: string | null): string {
  const { href } = target;
  const [, double, single, bare] = (opening !== null && HREF.exec(opening)) || [];
  target.href = double ?? single ?? bare ?? null;
  return opening === null && href !== null && !href.startsWith('#') ? ` [${decodeEntities(href)}]` : '';
}

function decodeEntities(text: string): string {
  return text.replace(ENTITY, (whole, hex?: string, decimal?: string, name?: string) => {
    if (name !== undefined) return Object.hasOwn(NAMED, name) ? (NAMED[name] ?? whole) : whole;
    const code = Number.parseInt(hex ?? decimal ?? '', hex === undefined ? 10 : 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code).toWellFormed() : whole;
  });
}

/** No spaces at the ends of lines, none at the start of words, at most one empty line in a row. */
function tidy(text: string): string {
  const lines = text.split('\n').map((line) => (/^ \S/.test(line) ? line.trim() : line.trimEnd()));
  return lines
    .filter((line, index) => line !== '' || lines[index - 1] !== '')
    .join('\n')
    .trim();
}
