import type {
  Event,
  EventOf,
  Facts,
  Saying,
  StepBody,
  ToolCall,
  ToolResultBody,
} from '../../events/index.ts';
import { atOnce, type Steps } from '../steps.ts';
import { isTrustedPerson, type Trusted } from '../people.ts';
import { attemptOf, errorLines, errorsOf, saysFixed, settledBy } from './find-errors.ts';
import { constraintsOf } from './lexicon.ts';
import { filesOf, findWords } from './find-names.ts';
import { isTracked, trackTasks, trackQuestions, tasksOfCall } from './find-pending.ts';
import { closedBy, taskId, type Tasks, tasksOf } from './task-lists.ts';
import { demandingText, limitedReader, readLimits, spokenText } from './spoken-text.ts';
import { addSaying, keyOf, type Sayings, sayingsOf, speakerOfEvent } from './sayings.ts';
import { capped, oneLine, sentencesOf } from './cut-text.ts';

/** Most names taken from one result. More would push out names that are needed, and the artifact has them all. */
const MAX_NEW_PER_RESULT = 150;
const MAX_NAME = 256;
const MAX_FAILURE = 240;
/** Each list of names keeps those mentioned last. */
const MOST_NAMES = 500;
/** Errors kept, the newest. */
const MOST_ERRORS = 24;
/** Longer arguments hold a file, not the name of one. */
const MAX_PARSED = 1_048_576;
/** Fixed cost of an event, in characters. */
const EVENT_CHARS = 256;

type NameList = 'artifacts' | 'filesRead' | 'filesModified' | 'identifiers' | 'passing';
type SayingList = Exclude<keyof Facts, NameList>;
type Lists = Record<NameList, Set<string>> & Record<SayingList, Sayings>;
type Read = (text: string) => string;

/**
 * Facts found without a model, with their speakers. A fold over events: collected in one part or in several, the lists
 * are the same, as long as everything can be read (see `readLimits`) and no call is apart from its result. What leaves:
 * tasks that the events show done, errors of an attempt that later succeeds or that somebody reports as fixed, and
 * the names that were not mentioned for longest.
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
    passing: new Set(previous?.passing),
    errors: sayingsOf(previous?.errors),
    constraints: sayingsOf(previous?.constraints),
    claims: sayingsOf(previous?.claims),
    pending: sayingsOf(previous?.pending),
  };
  const limits = readLimits(events);
  const calls: Calls = new Map();
  for (const event of events) {
    const read = limitedReader(limits(event));
    let length = 0;
    collect({ lists, calls, trusted }, event, (text) => {
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
    ...(lists.passing.size > 0 && { passing: [...lists.passing] }),
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

/** Calls that wait for their results, by author and id. */
type Calls = Map<string, ToolCall>;

interface Collecting {
  lists: Lists;
  calls: Calls;
  trusted: Trusted;
}

function collect({ lists, calls, trusted }: Collecting, event: Event, read: Read): void {
  if (event.kind === 'tool.result') {
    const key = `${event.author.id} ${event.body.call}`;
    addResult(lists, event.body, calls.get(key) ?? null, read);
    calls.delete(key);
    return;
  }
  const text = read(spokenText(event));
  if (event.kind === 'step') {
    for (const call of event.body.calls) calls.set(`${event.author.id} ${call.id}`, call);
    addCalls(lists, event, read);
  }
  if (text !== '') addSpeech(lists, event, text, trusted);
  trackTasks(lists.pending, event);
  const attempt = `turn of ${event.author.id}`;
  if (event.kind === 'message' && event.author.kind === 'agent') settle(lists.errors, [attempt]);
  if (event.kind === 'turn.failed')
    addError(lists.errors, { text: failureOf(event.body), ...speakerOfEvent(event, trusted), attempt });
}

function addResult(lists: Lists, result: ToolResultBody, call: ToolCall | null, read: Read): void {
  const { artifact, name } = result;
  const body = { ...result, content: read(result.content) };
  addArtifacts(lists, body.content);
  if (artifact !== undefined) add(lists.artifacts, [`@artifact/${artifact}`]);
  const known = call !== null && call.args.length <= MAX_PARSED ? call : null;
  const errors = errorsOf(body, known);
  const attempt = known ? attemptOf(known) : undefined;
  if (known) settle(lists.errors, errors.length === 0 ? settledBy(known) : [attempt ?? '']);
  const by = { kind: 'tool' as const, id: name, name };
  for (const text of errors) addError(lists.errors, { text, by, ...(attempt !== undefined && { attempt }) });
  addWords(lists, body.content, 'result');
}

function addError(errors: Sayings, entry: Saying): void {
  addSaying(errors, entry);
  for (const key of errors.keys()) {
    if (errors.size <= MOST_ERRORS) break;
    errors.delete(key);
  }
}

/** Errors of earlier attempts at the same leave: it succeeded, or failed again with errors of its own. */
function settle(errors: Sayings, attempts: readonly string[]): void {
  for (const [key, entry] of errors)
    if (entry.attempt !== undefined && attempts.includes(entry.attempt)) errors.delete(key);
}

function addSpeech(lists: Lists, event: Event, text: string, trusted: Trusted): void {
  addArtifacts(lists, text);
  addWords(lists, text, event.author.kind === 'user' ? 'person' : 'speech');
  const speaker = speakerOfEvent(event, trusted);
  if (speaker.untrusted !== true && lists.errors.size > 0) {
    for (const sentence of sentencesOf(text))
      for (const [key, entry] of lists.errors) if (saysFixed(sentence, entry.text)) lists.errors.delete(key);
  }
  for (const line of errorLines(text)) addError(lists.errors, { text: line, ...speaker });
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
  const mayClose = (entry: Saying) => speaker.untrusted !== true || entry.by.id === event.author.id;
  if (done.length > 0) {
    const isClosed = closedBy(done);
    for (const [key, entry] of pending)
      if (isTask(entry) && isClosed(entry.text) && mayClose(entry)) pending.delete(key);
  }
  const numbered = open.some((text) => taskId(text) !== null)
    ? numberedTasks(pending)
    : new Map<string, string[]>();
  for (const text of open) {
    const saying = { text, ...speaker };
    // A task with a number is listed once, in its newest words.
    const id = taskId(text);
    if (id !== null) {
      const keys = numbered.get(id) ?? [];
      for (const key of keys) {
        const entry = pending.get(key);
        if (entry !== undefined && mayClose(entry)) pending.delete(key);
      }
      numbered.set(id, [...keys.filter((key) => pending.has(key)), keyOf(saying)]);
    }
    addSaying(pending, saying);
  }
}

/** The keys of the open tasks by their number. */
function numberedTasks(pending: Sayings): Map<string, string[]> {
  const numbered = new Map<string, string[]>();
  for (const [key, entry] of pending) {
    const id = isTask(entry) ? taskId(entry.text) : null;
    if (id === null) continue;
    const keys = numbered.get(id);
    if (keys) keys.push(key);
    else numbered.set(id, [key]);
  }
  return numbered;
}

/** Questions, delegations and approvals are closed by events of their own. */
function isTask(entry: Saying): boolean {
  return entry.asks === undefined && !isTracked(entry.text);
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
    addWords(lists, args, 'call');
    addArtifacts(lists, args);
  }
}

const ARTIFACT = /@artifact\/([A-Za-z0-9][\w.@:-]{0,255})/g;

function addArtifacts(lists: Lists, text: string): void {
  if (!text.includes('@artifact/')) return;
  for (const [, id = ''] of text.matchAll(ARTIFACT))
    add(lists.artifacts, [`@artifact/${id.replace(/(?<![.:@-])[.:@-]+$/, '')}`]);
}

/**
 * Paths named by calls are in the lists of files already. A name counts once it was used: in words of a person, or in
 * words or calls of an agent after it had been met before. What only results contain is met in passing.
 */
function addWords(lists: Lists, text: string, where: 'person' | 'speech' | 'call' | 'result'): void {
  const { identifiers, passing, filesRead, filesModified } = lists;
  const isSpoken = where === 'person' || where === 'speech';
  const { paths, ids, names } = findWords(text, isSpoken);
  // A path from where some file is says nothing elsewhere: code names its modules so.
  const places = isSpoken ? paths : paths.filter((path) => !/^\.{1,2}\//.test(path));
  const words = [...new Set([...ids, ...places, ...names])].filter(
    (word) => word.length <= MAX_NAME && !filesRead.has(word) && !filesModified.has(word),
  );
  const used = words.filter(
    (word) => identifiers.has(word) || where === 'person' || (where !== 'result' && passing.has(word)),
  );
  // A result that repeats a known name does not make it newer.
  if (where !== 'result') {
    for (const word of used) passing.delete(word);
    add(identifiers, used);
  }
  const met = words.filter((word) => !identifiers.has(word));
  add(passing, isSpoken ? met : met.slice(0, MAX_NEW_PER_RESULT));
}

function failureOf({ code, message }: EventOf<'turn.failed'>['body']): string {
  return capped(`${code}: ${oneLine(message)}`, MAX_FAILURE);
}

/** Adds entries at the end, where known ones move as well. The first ones of a full list leave. */
function add(list: Set<string>, entries: readonly string[]): void {
  for (const entry of entries) {
    if (entry === '') continue;
    list.delete(entry);
    list.add(entry);
    if (list.size <= MOST_NAMES) continue;
    const [oldest = ''] = list;
    list.delete(oldest);
  }
}
