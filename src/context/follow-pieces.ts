/** One letter of a class, or any number of them. */
export type Piece = readonly [count: 'one' | 'many', letters: RegExp];

/** At most 30 pieces, each a bit in a set of places. */
export interface Pieces {
  letters: readonly RegExp[];
  /** Places of those that may stand any number of times. */
  many: number;
}

export function piecesOf(...pieces: readonly Piece[]): Pieces {
  const many = pieces.reduce((set, [count], index) => (count === 'many' ? set | (1 << index) : set), 0);
  return { letters: pieces.map(([, letters]) => letters), many };
}

/**
 * Whether these pieces stand in the text from `at` on. Their classes may share letters: every way to read the text is
 * followed at once, as a set of places among the pieces. A regular expression tries one way after the other, and a few
 * letters that belong to several classes would keep it busy for ever.
 */
export function followPieces(text: string, at: number, { letters, many }: Pieces): boolean {
  const end = 1 << letters.length;
  let places = withSkipped(1, many);
  for (let index = at; (places & end) === 0;) {
    const code = text.codePointAt(index);
    if (code === undefined || places === 0) return false;
    const letter = String.fromCodePoint(code);
    let after = 0;
    for (let rest = places; rest !== 0; rest &= rest - 1) {
      const place = rest & -rest;
      if (letters[31 - Math.clz32(place)]?.test(letter) === true)
        after |= (many & place) === 0 ? place << 1 : place;
    }
    places = withSkipped(after, many);
    index += letter.length;
  }
  return true;
}

/** Of any number there may be none. */
function withSkipped(places: number, many: number): number {
  let all = places;
  for (let next = all | ((all & many) << 1); next !== all; next = all | ((all & many) << 1)) all = next;
  return all;
}
