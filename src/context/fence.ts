/** One letter of a class, or any number of them. */
type Piece = readonly [count: 'one' | 'many', letters: RegExp];

/** At most 30 pieces: each is a bit in a set of places. */
interface Pieces {
  letters: readonly RegExp[];
  /** Places of the pieces that may repeat or be absent. */
  many: number;
}

function piecesOf(...pieces: readonly Piece[]): Pieces {
  const many = pieces.reduce((set, [count], index) => (count === 'many' ? set | (1 << index) : set), 0);
  return { letters: pieces.map(([, letters]) => letters), many };
}

/**
 * Whether the pieces match the text from `at` on. Their classes may share letters, so all readings are followed at
 * once, as a set of places among the pieces. A regular expression would try one reading after the other and could take
 * exponential time.
 */
function followPieces(text: string, at: number, { letters, many }: Pieces): boolean {
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

/**
 * Fences keep an author's text from imitating what surrounds it. The delimiter carries a key derived from the
 * conversation's secret, so no author can close a fence or open another. Look-alikes are escaped as well, so that no
 * model or reader is misled. Invisible characters (zero-width, bidi) hide no look-alike.
 */
const FENCE_TAGS = ['msg', 'missed', 'handoff', 'reminder', 'summary', 'transcript'] as const;
type FenceTag = (typeof FENCE_TAGS)[number];

/** Characters that look like the sign in some script or font. They are written out: Unicode does not relate them. */
const LESS = String.raw`<\uFF1C\uFE64\u2039\u2329\u3008\u27E8\u02C2\u1438\u276C\u276E\u29FC`;
const GREATER = String.raw`>\uFF1E\uFE65\u203A\u232A\u3009\u27E9\u02C3\u1433\u276D\u276F\u29FD`;
const DASH = String.raw`\-\u2010-\u2015\u2043\u2212\u02D7\uFE58\uFE63\uFF0D`;
const OPEN = String.raw`\[\uFF3B\u2045\u2772\u27E6\u3010\u3014\u3016\u301A\uFE5D`;
const CLOSE = String.raw`\]\uFF3D\u2046\u2773\u27E7\u3011\u3015\u3017\u301B\uFE5E`;
const AT = String.raw`@\uFF20\uFE6B`;
/** Latin letters and their look-alikes. Each matches any other, which can only find too much. */
const LETTERS = String.raw`\u017F\u02B0-\u02B8\u0370-\u052F\u1D00-\u1DBF\u2070-\u209C\u2100-\u214F\u2160-\u217F\u24B6-\u24E9\uFF21-\uFF5A\u{1D400}-\u{1D7CB}\u{1F110}-\u{1F189}`;
const LINE_ENDS = String.raw`\n\r\v\f\u0085\u2028\u2029`;

/**
 * Some letters are both invisible and look-alikes, so patterns with several repetitions are matched by `followPieces`.
 */
const HIDDEN = String.raw`\p{Cf}\p{DI}\p{M}`;
const GAP: Piece = ['many', anyOf(String.raw`\s${HIDDEN}`)];
const UNSEEN: Piece = ['many', anyOf(HIDDEN)];
const TAGS = FENCE_TAGS.map((tag) =>
  piecesOf(['many', anyOf(String.raw`\s${HIDDEN}/\uFF0F\u2044\u2215`)], ...loose(tag), ['one', anyOf(DASH)]),
);
const MAYBE_FENCE = new RegExp(`[${LESS}]`);
/** Matches the opening sign of what may be a tag: only its letters and look-alikes follow, up to its dash. */
const FENCE_LOOKALIKE = new RegExp(
  String.raw`[${LESS}](?=[\s${HIDDEN}/\uFF0F\u2044\u2215${LETTERS}${FENCE_TAGS.join('')}]*[${DASH}])`,
  'giu',
);

const LINE_START = String.raw`((?:^|[\v\f\u0085])[\t\p{Zs}${HIDDEN}]*)`;
const HEADERS = [
  piecesOf(GAP, ['one', anyOf(AT)]),
  piecesOf(GAP, ...loose('system'), GAP, ['one', anyOf(CLOSE + DASH)]),
  piecesOf(GAP, ...loose('late result of')),
  piecesOf(
    ['many', anyOf(`^${CLOSE}${LINE_ENDS}`)],
    ['one', anyOf(DASH)],
    UNSEEN,
    ['one', anyOf(GREATER)],
    GAP,
    ['one', anyOf(AT)],
  ),
];
const MAYBE_HEADER = new RegExp(`[${OPEN}]`);
/** The shape of attachment lines; see `messageText`. */
const ATTACHED = ['image', 'file', 'text'].map((word) =>
  piecesOf(GAP, ...loose(word), GAP, ['one', anyOf(String.raw`:\uFF1A\uFE55`)]),
);
const LINE_OPENED = new RegExp(String.raw`${LINE_START}([${OPEN}])`, 'gimu');
/** Bracketed text at the start of a line, invisible characters included. */
const BRACKETED = new RegExp(
  String.raw`${LINE_START}([${OPEN}])([^${CLOSE}${LINE_ENDS}]+)(?=[${CLOSE}])`,
  'gimu',
);

function anyOf(letters: string): RegExp {
  return new RegExp(`[${letters}]`, 'iu');
}

function loose(word: string): Piece[] {
  return Array.from(word).flatMap((sign): Piece[] =>
    sign === ' ' ? [GAP] : [['one', anyOf(sign + LETTERS)], UNSEEN],
  );
}

export function fence(tag: FenceTag, key: string, text: string): string {
  const [open, close] = fenceEnds(tag, key);
  return open + text + close;
}

export function fenceEnds(tag: FenceTag, key: string): [open: string, close: string] {
  return [`<${tag}-${key}>\n`, `\n</${tag}-${key}>`];
}

/** Escapes what could pass for a fence. Lone surrogates become U+FFFD, since providers refuse them. */
export function escapeFences(text: string): string {
  const clean = text.isWellFormed() ? text : text.toWellFormed();
  if (!MAYBE_FENCE.test(clean)) return clean;
  return clean.replace(FENCE_LOOKALIKE, (less, index: number) =>
    TAGS.some((tag) => followPieces(clean, index + less.length, tag)) ? `${less}\\` : less,
  );
}

/** Escapes lines of an author's own words that look like attachments. */
export function escapeAttached(text: string): string {
  return escapeOpened(text, ATTACHED);
}

/** Escapes a bracket at the start of a line if one of these patterns follows it. */
function escapeOpened(text: string, opened: readonly Pieces[]): string {
  if (!MAYBE_HEADER.test(text)) return text;
  return text.replace(LINE_OPENED, (all, start: string, open: string, index: number) =>
    opened.some((pieces) => followPieces(text, index + all.length, pieces)) ? `${start}\\${open}` : all,
  );
}

/** Escapes what could pass for a fence or a line of attribution. Pass `isName` where names of people are shown. */
export function escapeMarks(text: string, isName?: (name: string) => boolean): string {
  const clean = escapeFences(text);
  const escaped = escapeOpened(clean, HEADERS);
  if (!isName) return escaped;
  return escaped.replace(BRACKETED, (all, start: string, open: string, name: string) =>
    isName(name) ? `${start}\\${open}${name}` : all,
  );
}
