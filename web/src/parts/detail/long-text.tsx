import { useState } from 'preact/hooks';
import { plural } from '../../shared/format.ts';

const MAX_LINES = 12;
/** A line as long as this is several on the screen. */
const LINE_CHARS = 100;

interface LongTextProps {
  text: string;
  lines?: number;
  class?: string;
}

/** Text as it is; of a long one the beginning, until somebody wants all of it. */
export function LongText({ text, lines: most = MAX_LINES, class: name = '' }: LongTextProps) {
  const [isOpen, setOpen] = useState(false);
  const lines = text.split('\n');
  const head = lines
    .slice(0, most)
    .join('\n')
    .slice(0, most * LINE_CHARS);
  // Two lines more are shown rather than hidden behind a button of the same height.
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
