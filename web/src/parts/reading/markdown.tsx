import { later } from '../../shared/later.tsx';
import { memo } from '../../shared/memo.ts';
import '../../style/formatted.css';

const Formatted = later(async () => (await import('./formatted.tsx')).Formatted, Plain);

/** One line without anything that Markdown may mean. */
const NO_MARKS = /^[\p{L}"'(][^\n*_`#<>[\]|~&\\@]*$/u;
/** What is made a link of. */
const ADDRESS = /:\/\/|www\./i;

/**
 * A text as formatted by its author. Safe by construction: it is drawn from tokens, never as HTML; raw HTML in it is shown
 * as text, images as links, and links lead to web and mail addresses only. The formatter is fetched for the first text
 * that needs it.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  if (!NO_MARKS.test(text) || ADDRESS.test(text)) return <Formatted text={text} />;
  return (
    <div class="words-formatted">
      <p>{text}</p>
    </div>
  );
});

function Plain({ text }: { text: string }) {
  return <p class="words-plain">{text}</p>;
}
