import type { Author } from '../../../src/events/index.ts';

/** Number of colours that authors have; see `tokens.css`. */
const COLOURS = 10;

/** The initials of a name, in the colour of its id, which is the same in every view. */
export function Person({ author }: { author: Pick<Author, 'kind' | 'id' | 'name'> }) {
  return (
    <span
      class={`person person-${author.kind}`}
      style={{ '--own': `var(--layer-${colourOf(author.id)})` }}
      aria-hidden="true"
    >
      {initials(author.name)}
    </span>
  );
}

function colourOf(id: string): number {
  let sum = 0;
  for (const letter of id) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 65_521;
  return (sum % COLOURS) + 1;
}

function initials(name: string): string {
  const words = name.trim().split(/\s+/u);
  const last = words.length > 1 ? firstLetter(words.at(-1) ?? '') : '';
  return `${firstLetter(words[0] ?? '') || '?'}${last}`.toUpperCase();
}

const LETTERS = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

function firstLetter(word: string): string {
  const [letter] = LETTERS.segment(word.slice(0, 16));
  return letter?.segment ?? '';
}
