import { useState } from 'preact/hooks';
import { plural } from '../../shared/format.ts';
import '../../style/long-text.css';

const MAX_LINES = 12;
/** Characters above which a line wraps into several on the screen. */
const LINE_CHARS = 100;

interface LongTextProps {
  text: string;
  lines?: number;
  class?: string;
}

/** Plain text. A long one shows its beginning until the reader expands it. */
export function LongText({ text, lines: most = MAX_LINES, class: name = '' }: LongTextProps) {
  const [isOpen, setOpen] = useState(false);
  const lines = text.split('\n');
  const head = lines
    .slice(0, most)
    .join('\n')
    .slice(0, most * LINE_CHARS);
  // Two more lines are shown, because a button would take the same height.
  const isShort = lines.length <= most + 2 && text.length <= (most + 2) * LINE_CHARS;
  return (
    <div class={`long ${name}`}>
      <pre class="long-text">{isOpen || isShort ? text : head}</pre>
      {!isShort && (
        <button type="button" class="long-more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen
            ? 'show less'
            : `show all ${plural(lines.length, 'line')}, ${plural(text.length, 'character')}`}
        </button>
      )}
    </div>
  );
}
