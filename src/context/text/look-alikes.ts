/** How patterns of text are matched that may be written in look-alike and invisible characters. */

/** One letter of a class, or any number of them. */
export type Piece = readonly [count: 'one' | 'many', letters: RegExp];

/** At most 30 pieces: each is a bit in a set of places. */
export interface Pieces {
  letters: readonly RegExp[];
  /** Places of the pieces that may repeat or be absent. */
  many: number;
}

export function piecesOf(...pieces: readonly Piece[]): Pieces {
  const many = pieces.reduce((set, [count], index) => (count === 'many' ? set | (1 << index) : set), 0);
  return { letters: pieces.map(([, letters]) => letters), many };
}

/**
 * Whether the pieces match the text from `at` on. Their classes may share letters, so all readings are followed at
 * once, as a set of places among the pieces. A regular expression would try one reading after the other and could take
 * exponential time.
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

/** Adds the places that are reached by skipping pieces that may be absent. */
function withSkipped(places: number, many: number): number {
  let all = places;
  for (let next = all | ((all & many) << 1); next !== all; next = all | ((all & many) << 1)) all = next;
  return all;
}

/** Characters that look like the sign in some script or font. They are written out: Unicode does not relate them. */
export const LESS = String.raw`<\uFF1C\uFE64\u2039\u2329\u3008\u27E8\u02C2\u1438\u276C\u276E\u29FC`;
export const GREATER = String.raw`>\uFF1E\uFE65\u203A\u232A\u3009\u27E9\u02C3\u1433\u276D\u276F\u29FD`;
export const DASH = String.raw`\-\u2010-\u2015\u2043\u2212\u02D7\uFE58\uFE63\uFF0D`;
export const OPEN = String.raw`\[\uFF3B\u2045\u2772\u27E6\u3010\u3014\u3016\u301A\uFE5D`;
export const CLOSE = String.raw`\]\uFF3D\u2046\u2773\u27E7\u3011\u3015\u3017\u301B\uFE5E`;
export const HASH = String.raw`#\uFF03\uFE5F\u266F`;
export const AT = String.raw`@\uFF20\uFE6B`;
/** Latin letters and their look-alikes. Each matches any other, which can only find too much. */
export const LETTERS = String.raw`\u017F\u02B0-\u02B8\u0370-\u052F\u1D00-\u1DBF\u2070-\u209C\u2100-\u214F\u2160-\u217F\u24B6-\u24E9\uFF21-\uFF5A\u{1D400}-\u{1D7CB}\u{1F110}-\u{1F189}`;
export const LINE_ENDS = String.raw`\n\r\v\f\u0085\u2028\u2029`;

/**
 * Some letters are both invisible and look-alikes, so patterns with several repetitions are matched by `followPieces`.
 */
export const HIDDEN = String.raw`\p{Cf}\p{DI}\p{M}`;
export const GAP: Piece = ['many', anyOf(String.raw`\s${HIDDEN}`)];
export const UNSEEN: Piece = ['many', anyOf(HIDDEN)];

/** Group 1 is what stands before the first visible sign of a line. */
export const LINE_START = String.raw`((?:^|[\v\f\u0085])[\t\p{Zs}${HIDDEN}]*)`;

export function anyOf(letters: string): RegExp {
  return new RegExp(`[${letters}]`, 'iu');
}

/** The letters of a word, or what looks like them. */
export function loose(word: string): Piece[] {
  return Array.from(word).flatMap((sign): Piece[] =>
    sign === ' ' ? [GAP] : [['one', anyOf(sign + LETTERS)], UNSEEN],
  );
}
