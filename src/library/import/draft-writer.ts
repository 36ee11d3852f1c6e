import { createHash } from 'node:crypto';
import {
  type Author,
  type ConversationId,
  type EventDraft,
  type EventId,
  type ToolCall,
  type BaselineBody,
  type CompactionBody,
  type LiveItems,
  parseTurnId,
  turnOfRuntimeId,
  isAbout,
} from '../../events/index.ts';
import type {
  AssistantEntry,
  ForeignCall,
  ResultEntry,
  SaidEntry,
  SummaryEntry,
  TranscriptEntry,
} from './importers.ts';
import {
  excerpt,
  type ImportReport,
  noteRepair,
  noteSkip,
  isObject,
  type JsonObject,
  jsonText,
} from './report.ts';
import { TroupeError } from '../../base/errors.ts';

type Position = { conversation: ConversationId; at: number | null; line: number };
/** An event of an export, which needs no translation. */
export type DraftEntry = { kind: 'draft'; line: number; at: number | null; draft: EventDraft };
export type ContentEntry = Exclude<TranscriptEntry, { kind: 'begin' }> | DraftEntry;
/** A recorded summary becomes a compaction only when it is appended, because only then are the covered events known. */
export type ImportItem = Position &
  ({ draft: EventDraft; summary?: undefined } | { draft: null; summary: RecordedSummary });

export interface RecordedSummary {
  /** Counts from 1 in the conversation. */
  number: number;
  /** The last covered event, and its seq in a conversation that begins with the file. */
  last: EventId;
  upTo: number;
  text: string;
  filesRead: readonly string[];
  filesModified: readonly string[];
}

export type ImportAuthors = { agent: Author; user: Author };

const SYSTEM: Author = { kind: 'system', id: 'system', name: 'System' };
const MAX_NAME = 256;
/** Most summaries of one conversation: each is composed from all events that it covers. */
const MAX_SUMMARIES = 100;

/** Kind and body of a draft. Distributes over the union, so that they stay matched. */
type Content<D extends EventDraft = EventDraft> = D extends EventDraft
  ? Pick<D, 'kind' | 'body' | 'context'>
  : never;

/**
 * Turns the entries of one conversation into drafts. Owns their ids and places, the call ids and the step count of the turn.
 * 1. Ids depend only on the conversation and the position, so importing a file twice adds nothing.
 * 2. Drafts have no addressees, so they wake no agent.
 * 3. Nothing is invented: a call without a result stays without one, and the view shows that.
 */
export class DraftWriter {
  readonly #conversation: ConversationId;
  readonly #authors: ImportAuthors;
  readonly #report: ImportReport;
  readonly #prefix: string;
  readonly #calls = new CallIds();
  /** The line and the id of each event. A summary has no id. */
  readonly #written: { line: number; id: EventId | null }[] = [];
  /** The number of events before each entry. */
  readonly #starts: number[] = [];
  #summaries = 0;
  #covered = 0;
  #count = 0;
  #steps = 0;
  #unnamed = 0;
  #lastLine = 0;

  constructor(conversation: ConversationId, authors: ImportAuthors, report: ImportReport) {
    this.#conversation = conversation;
    this.#authors = authors;
    this.#report = report;
    this.#prefix = `imp-${createHash('sha256').update(conversation).digest('hex').slice(0, 12)}`;
  }

  *write(entry: ContentEntry): Generator<ImportItem, void> {
    this.#lastLine = entry.line;
    this.#starts.push(this.#written.length);
    switch (entry.kind) {
      case 'said':
        yield* this.#said(entry);
        return;
      case 'assistant':
        yield* this.#assistant(entry);
        return;
      case 'result':
        yield* this.#result(entry);
        return;
      case 'summary':
        yield* this.#summary(entry);
        return;
      case 'draft':
        yield { conversation: this.#conversation, draft: entry.draft, at: entry.at, line: entry.line };
    }
  }

  /** Ends the conversation. Calls that are still open stay without a result. */
  finish(): void {
    for (const call of this.#calls.stillOpen()) this.#missing(call.id, call.name);
  }

  *#said(entry: SaidEntry): Generator<ImportItem, void> {
    if (entry.text.trim() === '') {
      noteSkip(this.#report, 'empty_message', entry.line, 'nothing was said');
      return;
    }
    this.#steps = 0;
    const { user } = this.#authors;
    const author = entry.author === 'user' ? user : entry.author === 'system' ? SYSTEM : entry.author;
    const kind = entry.forPeople ? 'notice' : 'message';
    // The text is not from this runtime, so it is marked. In the order of the schema, so that an export of it is the
    // same.
    const marked = author === SYSTEM ? { context: { imported: true as const } } : {};
    yield this.#item(entry, author, { ...marked, kind, body: { content: entry.text } });
  }

  *#assistant(entry: AssistantEntry): Generator<ImportItem, void> {
    const { agent } = this.#authors;
    const { text, ended, line } = entry;
    if (entry.calls.length > 0) {
      this.#calls.beginStep();
      const calls = entry.calls.map((call) => this.#call(call, line));
      const body = { index: this.#steps, content: text, calls };
      const reasoning = entry.reasoning ?? undefined;
      yield this.#item(entry, agent, { kind: 'step', body: reasoning ? { ...body, reasoning } : body });
      this.#steps += 1;
    } else if (entry.reasoning) {
      noteRepair(this.#report, 'reasoning_dropped', line, 'a message without calls has no place for it');
    }
    if (ended) {
      const partial = entry.calls.length > 0 ? '' : text;
      yield this.#item(entry, agent, endingContent(ended, partial));
      this.#steps = 0;
      return;
    }
    if (entry.calls.length > 0) return;
    if (text.trim() === '') {
      noteSkip(this.#report, 'empty_message', line, 'the assistant said nothing');
      return;
    }
    this.#steps = 0;
    yield this.#item(entry, agent, { kind: 'message', body: { content: text } });
  }

  #call(call: ForeignCall, line: number): ToolCall {
    const args = argumentsText(call.args);
    if (args.repaired || call.partial) {
      noteRepair(this.#report, 'call_arguments', line, `${call.name}: ${excerpt(call.args)}`);
    }
    const name = call.name?.slice(0, MAX_NAME) ?? 'unknown';
    if (name !== call.name) noteRepair(this.#report, 'call_name', line, name);
    if (call.id === null) noteRepair(this.#report, 'call_without_id', line, name);
    const foreign = call.id ?? `call-${(this.#unnamed += 1)}`;
    const { id, lost } = this.#calls.open(foreign, name);
    for (const earlier of lost) this.#missing(earlier.id, earlier.name);
    if (id !== foreign) {
      const kind = foreign.length > id.length ? 'call_id_too_long' : 'duplicate_call';
      noteRepair(this.#report, kind, line, `${excerpt(foreign)} -> ${id}`);
    }
    return { id, name, args: args.text };
  }

  *#result(entry: ResultEntry): Generator<ImportItem, void> {
    const { call: foreign, line } = entry;
    const call = foreign === null ? this.#calls.closeByName(entry.name) : this.#calls.close(foreign);
    const known = foreign ?? call?.id ?? null;
    if (known === null) {
      noteSkip(this.#report, 'result_without_id', line, entry.text);
      return;
    }
    if (this.#calls.isToldTwice(known, entry.text, call !== null)) {
      noteSkip(this.#report, 'told_twice', line, entry.text);
      return;
    }
    // The id of an orphan counts as used, so that an earlier result is never matched to a later call.
    const id = call?.id ?? this.#calls.unique(known);
    if (call === null) noteRepair(this.#report, 'orphan_result', line, id);
    const name = (entry.name ?? call?.name ?? 'unknown').slice(0, MAX_NAME);
    const outcome = entry.failed ? 'failed' : 'done';
    const body = { call: id, name, outcome, content: entry.text } as const;
    yield this.#item(entry, this.#authors.agent, { kind: 'tool.result', body });
  }

  *#summary(entry: SummaryEntry): Generator<ImportItem, void> {
    const { line, at, text, files } = entry;
    const isEmpty = text.trim() === '';
    // The session continues another file; of that one, this file has only the summary.
    if (!isEmpty && this.#written.length === 0) {
      const words = `Summary of the conversation before:\n\n${text}`;
      yield* this.#said({ kind: 'said', line, at, author: 'system', text: words });
      return;
    }
    const upTo = this.#coveredBy(entry);
    const last = this.#written[upTo - 1]?.id;
    if (isEmpty || last == null || upTo <= this.#covered || this.#summaries >= MAX_SUMMARIES) {
      noteSkip(this.#report, 'summary', line, isEmpty ? 'it is empty' : 'it covers nothing new');
      return;
    }
    this.#covered = upTo;
    this.#written.push({ line, id: null });
    const number = (this.#summaries += 1);
    const { read: filesRead, modified: filesModified } = files;
    const summary = { number, last, upTo, text, filesRead, filesModified };
    yield { conversation: this.#conversation, at, line, draft: null, summary };
  }

  /** The number of events that a summary covers. Lines are in ascending order, so a binary search finds it. */
  #coveredBy({ keptFrom, kept }: SummaryEntry): number {
    let low = 0;
    let high = this.#written.length;
    while (kept === undefined && low < high) {
      const middle = (low + high) >> 1;
      if ((this.#written[middle]?.line ?? 0) >= keptFrom) high = middle;
      else low = middle + 1;
    }
    let upTo = kept === undefined ? low : (this.#starts.at(-1 - kept) ?? 0);
    while (upTo > 0 && this.#written[upTo - 1]?.id === null) upTo -= 1;
    return upTo;
  }

  #missing(id: string, name: string): void {
    noteRepair(this.#report, 'missing_result', this.#lastLine, `${name} ${id}`);
  }

  #item(entry: ContentEntry, author: Author, content: Content): ImportItem {
    this.#count += 1;
    const id = `${this.#prefix}-${this.#count}` as EventId;
    const draft: EventDraft = { id, author, to: [], ...content };
    this.#written.push({ line: entry.line, id });
    return { conversation: this.#conversation, draft, at: entry.at, line: entry.line };
  }
}

/** Schema limit of a call id, less the room for a `-<number>` suffix. */
const MAX_ID = 240;

type OpenCall = { id: string; name: string; step: number };

/**
 * Assigns the call ids of one conversation, each once, and matches results to calls.
 * 1. A foreign id that a call or an orphan result has used before gets a suffix: `-2`, `-3`, …
 * 2. A result answers the oldest open call of the newest step with its foreign id.
 */
class CallIds {
  readonly #used = new Set<string>();
  readonly #copies = new Map<string, number>();
  readonly #open = new Map<string, OpenCall[]>();
  readonly #answered = new Map<string, string>();
  #step = 0;

  beginStep(): void {
    this.#step += 1;
  }

  /** The id for a new call, and the earlier calls with the same foreign id that can no longer get a result. */
  open(foreign: string, name: string): { id: string; lost: OpenCall[] } {
    const id = this.unique(foreign);
    const known = this.#open.get(foreign) ?? [];
    const lost = known.filter((call) => call.step !== this.#step);
    const kept = known.filter((call) => call.step === this.#step);
    this.#open.set(foreign, [...kept, { id, name, step: this.#step }]);
    return { id, lost };
  }

  close(foreign: string): OpenCall | null {
    const calls = this.#open.get(foreign);
    const call = calls?.shift() ?? null;
    if (calls?.length === 0) this.#open.delete(foreign);
    return call;
  }

  /** Whether a call that has a result gets the same result again. */
  isToldTwice(foreign: string, text: string, isOpen: boolean): boolean {
    const hash = createHash('sha256').update(text).digest('base64');
    if (!isOpen && this.#answered.get(foreign) === hash) return true;
    this.#answered.set(foreign, hash);
    return false;
  }

  /** For results without a call id: closes the oldest open call, of this tool if it is known. */
  closeByName(name: string | null): OpenCall | null {
    for (const [foreign, calls] of this.#open) {
      if (name === null || calls[0]?.name === name) return this.close(foreign);
    }
    return null;
  }

  unique(foreign: string): string {
    const base = foreign.length <= MAX_ID ? foreign : shortened(foreign);
    let id = base;
    let copies = this.#copies.get(base) ?? 1;
    while (this.#used.has(id)) id = `${base}-${(copies += 1)}`;
    this.#copies.set(base, copies);
    this.#used.add(id);
    return id;
  }

  stillOpen(): OpenCall[] {
    return [...this.#open.values()].flat();
  }
}

function shortened(foreign: string): string {
  const hash = createHash('sha256').update(foreign).digest('hex').slice(0, 16);
  return `${foreign.slice(0, MAX_ID - 17)}-${hash}`;
}

function endingContent(ended: NonNullable<AssistantEntry['ended']>, partial: string): Content {
  if (ended.how === 'aborted') return { kind: 'turn.aborted', body: { covers: [], by: 'user', partial } };
  const body = { covers: [], code: 'provider_failed', message: ended.message, partial };
  return { kind: 'turn.failed', body };
}

/** Arguments of a call as the JSON text of an object, which every provider requires. Valid text keeps its bytes. */
function argumentsText(args: unknown): { text: string; repaired: boolean } {
  if (isObject(args)) return objectText(args);
  if (args == null) return { text: '{}', repaired: true };
  if (typeof args !== 'string') return { text: JSON.stringify({ _raw: jsonText(args) }), repaired: true };
  if (args.trim() === '') return { text: '{}', repaired: true };
  if (isObjectText(args)) return { text: args, repaired: false };
  return { text: JSON.stringify({ _raw: args }), repaired: true };
}

function objectText(args: JsonObject): { text: string; repaired: boolean } {
  const text = jsonText(args);
  return text.startsWith('{') ? { text, repaired: false } : { text: '{}', repaired: true };
}

function isObjectText(text: string): boolean {
  try {
    return isObject(JSON.parse(text));
  } catch {
    // Expected: models do write broken arguments.
    return false;
  }
}

/** Position of a draft in its file, and the conversation it is imported into. */
interface DraftPlace {
  conversation: ConversationId;
  line: number;
  /** Lines read so far. */
  place: number;
}

/**
 * Prepares an exported event for a log: marks it as imported, so that it carries no authority (`events/aspects.ts`),
 * and drops what another installation measured and what its runtime wrote in reminders. Throws `import_invalid`.
 *
 * No number in a log exceeds its own place, because each turn, epoch, step and compaction has events of its own. So
 * `place` is the limit of every count and every seq, and no imported summary can hide later events.
 */
export function admitDraft(draft: EventDraft, { conversation, line, place }: DraftPlace): EventDraft {
  for (const [name, number] of countsIn(draft, conversation)) {
    if (number <= place) continue;
    const message = `Line ${line}: ${name} ${number} of the event "${draft.id}" is beyond its place in the log (${place}); only a whole, unchanged export can be imported.`;
    throw new TroupeError('import_invalid', message, { line, id: draft.id, name, number });
  }
  const admitted = { ...draft, context: { ...draft.context, imported: true as const } };
  if (admitted.kind === 'turn.started')
    return { ...admitted, body: { ...admitted.body, live: timeOnly(admitted.body.live) } };
  if (admitted.kind !== 'turn.done') return admitted;
  // Token counts of another installation's provider would distort the calibration here.
  const { last: _last, ...body } = admitted.body;
  return { ...admitted, body };
}

const TIME = /^[\d:. TZ+-]{1,40}$/;

/** Only the time of a reminder is imported: its text would speak in the runtime's voice. */
function timeOnly({ time }: LiveItems): LiveItems {
  return time !== undefined && TIME.test(time) ? { time } : {};
}

/** A number with its name for the error message. */
type Count = readonly [name: string, number: number];

function countsIn(draft: EventDraft, conversation: ConversationId): Count[] {
  const { id, turn, context } = draft;
  const turns = [turn, turnOfRuntimeId(id, conversation)].flatMap((each) => parseTurnId(each ?? '') ?? []);
  return [
    ...turns.map(({ number }) => ['turn', number] as const),
    ...named('memories', context?.memories),
    ...countsOfBody(draft),
  ];
}

function countsOfBody(draft: EventDraft): Count[] {
  if (!isAbout(draft, 'counts')) return [];
  switch (draft.kind) {
    case 'turn.started':
      return [['upTo', draft.body.upTo], ...named('inputs', draft.body.inputs)];
    case 'turn.steered':
      return [['upTo', draft.body.upTo], ['step', draft.body.step], ...named('inputs', draft.body.inputs)];
    case 'turn.done':
      return [['steps', draft.body.steps], ...named('covers', draft.body.covers)];
    case 'turn.failed':
    case 'turn.aborted':
      return named('covers', draft.body.covers);
    case 'step':
      return [['index', draft.body.index]];
    case 'compaction':
      return countsOfCompaction(draft.body);
    case 'baseline':
      return countsOfBaseline(draft.body);
    case 'command':
      return [...named('inputs', draft.body.inputs), ['from.seq', draft.body.from?.seq ?? 0]];
  }
}

function countsOfCompaction({ number, upTo, quotes, chosen }: CompactionBody): Count[] {
  const seqs = [...quotes, ...chosen].map(({ seq }) => seq);
  return [['number', number], ['upTo', upTo], ...named('seq', seqs)];
}

function countsOfBaseline({ epoch, adopts }: BaselineBody): Count[] {
  return [
    ['epoch', epoch],
    ['adopts.upTo', adopts?.upTo ?? 0],
    ['adopts.turn.steps', adopts?.turn?.steps ?? 0],
  ];
}

function named(name: string, numbers: readonly number[] = []): Count[] {
  return numbers.map((number) => [name, number] as const);
}
