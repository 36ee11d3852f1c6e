import unhomoglyph from 'unhomoglyph';
import { type Author, type Event, type EventDraft, isImported } from '../../events/index.ts';
import { escapeFences } from './marks.ts';

/** Characters that are invisible, or visible only as a gap. */
const UNSEEN = /[\s\p{C}\p{DI}\u2800]/gu;

/**
 * The skeleton of a text. Texts that a reader would confuse have equal skeletons. Skeletons are never shown. `I` resembles
 * `l` and is the capital of `i`, so these three letters are equal here.
 */
function skeletonOf(text: string): string {
  const seen = text
    .normalize('NFKC')
    .replace(UNSEEN, '')
    .replace(/\P{ASCII}/gu, asLatin);
  return unhomoglyph(unhomoglyph(seen).toLowerCase()).replaceAll('i', 'l');
}

/** The Latin letter that a letter resembles. Some do so only as capitals (`т`), others only as small letters (`υ`). */
function asLatin(letter: string): string {
  const small = unhomoglyph(letter);
  return /^\p{ASCII}+$/u.test(small) ? small : unhomoglyph(letter.toUpperCase());
}

/** A person under one name. `since`: seq at which they first spoke under it. */
interface Speaker {
  since: number;
  /** Number of earlier namesakes whose short id looks the same. */
  alike: number;
}

/** People with one name, by id, in the order in which they first spoke under it. `shorts`: number of people per short id. */
interface Namesakes {
  speakers: Map<string, Speaker>;
  shorts: Map<string, number>;
}

/**
 * The people of a conversation. The content depends only on the log, not on when it was read. Namesakes are people whose
 * names have equal skeletons.
 */
export interface People {
  skeletons: Map<string, Namesakes>;
  /** Cache of the skeletons of known names. */
  skeletonOf: Map<string, string>;
}

export function createPeople(): People {
  return { skeletons: new Map(), skeletonOf: new Map() };
}

/** Used if the people are not known. Must never be changed. */
export const NOBODY: People = createPeople();

export function copyPeople({ skeletons, skeletonOf: known }: People): People {
  const copies = [...skeletons].map(
    ([skeleton, { speakers, shorts }]) =>
      [skeleton, { speakers: new Map(speakers), shorts: new Map(shorts) }] as const,
  );
  return { skeletons: new Map(copies), skeletonOf: new Map(known) };
}

const KEY = /^(?:[0-9a-f]{32,}|n(?:pub|profile)1[0-9a-z]{20,})$/i;
const RESERVED_SKELETONS = ['system', 'troupe', 'late result', 'imported note'].map(skeletonOf);
/** The suffix of a namesake: a short id, and a number if several have that id. */
const NAMESAKE_SUFFIX = / \([A-Za-z0-9_.:-]{1,8}(?:#\d+)?\)$/;

/** Removes characters that a reader cannot see or would confuse. */
function cleanName(name: string): string {
  return name
    .normalize('NFKC')
    .replace(/[\p{C}\p{Zl}\p{Zp}[\]<>→⇒⟶]/gu, '')
    .replace(/(^|\s)@+/gu, '$1')
    .trim();
}

/** A name made safe for a header: one line, no brackets or arrows, and no leading '@', which marks agents. */
function plainName(author: Author): string {
  const name = cleanName(author.name);
  const isNone = name === '' || KEY.test(name);
  return isNone ? shortId(name || author.id) : Array.from(name).slice(0, 64).join('');
}

/** The end of a name that reads as a time or as the key of a mark, which may follow names. */
const ENDS_AS_MARK = /[#\u266F:]\s*\p{N}+\s*Z?$/iu;
const MARK_WORDS = ['new', 'reminder', 'time'].map(skeletonOf);

function isMark(name: string, skeleton: string): boolean {
  return ENDS_AS_MARK.test(name) || MARK_WORDS.includes(skeleton);
}

/** Whether a skeleton begins like a word of Troupe's headers, ends like the label of a namesake, or has no letters. */
function isTaken(skeleton: string): boolean {
  const word = skeleton.replace(/^[^\p{L}\p{N}]+/u, '');
  return (
    word === '' || word.endsWith(')') || RESERVED_SKELETONS.some((reserved) => word.startsWith(reserved))
  );
}

/** The beginning of an id. Ids may come from other systems, so only characters that cannot break a header are kept. */
function shortId(id: string): string {
  return id.replace(/[^A-Za-z0-9_.:-]/g, '').slice(0, 8) || 'unknown';
}

/** An id that can be a label unchanged: it is too short for a public key. */
const PLAIN_ID = /^[A-Za-z0-9_.:-]{1,24}$/;

export function agentLabel(id: string): string {
  if (PLAIN_ID.test(id)) return id;
  return KEY.test(id) ? shortId(id) : id.replace(/[^A-Za-z0-9_.:-]/g, '').slice(0, 64) || 'unknown';
}

/** The last name of each person, by id. Skips most events, because their authors have spoken before under the same name. */
const ADDED = new WeakMap<People, Map<string, string>>();

export function addPerson(people: People, author: Author, seq: number): void {
  const added = ADDED.get(people) ?? new Map<string, string>();
  if (added.get(author.id) === author.name) return;
  ADDED.set(people, added.set(author.id, author.name));
  const name = plainName(author);
  const skeleton = people.skeletonOf.get(name) ?? skeletonOf(name);
  people.skeletonOf.set(name, skeleton);
  const { speakers, shorts } = people.skeletons.get(skeleton) ?? { speakers: new Map(), shorts: new Map() };
  if (speakers.has(author.id)) return;
  const short = skeletonOf(shortId(author.id));
  const alike = shorts.get(short) ?? 0;
  speakers.set(author.id, { since: seq, alike });
  shorts.set(short, alike + 1);
  people.skeletons.set(skeleton, { speakers, shorts });
}

/** Whether at least `least` people had spoken under the name by `upTo`. The map has them in the order of their first words. */
function haveSpoken(namesakes: Namesakes | undefined, least: number, upTo: number): boolean {
  let count = 0;
  for (const { since } of namesakes?.speakers.values() ?? []) {
    if (since > upTo) return false;
    if (++count === least) return true;
  }
  return false;
}

/** Whether more than one person had spoken by `upTo`. */
export function hasSeveralPeople(people: People, upTo: number): boolean {
  let count = 0;
  for (const { speakers } of people.skeletons.values()) {
    for (const { since } of speakers.values()) if (since <= upTo && ++count > 1) return true;
  }
  return false;
}

/** Whether a text in brackets would read as the name of a person who had spoken by `upTo`. */
export function isPerson(people: People, text: string, upTo: number): boolean {
  const name = cleanName(text);
  return [name, withoutTime(name)]
    .flatMap((each) => [each, each.replace(NAMESAKE_SUFFIX, '')])
    .some((each) => haveSpoken(speakersOf(people, each), 1, upTo));
}

function withoutTime(name: string): string {
  let end = name.length;
  while (end > 0 && /[\p{N}\s:#TZ-]/u.test(name[end - 1] ?? '')) end -= 1;
  return name.slice(0, end);
}

/** Maximum characters of a possible name. Names are shorter; this allows for ignorable characters between the letters. */
const MOST_OF_NAME = 1_024;

function speakersOf(people: People, name: string): Namesakes | undefined {
  if (name.length > MOST_OF_NAME) return undefined;
  return people.skeletons.get(people.skeletonOf.get(name) ?? skeletonOf(name));
}

/**
 * The name of a person, followed by a short id if another person had the same name by `upTo`, or if the name could pass for
 * Troupe's words. People with equal short ids are numbered in the order in which they first spoke, from the second on.
 */
export function personLabel(people: People, author: Author, upTo: number): string {
  const { name, skeleton, isForged } = readName(people, author);
  const namesakes = people.skeletons.get(skeleton);
  const isShared = (namesakes?.speakers.size ?? 0) > 1 && haveSpoken(namesakes, 2, upTo);
  return isShared || isForged ? `${name} (${numbered(namesakes, author, upTo)})` : name;
}

/** A name as labels show it, and whether it could pass for Troupe's words. */
interface ReadName {
  given: string;
  name: string;
  skeleton: string;
  isForged: boolean;
}

const READ = new Map<string, ReadName>();
const MOST_READ = 1_024;

function readName(people: People, author: Author): ReadName {
  const known = READ.get(author.id);
  if (known?.given === author.name) return known;
  const name = plainName(author);
  const skeleton = people.skeletonOf.get(name) ?? skeletonOf(name);
  const read = { given: author.name, name, skeleton, isForged: isTaken(skeleton) || isMark(name, skeleton) };
  if (READ.size >= MOST_READ) READ.clear();
  READ.set(author.id, read);
  return read;
}

function numbered(namesakes: Namesakes | undefined, { id }: Author, upTo: number): string {
  const speaker = namesakes?.speakers.get(id);
  return speaker && speaker.since <= upTo && speaker.alike > 0
    ? `${shortId(id)}#${speaker.alike + 1}`
    : shortId(id);
}

/** The name for events of the runtime. Those of an imported file have a name of their own. */
export function systemLabel({ context }: Pick<Event | EventDraft, 'context'>): string {
  return isImported({ context }) ? 'imported note' : 'system';
}

/** Ids of trusted people (`trust.people`). Null: everybody is trusted. */
export type Trusted = readonly string[] | null;

/** Whether a trusted person wrote the event. Words that an agent quotes count as the agent's. */
export function isTrustedPerson(
  trusted: Trusted,
  { author, context }: Pick<Event, 'author' | 'context'>,
): boolean {
  return author.kind === 'user' && !isUntrusted(trusted, { author, context });
}

/**
 * Whether the author is a person who is not trusted, by the present settings or by the verdict stored with the event. Such
 * messages are read but give no orders.
 */
export function isUntrusted(
  trusted: Trusted,
  { author, context }: Pick<Event, 'author' | 'context'>,
): boolean {
  if (author.kind !== 'user') return false;
  if (context?.untrusted === true || context?.held !== undefined) return true;
  return trusted !== null && !trusted.includes(author.id);
}

/** Value of `upTo` for texts that are the same for every reader: names as known at the end of the log. */
export const AT_THE_END = Number.MAX_SAFE_INTEGER;

export function peopleOf(events: readonly (Event | EventDraft)[]): People {
  const people = createPeople();
  for (const event of events) {
    if (event.kind === 'notice') continue;
    if (event.author.kind === 'user') addPerson(people, event.author, 'seq' in event ? event.seq : 0);
  }
  return people;
}

/** The speaker, with the recipients unless the event is for all: `Ana`, `@planner`, `Ana>@coder`. */
export function speakerOf(event: Event | EventDraft, people: People): string {
  const { author, to } = event;
  const target = to.length === 0 ? '' : `>${to.map((agent) => `@${agentLabel(agent)}`).join(', ')}`;
  if (author.kind === 'agent') return `@${agentLabel(author.id)}${target}`;
  if (author.kind === 'system') return `${systemLabel(event)}${target}`;
  return `${personLabel(people, author, AT_THE_END)}${target}`;
}

/** Whether the speaker is a person. Labels of people never begin with '@' and are never that of the runtime; see `personLabel`. */
export function isPersonSpeaker(speaker: string): boolean {
  return !/^(?:@|(?:system|imported note)(?:>|$))/.test(speaker);
}

/** Written after the header of words of an untrusted person. */
export const NOT_TRUSTED = '(not trusted)';

/** A header on one line, whatever the name contains. Replaces brackets, also those of equivalent forms. */
export function header(speaker: string): string {
  return `[${headerText(speaker)}]`;
}

export function headerText(speaker: string): string {
  return escapeFences(speaker.replace(/[\p{C}\p{Zl}\p{Zp}[\]\uFE47\uFE48\uFF3B\uFF3D]/gu, ''));
}
