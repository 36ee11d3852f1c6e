import { lexer, type MarkedToken, type Token, type Tokens } from 'marked';
import type { ComponentChildren, VNode } from 'preact';
import { memo } from '../../shared/memo.ts';

/** Most characters of a text that is formatted, because formatting time grows with the length. Longer texts are shown as written. */
const MAX_CHARS = 20_000;
/** Most levels of quotes and lists that are drawn; deeper ones are shown as text. */
const MAX_DEPTH = 16;

/** See `Markdown`. */
export const Formatted = memo(function Formatted({ text }: { text: string }) {
  const tokens = tokensOf(text);
  if (tokens === null) return <p class="words-plain">{text}</p>;
  return <div class="words-formatted">{blocks(tokens, 0)}</div>;
});

/** Null if the text is too long or too deep to be formatted. */
function tokensOf(text: string): Token[] | null {
  if (text.length > MAX_CHARS) return null;
  try {
    return lexer(text, { gfm: true, breaks: true });
  } catch {
    return null;
  }
}

type Draw<T> = (token: T, depth: number) => ComponentChildren;
type Drawings = { [T in MarkedToken['type']]?: Draw<Extract<MarkedToken, { type: T }>> };

const BLOCKS: Drawings = {
  space: () => null,
  def: () => null,
  heading: ({ tokens }, depth) => <p class="words-heading">{inline(tokens, depth)}</p>,
  paragraph: ({ tokens }, depth) => <p>{inline(tokens, depth)}</p>,
  text: ({ tokens, text }, depth) => (tokens ? inline(tokens, depth) : text),
  code: ({ text }) => (
    <pre class="words-code" tabIndex={0}>
      <code>{text}</code>
    </pre>
  ),
  blockquote: ({ tokens }, depth) => <blockquote>{blocks(tokens, depth + 1)}</blockquote>,
  hr: () => <hr />,
  list,
  table,
};

const SPANS: Drawings = {
  strong: ({ tokens }, depth) => <strong>{inline(tokens, depth)}</strong>,
  em: ({ tokens }, depth) => <em>{inline(tokens, depth)}</em>,
  del: ({ tokens }, depth) => <del>{inline(tokens, depth)}</del>,
  codespan: ({ text }) => <code>{text}</code>,
  br: () => <br />,
  link: ({ href, tokens }, depth) => link(href, inline(tokens, depth)),
  image: ({ href, text }) => link(href, text || href),
  escape: ({ text }) => text,
  text: ({ tokens, text }, depth) => (tokens ? inline(tokens, depth) : text),
};

/** A kind of token without a drawing, such as HTML, is shown as written. */
function draw(drawings: Drawings, token: Token, depth: number): ComponentChildren {
  const one = drawings[token.type as MarkedToken['type']] as Draw<Token> | undefined;
  return one && depth <= MAX_DEPTH ? one(token, depth) : token.raw;
}

function blocks(tokens: readonly Token[], depth: number): ComponentChildren {
  return tokens.map((token) => draw(BLOCKS, token, depth));
}

function inline(tokens: readonly Token[], depth: number): ComponentChildren {
  return tokens.map((token) => draw(SPANS, token, depth + 1));
}

function list({ ordered, start, items }: Tokens.List, depth: number): VNode {
  const content = items.map((item) => (
    <li>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label="done" />}{' '}
      {blocks(
        item.tokens.filter(({ type }) => type !== 'checkbox'),
        depth + 1,
      )}
    </li>
  ));
  return ordered ? <ol start={start === '' ? 1 : start}>{content}</ol> : <ul>{content}</ul>;
}

function table({ header, rows }: Tokens.Table, depth: number): VNode {
  return (
    <div class="words-table" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {header.map(({ tokens }) => (
              <th>{inline(tokens, depth)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells) => (
            <tr>
              {cells.map(({ tokens }) => (
                <td>{inline(tokens, depth)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const SAFE = /^(?:https?:\/\/|mailto:)/i;

function link(href: string, content: ComponentChildren): VNode {
  if (!SAFE.test(href)) return <span title={href}>{content}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {content}
    </a>
  );
}
