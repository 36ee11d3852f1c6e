import { lexer, type MarkedToken, type Token, type Tokens } from 'marked';
import type { ComponentChildren, VNode } from 'preact';
import { memo } from '../../shared/memo.ts';

/** Characters above which a text is shown as it is: formatting takes time that grows with it. */
const MAX_CHARS = 20_000;
/** Levels of quotes and lists that are drawn; what is deeper is shown as text. */
const MAX_DEPTH = 16;

/**
 * A text as formatted by its author. Safe by construction: it is drawn from tokens, never as HTML; raw HTML in it is shown
 * as text, images as links, and links lead to web and mail addresses only.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const tokens = tokensOf(text);
  if (tokens === null) return <p class="words-plain">{text}</p>;
  return <div class="words-formatted">{blocks(tokens, 0)}</div>;
});

/** Null for what cannot be formatted: it is too long or too deep. */
function tokensOf(text: string): Token[] | null {
  if (text.length > MAX_CHARS) return null;
  try {
    return lexer(text, { gfm: true, breaks: true });
  } catch {
    return null;
  }
}

function blocks(tokens: readonly Token[], depth: number): ComponentChildren {
  return tokens.map((token) => block(token as MarkedToken, depth));
}

function block(token: MarkedToken, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading':
      return <p class="words-heading">{inline(token.tokens, depth)}</p>;
    case 'paragraph':
      return <p>{inline(token.tokens, depth)}</p>;
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : token.text;
    case 'code':
      return (
        <pre class="words-code" tabIndex={0}>
          <code>{token.text}</code>
        </pre>
      );
    case 'blockquote':
      return <blockquote>{blocks(token.tokens, depth + 1)}</blockquote>;
    case 'hr':
      return <hr />;
    case 'list':
      return list(token, depth);
    case 'table':
      return table(token, depth);
    default:
      return <p class="words-plain">{token.raw}</p>;
  }
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

function inline(tokens: readonly Token[], depth: number): ComponentChildren {
  return tokens.map((token) => span(token as MarkedToken, depth + 1));
}

function span(token: MarkedToken, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case 'strong':
      return <strong>{inline(token.tokens, depth)}</strong>;
    case 'em':
      return <em>{inline(token.tokens, depth)}</em>;
    case 'del':
      return <del>{inline(token.tokens, depth)}</del>;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return link(token.href, inline(token.tokens, depth));
    case 'image':
      return link(token.href, token.text || token.href);
    case 'escape':
      return token.text;
    case 'text':
      return token.tokens ? inline(token.tokens, depth) : token.text;
    default:
      return token.raw;
  }
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
