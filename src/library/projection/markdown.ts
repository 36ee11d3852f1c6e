import { Lexer, type MarkedToken, type Token, type Tokens } from './markdown-lexer.ts';

/** A part of a formatted text: words, or an element of a closed set with attributes that no text can choose. */
export type Formatted = string | FormattedElement;
export interface FormattedElement {
  tag: Tag;
  attributes: Readonly<Record<string, string | number | true>>;
  content: readonly Formatted[];
}
type Tag =
  | 'p'
  | 'pre'
  | 'code'
  | 'blockquote'
  | 'hr'
  | 'br'
  | 'ul'
  | 'ol'
  | 'li'
  | 'input'
  | 'strong'
  | 'em'
  | 'del'
  | 'a'
  | 'span'
  | 'div'
  | 'table'
  | 'thead'
  | 'tbody'
  | 'tr'
  | 'th'
  | 'td';

/** Most characters of a text that is formatted, because formatting time grows with the length. Longer texts are shown as written. */
const MAX_CHARS = 20_000;
/** Most levels of quotes and lists that are drawn; deeper ones are shown as text. */
const MAX_DEPTH = 16;
/** A line with more levels of quotes and lists: the time to read them grows with the square of their number. */
const TOO_DEEP = /^[ \t]*(?:(?:>|[-*+][ \t]|\d{1,9}[.)])[ \t]*){17}/m;
/** Marks within a paragraph. The time to pair them grows with the third power of their number: `*a_`, 6,600 times, takes 20 s. */
const MARKS = /[*_~[\]`<!]/g;
const MAX_MARKS = 300;

/**
 * A text with its author's formatting, in Markdown. Safe by construction: what is drawn are these parts, never HTML of the text.
 * Raw HTML in it is text, images are links, and links lead only to web and mail addresses. Null if it is too long or too deep to
 * be formatted.
 */
export function formatMarkdown(text: string): readonly Formatted[] | null {
  if (text.length > MAX_CHARS || TOO_DEEP.test(text)) return null;
  try {
    return blocks(tokensOf(text.replaceAll(/\r\n?/g, '\n')), 0);
  } catch {
    // The library gives up with an error.
    return null;
  }
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  const lexer = new Lexer({ gfm: true, breaks: true });
  lexer.blockTokens(text, tokens);
  for (const { src, tokens: parts } of lexer.inlineQueue) {
    const marks = src.match(MARKS)?.length ?? 0;
    if (marks > MAX_MARKS) parts.push({ type: 'text', raw: src, text: src });
    else lexer.inlineTokens(src, parts);
  }
  return tokens;
}

type Draw<T> = (token: T, depth: number) => readonly Formatted[];
type Drawings = { [T in MarkedToken['type']]?: Draw<Extract<MarkedToken, { type: T }>> };

const BLOCKS: Drawings = {
  space: () => [],
  def: () => [],
  heading: ({ tokens }, depth) => [element('p', inline(tokens, depth), { class: 'words-heading' })],
  paragraph: ({ tokens }, depth) => [element('p', inline(tokens, depth))],
  text: ({ tokens, text }, depth) => (tokens ? inline(tokens, depth) : [text]),
  code: ({ text }) => [element('pre', [element('code', [text])], { class: 'words-code', tabindex: 0 })],
  blockquote: ({ tokens }, depth) => [element('blockquote', blocks(tokens, depth + 1))],
  hr: () => [element('hr', [])],
  list,
  table,
};

const SPANS: Drawings = {
  strong: ({ tokens }, depth) => [element('strong', inline(tokens, depth))],
  em: ({ tokens }, depth) => [element('em', inline(tokens, depth))],
  del: ({ tokens }, depth) => [element('del', inline(tokens, depth))],
  codespan: ({ text }) => [element('code', [text])],
  br: () => [element('br', [])],
  link: ({ href, tokens }, depth) => [link(href, inline(tokens, depth))],
  image: ({ href, text }) => [link(href, [text || href])],
  escape: ({ text }) => [text],
  text: ({ tokens, text }, depth) => (tokens ? inline(tokens, depth) : [text]),
};

/** A kind of token without a drawing, such as HTML, is shown as written. */
function draw(drawings: Drawings, token: Token, depth: number): readonly Formatted[] {
  const one = drawings[token.type as MarkedToken['type']] as Draw<Token> | undefined;
  return one && depth <= MAX_DEPTH ? one(token, depth) : [token.raw];
}

function blocks(tokens: readonly Token[], depth: number): readonly Formatted[] {
  return tokens.flatMap((token) => draw(BLOCKS, token, depth));
}

function inline(tokens: readonly Token[], depth: number): readonly Formatted[] {
  return tokens.flatMap((token) => draw(SPANS, token, depth + 1));
}

function element(
  tag: Tag,
  content: readonly Formatted[],
  attributes: FormattedElement['attributes'] = {},
): FormattedElement {
  return { tag, attributes, content };
}

function list({ ordered, start, items }: Tokens.List, depth: number): readonly Formatted[] {
  const drawn = items.map(({ task, checked, tokens }) => {
    const box = { type: 'checkbox', disabled: true, 'aria-label': 'done' } as const;
    const words = blocks(
      tokens.filter(({ type }) => type !== 'checkbox'),
      depth + 1,
    );
    if (!task) return element('li', words);
    return element('li', [element('input', [], checked ? { ...box, checked: true } : box), ' ', ...words]);
  });
  return [ordered ? element('ol', drawn, { start: start === '' ? 1 : start }) : element('ul', drawn)];
}

function table({ header, rows }: Tokens.Table, depth: number): readonly Formatted[] {
  const row = (tag: 'th' | 'td', cells: readonly Tokens.TableCell[]) =>
    element(
      'tr',
      cells.map(({ tokens }) => element(tag, inline(tokens, depth))),
    );
  const drawn = element('table', [
    element('thead', [row('th', header)]),
    element(
      'tbody',
      rows.map((cells) => row('td', cells)),
    ),
  ]);
  return [
    element('div', [drawn], { class: 'words-table', tabindex: 0, role: 'group', 'aria-label': 'Table' }),
  ];
}

const SAFE = /^(?:https?:\/\/|mailto:)/i;

function link(href: string, content: readonly Formatted[]): Formatted {
  if (!SAFE.test(href)) return element('span', content, { title: href });
  return element('a', content, { href, target: '_blank', rel: 'noopener noreferrer nofollow' });
}
