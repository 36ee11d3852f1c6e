import type { Answer, Troupe } from '../troupe.ts';
import {
  type Note,
  type AgentId,
  type ConversationId,
  type Event,
  type ToolOutcome,
  type TurnId,
  type EventOf,
  isAbout,
  type TurnNote,
  type ArgumentsNote,
  type CalledNote,
  type DroppedNote,
  type LivePlace,
  type ProgressNote,
  type ReasoningNote,
  type ResultNote,
  type StepBody,
  type TextNote,
  type ToolResultBody,
  type VoidNote,
} from '../../events/index.ts';

/** One reader's chat of a conversation, over several exchanges. */
export interface Chat {
  /**
   * What an event has led to and still leads to: a message, or the record of a command. Leaves out what an earlier call
   * has yielded, so that after an approval in a thread the message before it may be followed again.
   */
  follow(seq: number, signal: AbortSignal): AsyncGenerator<ChatChange, Answer>;
}

/** Opens a conversation for a client of a chat. */
export function openChat(troupe: Pick<Troupe, 'rejoin'>, conversation: string): Chat {
  const changesOf = chatChanges();
  /** Seq of the last event that was yielded, by conversation. */
  const told = new Map<string, number>();

  function isNews(note: Note): boolean {
    if (note.type !== 'event') return true;
    const { conversation: where, seq } = note.event;
    if (seq <= (told.get(where) ?? 0)) return false;
    told.set(where, seq);
    return true;
  }

  return {
    async *follow(seq, signal) {
      const going = troupe.rejoin(conversation, seq, { signal });
      try {
        for (;;) {
          const next = await going.next();
          if (next.done) return next.value;
          if (isNews(next.value)) yield* changesOf(next.value);
        }
      } finally {
        await going.return(undefined as never);
      }
    },
  };
}

/** Where in a turn something of a chat belongs. */
interface ChatPlace {
  /** The conversation that was asked about, or a thread of it. */
  conversation: ConversationId;
  /** Id of the agent. */
  agent: AgentId;
  /** Id of its turn. */
  turn: TurnId;
  /** Steps of the turn, from 1. */
  step: number;
}

/** Words of an agent in one step of its turn. */
export interface ChatBlock extends ChatPlace {
  /** Unique in the reader's chat. */
  id: string;
  /** `text`: what the agent says. `reasoning`: what its model thinks. */
  kind: 'text' | 'reasoning';
}

/** A tool call of an agent. */
export interface ChatCall extends ChatPlace {
  /** Unique in the reader's chat, unlike the ids of some model servers. An approved call keeps the id of its request. */
  id: string;
  /** Name of the tool. */
  name: string;
}

/** One change of a chat. Only `void` withdraws what was shown, so protocols whose messages only grow can follow it. */
export type ChatChange =
  | { type: 'block.start'; block: ChatBlock }
  | { type: 'block.delta'; id: string; text: string }
  | { type: 'block.end'; id: string }
  | { type: 'call.start'; call: ChatCall }
  /** The next piece of its arguments. */
  | { type: 'call.delta'; id: string; text: string }
  /** The arguments are complete. If they were changed before the call, `args` differs from the deltas and replaces them. */
  | { type: 'call.ready'; id: string; args: string }
  | {
      type: 'call.progress';
      id: string;
      text?: string | undefined;
      done?: number | undefined;
      total?: number | undefined;
    }
  /** `waiting`: people have to approve it first; the result comes later. */
  | { type: 'call.result'; id: string; outcome: ToolOutcome; text: string }
  /** These blocks and calls do not count: the model call failed, or the turn ended without them. */
  | { type: 'void'; ids: string[]; reason: string }
  /** An event of the log, after the changes that show its whole text. */
  | {
      type: 'event';
      event: Event;
      /** Of `approval.requested`: id of the call that waits, if it was shown. */
      call?: string | undefined;
    };

/**
 * Translates the notes of an exchange to changes of a chat. Owns what was shown of the running turns.
 *  B1  The text deltas of a turn without the void ones, joined, are the texts of its steps and its reply in the log. What a
 *      reader has missed is added before the event that contains it.
 *  B2  A block or call starts once, and then ends, or has its result, or is void. When its turn has ended, nothing is open.
 *  B3  Notes may be late, repeated, or of a void attempt: no text comes twice.
 *  B4  Every event comes once, in the order of its note.
 */
export function chatChanges(): (note: Note) => ChatChange[] {
  const turns = new Map<TurnId, ChatTurn>();
  /** The calls that wait for approval, by the id of the request: it is the id of the call when it runs. */
  const asked = new Map<string, string>();

  function turnOf({ turn, conversation, agent }: ChangeOwner): ChatTurn {
    const known = turns.get(turn);
    if (known) return known;
    const added = new ChatTurn({ turn, conversation, agent }, asked);
    turns.set(turn, added);
    return added;
  }

  function ofEvent(event: Event): ChatChange[] {
    const { turn, author, conversation } = event;
    if (turn === undefined || author.kind !== 'agent') return [];
    const shown = turnOf({ turn, conversation, agent: author.id as AgentId });
    if (isAbout(event, 'turnEnd')) {
      turns.delete(turn);
      return shown.end(event.kind === 'turn.done' ? '' : event.body.partial, reasonOf(event));
    }
    if (event.kind === 'step') return shown.commitStep(event.body);
    if (event.kind === 'tool.result') return shown.commitResult(event.body);
    if (event.kind === 'message') return shown.commitReply(event.body.content);
    return [];
  }

  function shownEvent(event: Event): ChatChange {
    const call =
      event.kind === 'approval.requested' && event.turn !== undefined
        ? turns.get(event.turn)?.noteRequest(event.id, event.body.request)
        : undefined;
    return { type: 'event', event, ...(call !== undefined && { call }) };
  }

  function ofTurn(note: TurnNote): ChatChange[] {
    const turn = turnOf(note);
    switch (note.type) {
      case 'text':
      case 'reasoning':
        return turn.words(note);
      case 'arguments':
        return turn.write(note);
      case 'dropped':
        return turn.drop(note);
      case 'called':
        return turn.run(note);
      case 'progress':
        return turn.progress(note);
      case 'result':
        return turn.result(note);
      case 'void':
        return turn.void(note);
    }
  }

  return (note) => {
    if (note.type === 'state') return [];
    if (note.type !== 'event') return ofTurn(note);
    return [...ofEvent(note.event), shownEvent(note.event)];
  };
}

/** The agent and conversation of a turn. */
interface ChangeOwner {
  turn: TurnId;
  conversation: ConversationId;
  agent: AgentId;
}

function reasonOf(event: EventOf<'turn.done' | 'turn.failed' | 'turn.aborted'>): string {
  switch (event.kind) {
    case 'turn.done':
      return 'the turn has ended without it';
    case 'turn.failed':
      return event.body.message;
    case 'turn.aborted':
      return `the turn was stopped by ${event.body.by}`;
  }
}

type Owner = Pick<ChatBlock, 'conversation' | 'agent' | 'turn'>;
type Place = Pick<LivePlace, 'attempt' | 'round' | 'step'>;

/** Text that was shown, in one block, or in several if other changes came between. */
interface Shown {
  ids: string[];
  said: string;
  isOpen: boolean;
}

interface ShownCall {
  id: string;
  /** Its arguments so far, as the notes have them. */
  written: string;
  /** The part of them that was shown. */
  args: string;
  isReady: boolean;
  outcome: ToolOutcome | null;
}

interface Step {
  /** The model call that it comes from. 0: not yet known. */
  round: number;
  text: Shown | null;
  reasoning: Shown | null;
  /** By the id from the model server. */
  calls: Map<string, ShownCall>;
  /** Calls in the order of the step. */
  order: string[];
}

/** What was shown of one running turn. Texts keep the order of their steps; the text of a step may come after its calls. */
class ChatTurn {
  readonly #owner: Owner;
  /** The calls that wait for approval, by the id of the request. Shared by the turns of a chat. */
  readonly #asked: Map<string, string>;
  readonly #steps = new Map<number, Step>();
  readonly #used = new Map<string, number>();
  #attempt = 0;
  /** Number of steps whose events have come. */
  #committed = 0;
  /**
   * Why the text of the last model call does not count, by step. The text stays until another call begins, because the
   * end of a failed or stopped turn contains it.
   */
  readonly #failed = new Map<number, string>();

  constructor(owner: Owner, asked: Map<string, string>) {
    this.#owner = owner;
    this.#asked = asked;
  }

  words(note: TextNote | ReasoningNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step) return changes;
    const { type, index, text } = note;
    let shown = step[type];
    if (shown && index === 0 && !shown.said.startsWith(text) && !text.startsWith(shown.said)) {
      changes.push(voided(shown.ids, 'the answer begins anew'));
      shown = step[type] = null;
    }
    if (index > (shown?.said.length ?? 0)) return changes;
    const news = text.slice((shown?.said.length ?? 0) - index);
    if (news === '') return changes;
    if (type === 'text') changes.push(...close(step.reasoning));
    changes.push(...this.#grow(step, note.step, type, news));
    return changes;
  }

  write(note: ArgumentsNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step) return changes;
    changes.push(...close(step.reasoning));
    const shown = this.#begin(step, note.step, note, changes);
    const { written } = shown;
    if (shown.isReady || note.index > written.length) return changes;
    // Cutting copies the text, so a text that only grows is not cut.
    shown.written = (note.index === written.length ? written : written.slice(0, note.index)) + note.text;
    return [...changes, ...addArgs(shown, shown.written)];
  }

  drop(note: DroppedNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    return step ? [...changes, ...dropCall(step, note.call)] : changes;
  }

  run(note: CalledNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step) return changes;
    changes.push(...close(step.reasoning), ...close(step.text));
    const shown = this.#begin(step, note.step, note, changes);
    if (!shown.isReady && isWhole(note.args)) changes.push(...ready(shown, note.args));
    return changes;
  }

  progress(note: ProgressNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    const shown = step?.calls.get(note.call);
    if (!shown || shown.outcome !== null) return changes;
    const { text, done, total } = note;
    changes.push({ type: 'call.progress', id: shown.id, text, done, total });
    return changes;
  }

  /** A long result is shown when its event comes: the note has only its beginning. */
  result(note: ResultNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step || note.text.endsWith('…')) return changes;
    const shown = this.#begin(step, note.step, note, changes);
    if (!shown.isReady) return changes;
    return [...changes, ...end(shown, note.outcome, note.text)];
  }

  void(note: VoidNote): ChatChange[] {
    if (note.attempt < this.#attempt) return [];
    if (note.all) return this.#drop([...this.#steps.keys()], note.reason);
    if (note.round >= (this.#steps.get(note.step)?.round ?? 0)) this.#failed.set(note.step, note.reason);
    return [];
  }

  commitStep({ index, content, calls }: StepBody): ChatChange[] {
    const number = index + 1;
    this.#committed = Math.max(this.#committed, number);
    const step = this.#stepAt(number);
    const changes = [...close(step.reasoning), ...this.#complete(step, number, content)];
    const lost = [...step.calls].filter(([id]) => !calls.some((call) => call.id === id));
    if (lost.length > 0)
      changes.push(
        voided(
          lost.map(([, { id }]) => id),
          'the call was not made',
        ),
      );
    for (const [id] of lost) step.calls.delete(id);
    step.order = calls.map(({ id }) => id);
    if (calls.some(({ id }) => !step.calls.has(id))) changes.push(...this.#dropAfter(number));
    for (const { id, name, args } of calls) {
      const shown = this.#begin(step, number, { call: id, name }, changes);
      if (!shown.isReady) changes.push(...ready(shown, args));
    }
    return changes;
  }

  commitResult({ call, name, outcome, content }: ToolResultBody): ChatChange[] {
    const step = this.#stepAt(Math.max(1, this.#committed));
    const changes: ChatChange[] = [];
    const shown = this.#begin(step, Math.max(1, this.#committed), { call, name }, changes);
    return [...changes, ...end(shown, outcome, content)];
  }

  commitReply(content: string): ChatChange[] {
    const number = this.#committed + 1;
    this.#committed = number;
    const step = this.#stepAt(number);
    return [...close(step.reasoning), ...this.#complete(step, number, content)];
  }

  /** Stores which call a request is about, and returns the id of the call: the event's id names the place of the call. */
  noteRequest(event: string, request: string): string | undefined {
    const [, step, index] = /:asked:(\d+)\.(\d+)$/.exec(event) ?? [];
    const found = this.#steps.get(Number(step) + 1);
    const call = found?.calls.get(found.order[Number(index)] ?? '');
    if (call) this.#asked.set(request, call.id);
    return call?.id;
  }

  /** `partial`: what the agent had said when its turn was stopped. */
  end(partial: string, reason: string): ChatChange[] {
    const ids: string[] = [];
    const changes = partial === '' ? [] : this.commitReply(partial);
    for (const [number, step] of this.#steps) {
      changes.push(...close(step.reasoning));
      if (number > this.#committed) ids.push(...idsOf(step));
    }
    return ids.length > 0 ? [...changes, voided(ids, reason)] : changes;
  }

  /** The step of a note, after voiding what the note makes void. No step: the note itself is void or late. */
  #enter({ attempt, round, step: number }: Place): { step: Step | null; changes: ChatChange[] } {
    const changes: ChatChange[] = [];
    if (attempt < this.#attempt || number <= this.#committed) return { step: null, changes };
    if (attempt > this.#attempt) {
      if (this.#attempt > 0) changes.push(...this.#drop([...this.#steps.keys()], 'the turn begins anew'));
      this.#attempt = attempt;
    }
    const known = this.#steps.get(number);
    if (known && round < known.round) return { step: null, changes };
    if (known && round > known.round && known.round > 0)
      changes.push(...this.#drop([number], this.#failed.get(number) ?? 'the model is called anew'));
    const step = this.#stepAt(number);
    step.round = round;
    return { step, changes };
  }

  #stepAt(number: number): Step {
    const known = this.#steps.get(number);
    if (known) return known;
    const step: Step = { round: 0, text: null, reasoning: null, calls: new Map(), order: [] };
    this.#steps.set(number, step);
    return step;
  }

  /** Voids steps that are not in the log. */
  #drop(numbers: number[], reason: string): ChatChange[] {
    const dropped = numbers.filter((number) => number > this.#committed);
    const ids = dropped.flatMap((number) => idsOf(this.#steps.get(number)));
    for (const number of dropped) {
      this.#steps.delete(number);
      this.#failed.delete(number);
    }
    return ids.length > 0 ? [voided(ids, reason)] : [];
  }

  /** Voids what was shown of later steps, so that the missing rest of this step comes before them. */
  #dropAfter(number: number): ChatChange[] {
    const later = [...this.#steps.keys()].filter((other) => other > number);
    return this.#drop(later, 'something before it was missed');
  }

  /** The text of a step as the log has it: a missing rest is added; a different text is void. */
  #complete(step: Step, number: number, content: string): ChatChange[] {
    const { text } = step;
    const changes: ChatChange[] = [];
    if (text && !content.startsWith(text.said)) {
      changes.push(voided(text.ids, 'it was changed before it was stored'));
      step.text = null;
    }
    const news = content.slice(step.text?.said.length ?? 0);
    if (news !== '') changes.push(...this.#dropAfter(number), ...this.#grow(step, number, 'text', news));
    changes.push(...close(step.text));
    return changes;
  }

  #grow(step: Step, number: number, kind: ChatBlock['kind'], text: string): ChatChange[] {
    const changes: ChatChange[] = [];
    const shown = (step[kind] ??= { ids: [], said: '', isOpen: false });
    let id = shown.isOpen ? shown.ids.at(-1) : undefined;
    if (id === undefined) {
      id = this.#newId(`${this.#owner.turn}/${number}${kind === 'text' ? '' : '/thinking'}`);
      changes.push({ type: 'block.start', block: { id, kind, ...this.#owner, step: number } });
      shown.ids.push(id);
      shown.isOpen = true;
    }
    shown.said += text;
    changes.push({ type: 'block.delta', id, text });
    return changes;
  }

  #begin(
    step: Step,
    number: number,
    { call, name }: { call: string; name: string },
    changes: ChatChange[],
  ): ShownCall {
    const known = step.calls.get(call);
    if (known) return known;
    const approved = this.#asked.get(call);
    const id = approved ?? this.#newId(`${this.#owner.turn}/${number}/${call}`);
    const shown: ShownCall = { id, written: '', args: '', isReady: approved !== undefined, outcome: null };
    step.calls.set(call, shown);
    const started: ChatCall = { id, name, ...this.#owner, step: number };
    if (approved === undefined) changes.push({ type: 'call.start', call: started });
    return shown;
  }

  /** Void ids are not used again. */
  #newId(id: string): string {
    const times = (this.#used.get(id) ?? 0) + 1;
    this.#used.set(id, times);
    return times === 1 ? id : `${id}~${times}`;
  }
}

function close(shown: Shown | null): ChatChange[] {
  const id = shown?.ids.at(-1);
  if (!shown?.isOpen || id === undefined) return [];
  shown.isOpen = false;
  return [{ type: 'block.end', id }];
}

function dropCall({ calls }: Step, id: string): ChatChange[] {
  const known = calls.get(id);
  return known && calls.delete(id) ? [voided([known.id], 'the model did not finish the call')] : [];
}

function addArgs(call: ShownCall, args: string): ChatChange[] {
  if (!args.startsWith(call.args) || args.length === call.args.length) return [];
  const text = args.slice(call.args.length);
  call.args = args;
  return [{ type: 'call.delta', id: call.id, text }];
}

/** Arguments that differ from what was shown come complete, only in `args`. */
function ready(call: ShownCall, args: string): ChatChange[] {
  const changes = addArgs(call, args);
  call.isReady = true;
  call.args = args;
  return [...changes, { type: 'call.ready', id: call.id, args }];
}

function end(call: ShownCall, outcome: ToolOutcome, text: string): ChatChange[] {
  if (call.outcome === outcome) return [];
  call.outcome = outcome;
  return [{ type: 'call.result', id: call.id, outcome, text }];
}

function isWhole(args: string): boolean {
  try {
    JSON.parse(args);
    return true;
  } catch {
    return false;
  }
}

function idsOf(step: Step | undefined): string[] {
  if (!step) return [];
  const blocks = [step.text, step.reasoning].flatMap((shown) => shown?.ids ?? []);
  return [...blocks, ...[...step.calls.values()].map(({ id }) => id)];
}

function voided(ids: string[], reason: string): ChatChange {
  return { type: 'void', ids, reason };
}

/** A message or a command in the log. */
interface ExchangePlace {
  /** Id of its conversation. */
  conversation: ConversationId;
  /** Seq of the message that began it. */
  seq: number;
}

interface ExchangeHost {
  /** The troupe, narrowed to the caller. */
  troupe: Pick<Troupe, 'tasks'>;
  /** What a message or a command has led to and still leads to. */
  changes: (place: ExchangePlace, signal: AbortSignal) => AsyncGenerator<ChatChange, Answer>;
}

/** The outcome of a message. */
export type Concluded = Pick<Answer, 'outcome' | 'replies' | 'waits' | 'failures'>;

/**
 * What a message leads to, including what people answer meanwhile to questions and requests that came of it, whoever
 * answers. `ask` alone ends where people are asked.
 *  W1  Each event of the conversation is followed once: an end of a task before the last followed event was seen already.
 */
export async function* wholeExchange(
  { troupe, changes }: ExchangeHost,
  { conversation, seq }: ExchangePlace,
  signal: AbortSignal,
): AsyncGenerator<ChatChange, Concluded> {
  const answers: Answer[] = [];
  const asked = new Set<string>();
  let at = seq;
  for (;;) {
    const answer = yield* changes({ conversation, seq: at }, signal);
    answers.push(answer);
    for (const event of answer.events) for (const id of askedBy(event)) asked.add(id);
    const { tasks } = asked.size > 0 ? await troupe.tasks(conversation) : { tasks: [] };
    const own = tasks.filter(({ id }) => asked.has(id));
    const seen = answer.events.at(-1)?.seq ?? at;
    const next = own.flatMap(({ end }) => (end && end.seq > seen ? [end.seq] : []));
    if (next.length === 0) {
      const open = own.flatMap((task) => (task.end ? [] : [{ conversation, task }]));
      return conclude(answers, open);
    }
    at = Math.min(...next);
  }
}

function askedBy(event: Event): string[] {
  if (event.kind === 'question') return [event.body.question];
  return event.kind === 'approval.requested' ? [event.body.request] : [];
}

function conclude(answers: readonly Answer[], open: Answer['waits']): Concluded {
  const last = answers.at(-1);
  const others = (last?.waits ?? []).filter(({ task }) => !open.some((each) => each.task.id === task.id));
  const waits = [...open, ...others];
  const outcome = waits.length > 0 ? 'waiting' : last?.outcome === 'failed' ? 'failed' : 'answered';
  return {
    outcome,
    waits,
    replies: answers.flatMap(({ replies }) => replies),
    failures: answers.flatMap(({ failures }) => failures),
  };
}
