import { later } from '../../shared/later.tsx';
import { memo } from '../../shared/memo.ts';
import '../../style/formatted.css';

const Formatted = later(async () => (await import('./formatted.tsx')).Formatted, Plain);

/** One line without any character that Markdown may interpret. */
const NO_MARKS = /^[\p{L}"'(][^\n*_`#<>[\]|~&\\@]*$/u;
/** Text that may become a link. */
const ADDRESS = /:\/\/|www\./i;

/**
 * A text with its author's formatting. Safe by construction: it is drawn from tokens, never as HTML. Raw HTML in it is shown as
 * text, images as links, and links lead only to web and mail addresses. The formatter is fetched for the first text that needs it.
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
