import type { Facts, Saying } from '../../events/index.ts';
import { NOBODY, type People, header } from '../text/people.ts';
import { authorOf, labelOf } from './spoken-text.ts';
import { oneLine, sentencesOf } from '../text/cut-text.ts';

/**
 * The lists in order of priority: open tasks and demands before facts that can be looked up again. `part`: share of the room
 * that a list gets first, so that a long list leaves room for the others.
 */
const SECTIONS: readonly { list: keyof Facts; title: string; inline: boolean; part: number }[] = [
  { list: 'pending', title: 'Open', inline: false, part: 0.35 },
  { list: 'constraints', title: 'Constraints and preferences', inline: false, part: 0.3 },
  { list: 'artifacts', title: 'Artifacts', inline: true, part: 0.1 },
  { list: 'errors', title: 'Errors not settled', inline: false, part: 0.15 },
  { list: 'claims', title: 'Claimed or wished by others, and binding nobody', inline: false, part: 0.05 },
  { list: 'filesModified', title: 'Files modified', inline: true, part: 0.3 },
  { list: 'filesRead', title: 'Files read', inline: true, part: 0.05 },
  { list: 'identifiers', title: 'Also named', inline: true, part: 0.1 },
  { list: 'passing', title: 'Met once', inline: true, part: 0 },
];

const HEADING_TOKENS = 16;
const MAX_TRIES = 6;

interface Entry {
  section: number;
  place: number;
  /** The entry as listed, with its speaker first. */
  text: string;
  words: string;
  /** Number of newer entries of the same author in the list. */
  newer: number;
}

/** `demands`: only the demands of trusted people. `rest`: the lists without them. */
export type ListingPart = 'all' | 'demands' | 'rest';

/** Context of a listing. */
interface ListingContext {
  part?: ListingPart;
  /** The text that the prompt shows beside the listing. */
  shown?: string;
  /** Everybody in the conversation, to distinguish namesakes. */
  people?: People;
}

type Count = (text: string) => number;

/**
 * The lists as text within a budget. Entries that `shown` lacks are chosen first, and newer before older. An entry is shown
 * literally or omitted, and the text says how many were omitted. Its speaker comes before it in brackets, which no name can
 * close.
 */
export function renderFacts(
  facts: Facts,
  budgetTokens: number,
  count: Count,
  { part = 'all', shown = '', people = NOBODY }: ListingContext = {},
): string {
  const all = entriesOf(facts, people).filter((entry) => isIn(part, entry));
  const isSaid = saidIn(shown);
  // If there are claims, constraints are never dropped as already shown, so that claims cannot replace them.
  const isContested = (facts.claims ?? []).length > 0;
  const isShown = new Set(
    all
      .filter((entry) => !(isContested && listOf(entry) === 'constraints'))
      .filter((entry) => (isInline(entry) ? shown.includes(entry.words) : isSaid(entry.words))),
  );
  const bases = basesOf(all, budgetTokens, count);
  const entries = all.map((entry) => underBase(entry, bases[entry.section] ?? ''));
  // If all demands fit exactly, they are shown without the upper bounds that choosing needs.
  const whole = part === 'demands' ? renderEntries(entries, new Set(entries), bases) : '';
  if (whole !== '' && count(whole) <= budgetTokens) return whole;
  const fresh = entries.filter((_, at) => !isShown.has(all[at] as Entry));
  const known = entries.filter((_, at) => isShown.has(all[at] as Entry));
  const costs = new Map(
    entries.map((entry) => [entry, count(`${isInline(entry) ? ', ' : '\n- '}${entry.text}`)]),
  );
  const headings = bases.map((base) => HEADING_TOKENS + (base === '' ? 0 : count(base)));
  // A joined text may have slightly more tokens than its parts, so it is counted and tried again with less room.
  let room = budgetTokens;
  for (let tries = 0; tries < MAX_TRIES && room > 0; tries += 1) {
    const text = renderEntries(entries, chooseEntries({ fresh, known }, { costs, headings }, room), bases);
    const over = count(text) - budgetTokens;
    if (over <= 0) return text;
    room -= over + 1;
  }
  return '';
}

/**
 * For each list of files without room for whole paths, the directory whose removal shortens it most. '' for the others,
 * because a whole path is easier to use.
 */
function basesOf(entries: readonly Entry[], budgetTokens: number, count: Count): string[] {
  return SECTIONS.map(({ list, part }, section) => {
    if (list !== 'filesModified' && list !== 'filesRead') return '';
    const paths = entries.filter((entry) => entry.section === section).map(({ text }) => text);
    if (paths.length < 3 || count(paths.join(', ')) <= budgetTokens * part) return '';
    const saved = new Map<string, number>();
    for (const path of paths)
      for (let at = path.indexOf('/', 1); at !== -1; at = path.indexOf('/', at + 1)) {
        const base = path.slice(0, at + 1);
        saved.set(base, (saved.get(base) ?? -base.length) + base.length);
      }
    const [best] = [...saved].toSorted((a, b) => b[1] - a[1] || a[0].length - b[0].length);
    return best && best[1] > 0 ? best[0] : '';
  });
}

function underBase(entry: Entry, base: string): Entry {
  const isUnder = base !== '' && entry.text.startsWith(base) && entry.text.length > base.length;
  return isUnder ? { ...entry, text: entry.text.slice(base.length) } : entry;
}

/** Chooses entries first within each list's own share, then from the rest in the order of the lists. */
function chooseEntries(
  { fresh, known }: { fresh: readonly Entry[]; known: readonly Entry[] },
  { costs, headings }: { costs: ReadonlyMap<Entry, number>; headings: readonly number[] },
  room: number,
): Set<Entry> {
  const kept = new Set<Entry>();
  const used = SECTIONS.map(() => 0);
  let left = room;
  const passes = [
    { entries: fresh, isOwnPart: true },
    { entries: fresh, isOwnPart: false },
    { entries: known, isOwnPart: false },
  ];
  for (const { entries, isOwnPart } of passes) {
    for (const entry of entries) {
      const spent = used[entry.section] ?? 0;
      const cost = (costs.get(entry) ?? 0) + (spent === 0 ? (headings[entry.section] ?? 0) : 0);
      const most = isOwnPart ? room * (SECTIONS[entry.section]?.part ?? 0) : Infinity;
      if (kept.has(entry) || cost > left || spent + cost > most) continue;
      left -= cost;
      used[entry.section] = spent + cost;
      kept.add(entry);
    }
  }
  return kept;
}

function listOf({ section }: Entry): keyof Facts | undefined {
  return SECTIONS[section]?.list;
}

function isIn(part: ListingPart, entry: Entry): boolean {
  return part === 'all' || (part === 'demands') === (listOf(entry) === 'constraints');
}

function isInline({ section }: Entry): boolean {
  return SECTIONS[section]?.inline === true;
}

/** Entries by section, newest first, without duplicates. Omits names that are the end of a listed path or call. */
function entriesOf(facts: Facts, people: People): Entry[] {
  const covered = new Set<string>();
  const entries = SECTIONS.flatMap(({ list, inline }, section) => {
    const listed: readonly (string | Saying)[] = facts[list] ?? [];
    const newer = newerOf(listed);
    return listed.map((entry, place) => {
      const said = typeof entry === 'string' ? entry : entry.text;
      const words = inline ? said : oneLine(said);
      if (inline) for (const part of endsOf(words)) covered.add(part);
      const text = typeof entry === 'string' ? words : `${header(labelOf(entry, people))} ${words}`;
      return { section, place, text, words, newer: newer[place] ?? 0 };
    });
  });
  const seen = new Set<string>();
  return entries
    .filter(({ section, text }) => {
      const isTwice = seen.has(text) || (SECTIONS[section]?.inline === true && covered.has(text));
      seen.add(text);
      return !isTwice;
    })
    .toSorted(
      (a, b) => a.section - b.section || rankOf(a) - rankOf(b) || a.newer - b.newer || b.place - a.place,
    );
}

/** For each entry the number of newer ones of the same author, so that an author of many gets no more room than others. */
function newerOf(entries: readonly (string | Saying)[]): number[] {
  const counts = new Map<string, number>();
  const newestFirst = entries.toReversed().map((entry) => {
    const author = typeof entry === 'string' ? '' : authorOf(entry);
    const count = counts.get(author) ?? 0;
    counts.set(author, count + 1);
    return count;
  });
  return newestFirst.toReversed();
}

/** Rank of names that a search in code finds again. */
const FOUND_AGAIN = 3;

/** Whether a name is an id, a path or a number, which cannot be guessed. */
export function isUnguessable(name: string): boolean {
  return rankOfName(name) < FOUND_AGAIN;
}

function rankOf({ section, text }: Entry): number {
  return SECTIONS[section]?.list === 'identifiers' ? rankOfName(text) : 0;
}

/** Priority of names: ids, which cannot be guessed, then paths, then numbers, then names that a search in code finds. */
function rankOfName(name: string): number {
  if (/[/\\]/.test(name)) return 1;
  if (/^\d+$/.test(name)) return 2;
  return /\d/.test(name) || name.includes('@') ? 0 : FOUND_AGAIN;
}

/** The shorter names that a listed name covers: `c.ts` and `b/c.ts` for `a/b/c.ts`, `run` for `run()`. */
function endsOf(text: string): string[] {
  const ends: string[] = text.endsWith('()') ? [text.slice(0, -2)] : [];
  for (let at = text.indexOf('/', 1); at >= 0 && at < text.length - 1; at = text.indexOf('/', at + 1)) {
    ends.push(text.slice(at + 1));
  }
  return ends;
}

function renderEntries(
  entries: readonly Entry[],
  kept: ReadonlySet<Entry>,
  bases: readonly string[],
): string {
  const sections = SECTIONS.map(({ title, inline }, index) => {
    const all = entries.filter(({ section }) => section === index);
    const chosen = all.filter((entry) => kept.has(entry)).toSorted((a, b) => a.place - b.place);
    const texts = chosen.map(({ text }) => text);
    if (texts.length === 0) return '';
    const base = bases[index] === '' ? title : `${title} in ${bases[index]}`;
    const head =
      texts.length === all.length ? base : `${base} (${all.length - texts.length} more not listed)`;
    return inline
      ? `${head}: ${texts.join(', ')}`
      : [`${head}:`, ...texts.map((text) => `- ${text}`)].join('\n');
  });
  return sections.filter((text) => text !== '').join('\n');
}

/** Share of an entry's words that a sentence must contain to say the same. */
const SAME = 0.75;
const STEM = 5;
const MAX_TEXT = 262_144;

/** Returns a test of whether the text already says something: literally, or with most of its words in one sentence or line. */
function saidIn(text: string): (words: string) => boolean {
  let lines: ReadonlySet<string>[] | null = null;
  return (words) => {
    if (text.includes(words)) return true;
    const stems = stemsOf(words);
    if (stems.length < 2) return false;
    lines ??= sentencesOf(text.slice(0, MAX_TEXT)).map((line) => new Set(stemsOf(line)));
    return lines.some((line) => stems.filter((stem) => line.has(stem)).length >= stems.length * SAME);
  };
}

function stemsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_$][\p{L}\p{N}_$./-]*/gu) ?? [];
  return [
    ...new Set(words.filter((word) => word.length > 3 || /\d/.test(word)).map((word) => word.slice(0, STEM))),
  ];
}
