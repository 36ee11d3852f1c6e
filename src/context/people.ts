import type { Author } from '../events/index.ts';

/**
 * The people of a conversation by display name, each with the seq at which they first spoke: what a prompt knows of
 * them depends on the log alone, never on when it was read.
 */
export type People = Map<string, { id: string; since: number }[]>;

const KEY = /^(?:[0-9a-f]{32,}|n(?:pub|profile)1[0-9a-z]{20,})$/i;
/** What Troupe writes in headers itself. */
const RESERVED = /^(?:system|troupe|late result\b.*)$/i;
/** As namesakes are told apart, with or without a count of those with the same short id. */
const TOLD_APART = / \([A-Za-z0-9_.:-]{1,8}(?:#\d+)?\)$/;

/** What a reader does not see, or sees as the same, taken away. */
function cleanName(name: string): string {
  return name
    .normalize('NFKC')
    .replace(/[\p{C}\p{Zl}\p{Zp}[\]<>→⇒⟶]/gu, '')
    .replace(/(^|\s)@+/gu, '$1')
    .trim();
}

/** A name as it may stand in a header: one line, no brackets or arrows, and no leading '@', which marks agents alone. */
export function displayName(author: Author): string {
  const name = cleanName(author.name);
  const isNone = name === '' || KEY.test(name);
  const short = isNone ? shortId(name || author.id) : Array.from(name).slice(0, 64).join('');
  return RESERVED.test(short) || TOLD_APART.test(short) ? `${short} (${shortId(author.id)})` : short;
}

/** Ids come from outside too: nothing of them may break a header. */
function shortId(id: string): string {
  return id.replace(/[^A-Za-z0-9_.:-]/g, '').slice(0, 8) || 'unknown';
}

export function agentLabel(id: string): string {
  return KEY.test(id) ? shortId(id) : id.replace(/[^A-Za-z0-9_.:-]/g, '').slice(0, 64) || 'unknown';
}

export function meet(people: People, author: Author, seq: number): void {
  const name = displayName(author);
  const known = people.get(name);
  if (!known) people.set(name, [{ id: author.id, since: seq }]);
  else if (!known.some(({ id }) => id === author.id)) known.push({ id: author.id, since: seq });
}

/** Whether more than one person had spoken by `upTo`. */
export function severalBy(people: People, upTo: number): boolean {
  let count = 0;
  for (const namesakes of people.values()) {
    for (const { since } of namesakes) if (since <= upTo && ++count > 1) return true;
  }
  return false;
}

/** Whether a text between brackets would be read as the name of somebody who had spoken by `upTo`. */
export function isPerson(people: People, text: string, upTo: number): boolean {
  const name = cleanName(text);
  const known = people.get(name) ?? people.get(name.replace(TOLD_APART, ''));
  return known?.some(({ since }) => since <= upTo) ?? false;
}

/**
 * The name, with a short id where another person had the same one by `upTo`; of those whose short ids are the same too,
 * the later ones are numbered, in the order in which they first spoke.
 */
export function personLabel(people: People, author: Author, upTo: number): string {
  const name = displayName(author);
  const namesakes = people.get(name)?.filter(({ since }) => since <= upTo) ?? [];
  if (namesakes.length < 2) return name;
  const short = shortId(author.id);
  const alike = namesakes.filter(({ id }) => shortId(id) === short).findIndex(({ id }) => id === author.id);
  return `${name} (${short}${alike > 0 ? `#${alike + 1}` : ''})`;
}
