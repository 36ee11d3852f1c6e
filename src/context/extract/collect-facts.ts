import type { Event, EventOf, Facts, StepBody } from '../../events/index.ts';
import { atOnce, type Steps } from '../steps.ts';
import { isTrustedPerson, type Trusted } from '../people.ts';
import { constraintsOf, errorLines, errorsOf } from './lexicon.ts';
import { filesOf, findWords } from './find-names.ts';
import { trackTasks, trackQuestions, type Tasks, tasksOf, tasksOfCall } from './find-pending.ts';
import { demandingText, limitedReader, readLimits, spokenText } from './spoken-text.ts';
import { addSaying, type Sayings, sayingsOf, speakerOfEvent, wordsOf } from './sayings.ts';
import { capped, oneLine } from './cut-text.ts';

/** Most names taken from one result. More would push out names that are needed, and the artifact has them all. */
const MAX_NEW_PER_RESULT = 150;
const MAX_NAME = 256;
const MAX_FAILURE = 240;
/** Each list of names keeps the newest. */
const MOST_NAMES = 2_000;
/** Longer arguments hold a file, not the name of one. */
const MAX_PARSED = 1_048_576;
/** Fixed cost of an event, in characters. */
const EVENT_CHARS = 256;

type NameList = 'artifacts' | 'filesRead' | 'filesModified' | 'identifiers';
type SayingList = Exclude<keyof Facts, NameList>;
type Lists = Record<NameList, Set<string>> & Record<SayingList, Sayings>;
type Read = (text: string) => string;

/**
 * Facts found without a model, with their speakers. They must survive every compaction. A fold over events: collected
 * in one part or in several, the lists are the same, as long as everything can be read (see `readLimits`). Entries of
 * `previous` are dropped only if they are pending and the events show them done, or if they are the oldest of a full
 * list.
 */
export function* collectFactsSteps(
  events: readonly Event[],
  previous: Facts | null,
  trusted: Trusted = null,
): Steps<Facts> {
  const lists: Lists = {
    artifacts: new Set(previous?.artifacts),
    filesRead: new Set(previous?.filesRead),
    filesModified: new Set(previous?.filesModified),
    identifiers: new Set(previous?.identifiers),
    errors: sayingsOf(previous?.errors),
    constraints: sayingsOf(previous?.constraints),
    claims: sayingsOf(previous?.claims),
    pending: sayingsOf(previous?.pending),
  };
  const limits = readLimits(events);
  for (const event of events) {
    const read = limitedReader(limits(event));
    let length = 0;
    collect(lists, event, trusted, (text) => {
      const piece = read(text);
      length += piece.length;
      return piece;
    });
    yield length + EVENT_CHARS;
  }
  return {
    artifacts: [...lists.artifacts],
    filesRead: [...lists.filesRead],
    filesModified: [...lists.filesModified],
    identifiers: [...lists.identifiers],
    errors: [...lists.errors.values()],
    constraints: [...lists.constraints.values()],
    claims: [...lists.claims.values()],
    pending: [...lists.pending.values()],
  };
}

export function collectFacts(
  events: readonly Event[],
  previous: Facts | null,
  trusted: Trusted = null,
): Facts {
  return atOnce(collectFactsSteps(events, previous, trusted));
}

function collect(lists: Lists, event: Event, trusted: Trusted, read: Read): void {
  if (event.kind === 'tool.result') {
    const { artifact, name } = event.body;
    const body = { ...event.body, content: read(event.body.content) };
    addArtifacts(lists, body.content);
    if (artifact !== undefined) add(lists.artifacts, [`@artifact/${artifact}`]);
    const by = { kind: 'tool' as const, id: name, name };
    for (const text of errorsOf(body)) addSaying(lists.errors, { text, by });
    addWords(lists, body.content, false);
    return;
  }
  const text = read(spokenText(event));
  if (event.kind === 'step') addCalls(lists, event, read);
  if (text !== '') addSpeech(lists, event, text, trusted);
  trackTasks(lists.pending, event);
  if (event.kind === 'turn.failed')
    addSaying(lists.errors, { text: failureOf(event.body), ...speakerOfEvent(event, trusted) });
}

function addSpeech(lists: Lists, event: Event, text: string, trusted: Trusted): void {
  addArtifacts(lists, text);
  addWords(lists, text, true);
  const speaker = speakerOfEvent(event, trusted);
  for (const line of errorLines(text)) addSaying(lists.errors, { text: line, ...speaker });
  addDemands(lists, event, text, trusted);
  addTasks(lists, event, tasksOf(text), trusted);
  if (event.kind === 'message') trackQuestions(lists.pending, event, text, trusted);
}

/** A trusted person's demand is a constraint. Anybody else's demand, or report of one, is a claim. */
function addDemands({ constraints, claims }: Lists, event: Event, text: string, trusted: Trusted): void {
  // The runtime's own words are not carried on: its rules stand in the frozen layers.
  if (event.author.kind === 'system') return;
  const own = demandingText(event, text);
  if (own === '') return;
  const list = isTrustedPerson(trusted, event) ? constraints : claims;
  const speaker = speakerOfEvent(event, trusted);
  for (const demand of constraintsOf(own, event.author.kind === 'agent'))
    addSaying(list, { text: demand, ...speaker });
}

/** Only the author, trusted people and agents can tick off a task: agents do the work. */
function addTasks({ pending }: Lists, event: Event, { open, done }: Tasks, trusted: Trusted): void {
  const speaker = speakerOfEvent(event, trusted);
  for (const text of open) addSaying(pending, { text, ...speaker });
  if (done.length === 0) return;
  const ended = new Set(done);
  for (const [key, entry] of pending) {
    const isOwn = typeof entry !== 'string' && entry.by.id === event.author.id;
    if (ended.has(wordsOf(entry)) && (isOwn || speaker.untrusted !== true)) pending.delete(key);
  }
}

function addCalls(lists: Lists, event: EventOf<'step'>, read: Read): void {
  const { calls }: StepBody = event.body;
  for (const call of calls) {
    if (call.args.length <= MAX_PARSED) {
      const { read: opened, modified } = filesOf(call);
      add(lists.filesRead, opened);
      add(lists.filesModified, modified);
      addTasks(lists, event, tasksOfCall(call), null);
    }
    const args = read(call.args);
    addWords(lists, args, false);
    addArtifacts(lists, args);
  }
}

const ARTIFACT = /@artifact\/([A-Za-z0-9][\w.@:-]{0,255})/g;

function addArtifacts(lists: Lists, text: string): void {
  if (!text.includes('@artifact/')) return;
  for (const [, id = ''] of text.matchAll(ARTIFACT))
    add(lists.artifacts, [`@artifact/${id.replace(/(?<![.:@-])[.:@-]+$/, '')}`]);
}

/** Paths named by calls are in the lists of files already. */
function addWords({ identifiers, filesRead, filesModified }: Lists, text: string, spoken: boolean): void {
  const { paths, ids, names } = findWords(text, spoken);
  const words = [...ids, ...paths, ...names].filter(
    (word) => !filesRead.has(word) && !filesModified.has(word),
  );
  const fresh = words.filter((word) => word.length <= MAX_NAME && !identifiers.has(word));
  add(identifiers, spoken ? fresh : [...new Set(fresh)].slice(0, MAX_NEW_PER_RESULT));
}

function failureOf({ code, message }: EventOf<'turn.failed'>['body']): string {
  return capped(`${code}: ${oneLine(message)}`, MAX_FAILURE);
}

function add(list: Set<string>, entries: readonly string[]): void {
  for (const entry of entries) {
    if (entry === '' || list.has(entry)) continue;
    list.add(entry);
    if (list.size <= MOST_NAMES) continue;
    const [oldest = ''] = list;
    list.delete(oldest);
  }
}
