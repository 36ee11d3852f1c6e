import {
  type Event,
  type EventOf,
  type Facts,
  type Saying,
  type StepBody,
  type ToolCall,
  type ToolResultBody,
  type Author,
  isAbout,
} from '../../events/index.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { isTrustedPerson, type Trusted, agentLabel } from '../text/people.ts';
import { attemptOf, errorLines, errorsOf, saysFixed, settledBy, filesOf, findWords } from './findings.ts';
import { addDemandsOf } from './corrections.ts';
import { constraintsOf } from './demands.ts';
import { closedBy, taskId, type Tasks, tasksOf, task } from './task-lists.ts';
import {
  demandingText,
  limitedReader,
  readLimits,
  spokenText,
  addSaying,
  keyOf,
  type Sayings,
  sayingsOf,
  speakerOfEvent,
} from './spoken-text.ts';
import { capped, oneLine, sentencesOf, bare } from '../text/cut-text.ts';

/** Maximum names taken from one result. More would push out needed names, and the artifact of the result has all of them. */
const MAX_NEW_PER_RESULT = 150;
const MAX_NAME = 256;
const MAX_FAILURE = 240;
/** Maximum names of a list. It keeps those mentioned last. */
const MOST_NAMES = 500;
const MOST_ERRORS = 24;
/** Arguments with more characters are not parsed: they hold a file and not the name of one. */
const MAX_PARSED = 1_048_576;
const EVENT_CHARS = 256;

type NameList = 'artifacts' | 'filesRead' | 'filesModified' | 'identifiers' | 'passing';
type SayingList = Exclude<keyof Facts, NameList>;
type Lists = Record<NameList, Set<string>> & Record<SayingList, Sayings>;
type Read = (text: string) => string;

/**
 * Facts found without a model, with their speakers. It is a fold over events: collected in one part or in several, the lists
 * are the same, if all texts are within the read limits and no part separates a call from its result. Removed are tasks that
 * the events show as done, errors of an attempt that later succeeds or that somebody reports as fixed, and the names that
 * were not mentioned for the longest time.
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
    addError(lists.errors, {
      text: failureOf(event.body),
      ...speakerOfEvent(event, trusted),
      attempt,
    });
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

/** Removes errors of earlier attempts at the same thing, which succeeded by now or failed again with new errors. */
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

/** A demand of a trusted person is a constraint. A demand of anybody else, or a report of a demand, is a claim. */
function addDemands({ constraints, claims }: Lists, event: Event, text: string, trusted: Trusted): void {
  // Words of the runtime are not kept, because the frozen layers have its rules.
  if (event.author.kind === 'system') return;
  const own = demandingText(event, text);
  if (own === '') return;
  const speaker = speakerOfEvent(event, trusted);
  if (!isTrustedPerson(trusted, event)) {
    for (const text of constraintsOf(own, event.author.kind === 'agent'))
      addSaying(claims, { text, ...speaker });
    return;
  }
  addDemandsOf(constraints, own, speaker);
}

/** Only the author, trusted people and agents can mark a task as done. Agents can, because they do the work. */
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
    // A task with a number is listed once, with its newest text.
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

/** Whether an entry is a task of a list. Questions, delegations and approvals have their own closing events. */
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
 * Adds names. Paths of files in calls are skipped, because the lists of files have them. A name counts as used if a person said
 * it, or if an agent says or passes it after it occurred before. Other names, for example from results, are only in `passing`.
 */
function addWords(lists: Lists, text: string, where: 'person' | 'speech' | 'call' | 'result'): void {
  const { identifiers, passing, filesRead, filesModified } = lists;
  const isSpoken = where === 'person' || where === 'speech';
  const { paths, ids, names } = findWords(text, isSpoken);
  // A relative path outside of speech is skipped, because it depends on the file that contains it, as imports in code do.
  const places = isSpoken ? paths : paths.filter((path) => !/^\.{1,2}\//.test(path));
  const words = [...new Set([...ids, ...places, ...names])].filter(
    (word) => word.length <= MAX_NAME && !filesRead.has(word) && !filesModified.has(word),
  );
  const used = words.filter(
    (word) => identifiers.has(word) || where === 'person' || (where !== 'result' && passing.has(word)),
  );
  // A name that occurs again in a result does not become newer.
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

/** Adds entries at the end, and moves known ones there. A full list drops its first entries. */
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

const ENDED = /^(?:completed|done|cancell?ed|finished|closed|removed)$/i;
const TODO_TOOL = /todo|task_?list|checklist|plan/i;

function tasksOfCall({ name, args }: ToolCall): Tasks {
  const tasks: Tasks = { open: [], done: [] };
  if (!TODO_TOOL.test(name)) return tasks;
  let root: unknown;
  try {
    root = JSON.parse(args);
  } catch {
    // Arguments that are not JSON contain no list.
    return tasks;
  }
  const lists = typeof root === 'object' && root !== null ? Object.values(root) : [];
  for (const item of lists.flatMap((list) => (Array.isArray(list) ? list : []))) {
    const { text, status } = readItem(item);
    if (text !== '') (ENDED.test(status) ? tasks.done : tasks.open).push(task(text));
  }
  return tasks;
}

function readItem(item: unknown): { text: string; status: string } {
  if (typeof item === 'string') return { text: item, status: '' };
  if (typeof item !== 'object' || item === null) return { text: '', status: '' };
  const fields = new Map<string, unknown>(Object.entries(item));
  const text = ['content', 'text', 'task', 'title', 'step', 'description']
    .map((name) => fields.get(name))
    .find((value) => typeof value === 'string');
  const status = fields.get('status') ?? (fields.get('done') === true ? 'done' : '');
  return {
    text: typeof text === 'string' ? text : '',
    status: typeof status === 'string' ? status : '',
  };
}

const MAX_QUESTIONS = 3;

export function questionsOf(text: string): string[] {
  const asked = sentencesOf(text).map(bare);
  return asked
    .filter((sentence) => /[?？]["'”’»)]*$/.test(sentence) && sentence.length > 5)
    .slice(-MAX_QUESTIONS);
}

const MAX_ITEM = 320;
const MAX_READ = 4_096;

/** Adds questions. A question stays open until a participant who may answer it speaks. */
function trackQuestions(pending: Sayings, event: Event, text: string, trusted: Trusted): void {
  for (const [key, entry] of pending) if (isAnswered(entry, event)) pending.delete(key);
  for (const question of questionsOf(text)) ask(pending, event, question, trusted);
}

function ask(pending: Sayings, event: Event, question: string, trusted: Trusted): void {
  const asks = event.to.map((agent) => agentLabel(agent));
  addSaying(pending, { text: capped(question, MAX_ITEM), ...speakerOfEvent(event, trusted), asks });
}

function isAnswered(entry: Saying, { author }: Event): boolean {
  if (author.kind === 'system') return false;
  const { by, asks } = entry;
  if (!asks || (by.kind === author.kind && by.id === author.id)) return false;
  return mayAnswer(author, by.kind === 'agent', asks);
}

/** Everybody else may answer a person's question. People and the asked agents may answer an agent's question. */
function mayAnswer(author: Author, byAgent: boolean, asked: readonly string[]): boolean {
  return author.kind === 'user' || !byAgent || asked.includes(agentLabel(author.id));
}

/** Tracks open tasks between agents and people. Each is closed by the event that names its id. */
function trackTasks(pending: Sayings, event: Event): void {
  if (!isAbout(event, 'taskOpening') && !isAbout(event, 'taskEnd')) return;
  switch (event.kind) {
    case 'delegation.opened':
      open(pending, event, delegation(event.body.delegation, ` @${event.body.assignee}: ${event.body.task}`));
      break;
    case 'delegation.ended':
      close(pending, delegation(event.body.delegation));
      break;
    case 'approval.requested':
      open(pending, event, approval(event.body.request, ` ${event.body.tool}: ${event.body.args}`));
      break;
    case 'approval.decided':
      close(pending, approval(event.body.request));
      break;
    case 'question.answered':
      for (const [key, entry] of pending)
        if (entry.text.endsWith(`(question ${event.body.question})`)) pending.delete(key);
      break;
    case 'question': {
      // A long question is cut before its id, because the id is needed to close the entry.
      const id = ` (question ${event.body.question})`;
      const text = capped(oneLine(event.body.text.slice(0, MAX_READ)), Math.max(MAX_ITEM - id.length, 2));
      ask(pending, event, `${text}${id}`, null);
      break;
    }
  }
}

function isTracked(text: string): boolean {
  return /^(?:delegation \S+ to|approval \S+ of) /.test(text);
}

function delegation(id: string, rest = ''): string {
  return `delegation ${id} to${rest}`;
}

function approval(id: string, rest = ''): string {
  return `approval ${id} of${rest}`;
}

function open(pending: Sayings, event: Event, item: string): void {
  addSaying(pending, {
    text: capped(oneLine(item.slice(0, MAX_READ)), MAX_ITEM),
    ...speakerOfEvent(event, null),
  });
}

function close(pending: Sayings, opening: string): void {
  for (const [key, entry] of pending) if (entry.text.startsWith(`${opening} `)) pending.delete(key);
}
