import { eventText } from '../src/context/text/event-text.ts';
import type { Event } from '../src/events/index.ts';

/**
 * Facts that somebody who goes on with the work needs, found by rules of their own, far simpler than those of
 * `src/context/extract` and with knowledge it does not have: apart from the goal and constraints, a fact counts only if
 * the log comes back to it after the point. Each is a few rare words that must stand close together, so that a
 * paraphrase counts too.
 *   goal         the first request
 *   constraint   sentences of people with must, never, only, should, do not, prefer, no
 *   decision     what a person answers to an agent's question or proposal, and sentences that decide
 *   number       numbers in messages that occur again, with a rare word beside them
 *   file         the files changed most often, and the newest, as created or changed
 *   task         open items of the newest list of open work
 *   error        errors of the newest part that nothing since has settled
 *   state        sentences with a name or number in the agent's last three messages
 *   name         names that are used most, and used again after the point
 */
export const FACT_KINDS = [
  'goal',
  'constraint',
  'decision',
  'number',
  'file',
  'task',
  'error',
  'state',
  'name',
] as const;
export type FactKind = (typeof FACT_KINDS)[number];
export type Age = 'old' | 'middle' | 'new';

export interface Fact {
  kind: FactKind;
  age: Age;
  /** The event that says it last. */
  seq: number;
  /** Rare words of it; `least` of them must stand within `WINDOW` characters. */
  words: string[];
  least: number;
}

const WINDOW = 260;
const MOST_OF_A_KIND = 12;

const DEMAND =
  /\b(?:must|never|only|should|don['’]?t|do not|prefer|always|no,|not want|make sure|needs? to)\b/i;
const DECIDES = /\b(?:let['’]?s|decided|agreed|go with|instead|i want|i['’]d like|we will|i['’]ll take)\b/i;
const OPEN_LIST =
  /^\W*(?:\w+ )?(?:remaining|next steps?|to-?do|still open|what['’]s left|left to do|open tasks?)\b.{0,40}$/i;
const NAME =
  /\b(?:[a-z]+(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}|[a-z]+(?:_[a-z0-9]+)+|[A-Z]{2,}\d+|#?[A-Z]\d{5,}|[A-Z0-9]{6})\b/g;
const NUMBER = /(?<![\w.#/-])[$€]?\d[\d,.]*\d%?(?![\w/-])/g;
const ERROR = /(?:error|exception)\b[^\n]{0,12}: [^\n]{4,160}/i;
const CHANGED =
  /creat|writ|wrote|edit|modif|chang|add|updat|new|mov|delet|renam|refactor|implement|done|lines/i;
const WORD = /[\p{L}\p{N}_$][\p{L}\p{N}_$.'-]*[\p{L}\p{N}_$]/gu;

/** The facts known at a point of a log, the same for everything that is measured there. */
export function factsAt(log: readonly Event[], upTo: number): Fact[] {
  const known = log.slice(0, upTo);
  const rarity = rarityIn(log);
  const said = known.filter((event) => event.kind === 'message');
  const ageOf = (seq: number): Age =>
    (['old', 'middle', 'new'] as const)[Math.min(2, Math.floor((seq * 3) / (upTo + 1)))] ?? 'new';
  const bySentence = (kind: FactKind, event: Event, sentence: string): Fact[] => {
    const words = rareWords(sentence, rarity);
    return words.length < 2
      ? []
      : [{ kind, age: ageOf(event.seq), seq: event.seq, words, least: Math.min(2, words.length) }];
  };
  const later = new Set(log.slice(upTo).flatMap((event) => names(textOf(event))));
  const facts: Record<FactKind, Fact[]> = {
    goal: said
      .filter(isPerson)
      .slice(0, 1)
      .flatMap((event) => bySentence('goal', event, textOf(event).slice(0, 400))),
    constraint: said.filter(isPerson).flatMap((event) =>
      sentences(textOf(event))
        .filter((one) => DEMAND.test(one))
        .flatMap((one) => bySentence('constraint', event, one)),
    ),
    decision: decisions(said).flatMap(({ event, sentence }) => bySentence('decision', event, sentence)),
    number: numbers(said, log, ageOf, rarity),
    file: files(known).map(({ name, seq }) => ({
      kind: 'file' as const,
      age: ageOf(seq),
      seq,
      words: [name],
      least: 1,
    })),
    task: tasks(known).flatMap(({ event, item }) => bySentence('task', event, item)),
    error: errors(known).flatMap(({ event, line }) => bySentence('error', event, line)),
    state: said
      .filter((event) => !isPerson(event))
      .slice(-3)
      .flatMap((event) =>
        sentences(textOf(event))
          .filter((one) => names(one).length > 0 || (one.match(NUMBER) ?? []).length > 0)
          .flatMap((one) => bySentence('state', event, one)),
      ),
    name: topNames(known, later).map(({ name, seq }) => ({
      kind: 'name' as const,
      age: ageOf(seq),
      seq,
      words: [name],
      least: 1,
    })),
  };
  const after = log.slice(upTo).map((event) => eventText(event).toLowerCase());
  const isNeeded = ({ kind, words, least }: Fact) =>
    kind === 'goal' ||
    kind === 'constraint' ||
    after.some((text) => words.filter((word) => text.includes(word.toLowerCase())).length >= least);
  return FACT_KINDS.flatMap((kind) => distinct(facts[kind].filter(isNeeded)).slice(-MOST_OF_A_KIND));
}

/** Whether a text says a fact. A file must be named as one that was made or changed. */
export function says(text: string, fact: Fact): boolean {
  const lower = text.toLowerCase();
  if (fact.kind === 'file') return saysChanged(text, fact.words[0] ?? '');
  const places = fact.words.flatMap((word, at) =>
    placesOf(lower, word.toLowerCase()).map((place) => ({ place, at })),
  );
  places.sort((a, b) => a.place - b.place);
  for (const [from, { place }] of places.entries()) {
    const near = new Set<number>();
    for (let at = from; at < places.length && (places[at]?.place ?? Infinity) <= place + WINDOW; at += 1)
      near.add(places[at]?.at ?? -1);
    if (near.size >= fact.least) return true;
  }
  return false;
}

function saysChanged(text: string, name: string): boolean {
  const lines = text.split('\n');
  return lines.some((line, at) => {
    if (!line.includes(name)) return false;
    const heading =
      lines.slice(Math.max(0, at - 12), at).findLast((each) => /^\s*(?:#|\*\*)|:\**\s*$/.test(each)) ?? '';
    return CHANGED.test(line.replaceAll(name, '')) || CHANGED.test(heading);
  });
}

function placesOf(text: string, word: string): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(word); at !== -1 && places.length < 200; at = text.indexOf(word, at + 1))
    places.push(at);
  return places;
}

function isPerson({ author }: Event): boolean {
  return author.kind === 'user';
}

function textOf(event: Event): string {
  return event.kind === 'message' || event.kind === 'step' ? event.body.content : '';
}

function sentences(text: string): string[] {
  return text
    .replace(/```[\s\S]*?```/g, ' ')
    .split(/(?<=[.!?])\s+|\n/)
    .map((line) => line.replace(/^\s*(?:[-*#>]+|\d+\.)\s+/, '').trim())
    .filter((line) => line.length >= 12 && line.length <= 260);
}

function names(text: string): string[] {
  return (text.match(NAME) ?? []).filter((name) => name.length > 3);
}

/** In how many events a word occurs. */
function rarityIn(log: readonly Event[]): Map<string, number> {
  const uses = new Map<string, number>();
  for (const event of log)
    for (const word of new Set((textOf(event).match(WORD) ?? []).map((each) => each.toLowerCase())))
      uses.set(word, (uses.get(word) ?? 0) + 1);
  return uses;
}

function rareWords(sentence: string, rarity: ReadonlyMap<string, number>): string[] {
  const words = [...new Set(sentence.match(WORD) ?? [])].filter((word) => word.length > 3 || /\d/.test(word));
  const use = (word: string) => rarity.get(word.toLowerCase()) ?? 1;
  return words.toSorted((a, b) => use(a) - use(b) || (a < b ? -1 : 1)).slice(0, 3);
}

function decisions(said: readonly Event[]): { event: Event; sentence: string }[] {
  return said.flatMap((event, at) => {
    if (!isPerson(event)) return [];
    const before = said[at - 1];
    const isAnswer = before !== undefined && !isPerson(before) && textOf(before).trimEnd().endsWith('?');
    const all = sentences(textOf(event));
    return all
      .filter((one, index) => DECIDES.test(one) || (isAnswer && index === 0 && one.length > 20))
      .map((sentence) => ({ event, sentence }));
  });
}

function numbers(
  said: readonly Event[],
  log: readonly Event[],
  ageOf: (seq: number) => Age,
  rarity: ReadonlyMap<string, number>,
): Fact[] {
  const uses = new Map<string, Set<number>>();
  for (const event of log)
    for (const [number] of textOf(event).matchAll(NUMBER))
      uses.set(number, (uses.get(number) ?? new Set()).add(event.seq));
  return said.flatMap((event) =>
    sentences(textOf(event)).flatMap((sentence) =>
      [...sentence.matchAll(NUMBER)].flatMap(([number]): Fact[] => {
        if ((uses.get(number)?.size ?? 0) < 2) return [];
        const beside = rareWords(sentence.replace(number, ' '), rarity)[0];
        return beside === undefined
          ? []
          : [{ kind: 'number', age: ageOf(event.seq), seq: event.seq, words: [number, beside], least: 2 }];
      }),
    ),
  );
}

function files(known: readonly Event[]): { name: string; seq: number }[] {
  const changed = new Map<string, { count: number; seq: number }>();
  for (const event of known) {
    if (event.kind !== 'step') continue;
    for (const { name, args } of event.body.calls) {
      if (!/write|edit|create|patch/i.test(name)) continue;
      const file = /"(?:file_?)?path": ?"([^"]+)"/i.exec(args)?.[1]?.split('/').at(-1);
      if (file !== undefined)
        changed.set(file, { count: (changed.get(file)?.count ?? 0) + 1, seq: event.seq });
    }
  }
  const all = [...changed].map(([name, { count, seq }]) => ({ name, count, seq }));
  const most = all.toSorted((a, b) => b.count - a.count).slice(0, 8);
  const newest = all.toSorted((a, b) => b.seq - a.seq).slice(0, 4);
  return [...new Set([...most, ...newest])];
}

function tasks(known: readonly Event[]): { event: Event; item: string }[] {
  const event = known.findLast((one) =>
    textOf(one)
      .split('\n')
      .some((line) => OPEN_LIST.test(line.trim()) || /^\s*[-*] \[ \] /.test(line)),
  );
  if (!event) return [];
  let isOpen = false;
  return textOf(event)
    .split('\n')
    .flatMap((line) => {
      if (/^\s*[-*] \[ \] /.test(line)) return [{ event, item: line }];
      if (OPEN_LIST.test(line.trim())) isOpen = true;
      else if (/^\s*(?:[-*]|\d+\.) /.test(line)) return isOpen ? [{ event, item: line }] : [];
      else if (line.trim() !== '') isOpen = false;
      return [];
    });
}

function errors(known: readonly Event[]): { event: Event; line: string }[] {
  const open = new Map<string, { event: Event; line: string }>();
  const commands = new Map<string, string>();
  for (const event of known.slice(-Math.ceil(known.length / 4))) {
    if (event.kind === 'step')
      for (const { id, name, args } of event.body.calls) commands.set(id, `${name} ${args}`);
    if (event.kind !== 'tool.result') continue;
    const command = commands.get(event.body.call) ?? event.body.name;
    const line = event.body.outcome === 'done' ? undefined : ERROR.exec(event.body.content)?.[0];
    if (line === undefined) open.delete(command);
    else open.set(command, { event, line });
  }
  return [...open.values()];
}

function topNames(known: readonly Event[], later: ReadonlySet<string>): { name: string; seq: number }[] {
  const uses = new Map<string, { count: number; seq: number }>();
  for (const event of known)
    for (const name of new Set(names(textOf(event))))
      uses.set(name, { count: (uses.get(name)?.count ?? 0) + 1, seq: event.seq });
  return [...uses]
    .filter(([name, { count }]) => count > 1 && later.has(name))
    .toSorted((a, b) => b[1].count - a[1].count || (a[0] < b[0] ? -1 : 1))
    .slice(0, MOST_OF_A_KIND)
    .map(([name, { seq }]) => ({ name, seq }));
}

function distinct(facts: readonly Fact[]): Fact[] {
  return [...new Map(facts.map((fact) => [fact.words.join('\n'), fact])).values()];
}
