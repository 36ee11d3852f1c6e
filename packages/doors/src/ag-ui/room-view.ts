import {
  type ChatBlock,
  type ChatCall,
  type ChatChange,
  type Event,
  isAbout,
  chatChanges,
  eventOf,
  forKind,
} from '../troupe.ts';
import { Asked, type RoomState } from './room-state.ts';
import { type Had, hadNothing, lacking } from './run-input.ts';
import type { AgUiCall, AgUiEvent, AgUiMessage, AgUiWords, PatchOperation } from './protocol.ts';

type Words = AgUiWords & { content: string };

interface Shown {
  message: Words;
  /** Null: it belongs to no turn. */
  place: Place | null;
  /** The client has at least the beginning of it. */
  isTold: boolean;
  /** It began in this run and has not ended. */
  isOpen: boolean;
}

interface ShownCall {
  of: Shown;
  call: AgUiCall;
  isOpen: boolean;
}

/**
 * A conversation in the form of AG-UI. Owns its messages, and yields the events that report changes.
 *  V1  A step of a turn is one message: its text, followed by its calls with their results. Messages of people, questions
 *      and answers have the ids of their events.
 *  V2  What the client already has is not sent again. Content that the client has but the log does not, or that became
 *      void, is replaced by a snapshot, because the protocol cannot take text back.
 *  V3  At the end nothing is open, whatever is still running.
 */
export class RoomView {
  readonly #conversation: string;
  readonly #nameOf: (agent: string) => string;
  #messages: AgUiMessage[] = [];
  #state: RoomState | null = null;
  #had: Had = hadNothing();
  /** Whether the client has content that no longer counts. */
  #isStale = false;
  readonly #words = new Map<string, Shown>();
  readonly #calls = new Map<string, ShownCall>();
  /** Ids of messages and calls in this view, by the ids in the changes. */
  readonly #ids = new Map<string, string>();
  readonly #voided = new Set<string>();
  /** Ids of approved calls. Their arguments are already known. */
  readonly #approved = new Set<string>();
  readonly #places = new Map<string, Place>();
  readonly #asked = new Asked();
  readonly #steps = new Steps();
  readonly #agents = new SubAgents();
  readonly #thinking = new Thinking();

  constructor({ conversation, nameOf }: { conversation: string; nameOf: (agent: string) => string }) {
    this.#conversation = conversation;
    this.#nameOf = nameOf;
  }

  get messages(): readonly AgUiMessage[] {
    return this.#messages;
  }

  /** Ids of the conversation's own questions and requests whose end was not reported yet. */
  get asked(): ReadonlySet<string> {
    return this.#asked.open;
  }

  callOf(request: string): string | undefined {
    return this.#asked.callOf(request);
  }

  taskOf(conversation: string): string | undefined {
    return this.#agents.taskOf(conversation);
  }

  /** Starts reporting to a client. `base`: the messages so far, as the client has them. */
  begin({ base, had, state }: { base: AgUiMessage[]; had: Had; state: RoomState }): void {
    this.finish();
    this.#agents.end();
    this.#asked.open.clear();
    this.#messages = [...base];
    this.#had = had;
    this.#thinking.had = had.reasoning;
    this.#state = state;
    this.#isStale = false;
  }

  take(change: ChatChange): AgUiEvent[] {
    const events = this.#of(change);
    return this.#isStale ? [...events, this.#resync()] : events;
  }

  /** Ends everything that is open, and replaces surplus content of the client. */
  finish(): AgUiEvent[] {
    const events = [
      ...[...this.#words.values()].flatMap((shown) => this.#endWords(shown)),
      ...[...this.#calls.values()].flatMap((shown) => this.#endCall(shown)),
      ...this.#thinking.endAll(),
      ...this.#steps.endAll(),
    ];
    return this.#hasMore() ? [...events, this.#resync()] : events;
  }

  /** Ends the sub-agents that wait, each for its own interrupts. */
  suspend(interrupts: readonly { id: string; subagentRunId?: string }[]): AgUiEvent[] {
    return this.#agents.suspend(interrupts);
  }

  #of(change: ChatChange): AgUiEvent[] {
    switch (change.type) {
      case 'block.start':
        return this.#startBlock(change.block);
      case 'block.delta':
        return this.#growBlock(change.id, change.text);
      case 'block.end':
        return [...this.#endWords(this.#wordsOf(change.id)), ...this.#thinking.end(change.id)];
      case 'call.start':
        return this.#startCall(change.call);
      case 'call.delta':
        return this.#growCall(change.id, change.text);
      case 'call.ready':
        return this.#readyCall(change.id, change.args);
      case 'call.progress':
        return this.#progress(change);
      case 'call.result':
        return change.outcome === 'waiting' ? [] : this.#endWithResult(change);
      case 'void':
        return change.ids.flatMap((id) => this.#void(id));
      case 'event':
        return this.#event(change.event, change.call);
    }
  }

  #startBlock(block: ChatBlock): AgUiEvent[] {
    const owner = this.#ownerIn(block.conversation);
    if (!owner) return [];
    if (block.kind === 'text') this.#ids.set(block.id, this.#stepMessage(block, owner).message.id);
    else {
      this.#thinking.start(block.id, owner);
      this.#places.set(block.id, block);
    }
    return this.#begins(block);
  }

  #growBlock(id: string, text: string): AgUiEvent[] {
    const shown = this.#wordsOf(id);
    if (shown) return this.#say(shown, text);
    const place = this.#places.get(id);
    const owner = place && this.#ownerIn(place.conversation);
    const told = this.#thinking.grow(id, text);
    return owner && told.length > 0 ? [...this.#steps.enter(place, owner), ...told] : told;
  }

  #say(shown: Shown, text: string): AgUiEvent[] {
    const { message } = shown;
    message.content = `${message.content}${text}`;
    const delta = this.#news(this.#had.texts, message.id, { said: message.content, text });
    if (delta === '') return [];
    const { id: messageId } = message;
    return [
      ...this.#openWords(shown),
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta, ...ownerOf(message) },
    ];
  }

  #openWords(shown: Shown): AgUiEvent[] {
    if (shown.isOpen) return [];
    shown.isOpen = shown.isTold = true;
    const { message, place } = shown;
    const { id: messageId, role, name, metadata } = message;
    const owner = ownerOf(message);
    const more = { ...(name !== undefined && { name }), ...(metadata && { metadata }), ...owner };
    const entered = place ? this.#steps.enter(place, owner) : [];
    return [...entered, { type: 'TEXT_MESSAGE_START', messageId, role, ...more }];
  }

  #endWords(shown: Shown | undefined): AgUiEvent[] {
    if (!shown?.isOpen) return [];
    shown.isOpen = false;
    return [{ type: 'TEXT_MESSAGE_END', messageId: shown.message.id, ...ownerOf(shown.message) }];
  }

  #startCall(call: ChatCall): AgUiEvent[] {
    const owner = this.#ownerIn(call.conversation);
    if (!owner) return [];
    // An approved call has the id of its request.
    const approved = this.#asked.callOf(call.id.slice(call.id.lastIndexOf('/') + 1));
    const before = call.id.replace(/~\d+$/, '');
    const id = approved ?? (this.#voided.has(before) ? before : call.id);
    this.#ids.set(call.id, id);
    if (approved !== undefined) this.#approved.add(call.id);
    if (this.#calls.has(id)) return [];
    const of = this.#stepMessage(call, owner);
    const made: AgUiCall = { id, type: 'function', function: { name: call.name, arguments: '' } };
    (of.message.toolCalls ??= []).push(made);
    const shown: ShownCall = { of, call: made, isOpen: false };
    this.#calls.set(id, shown);
    const begun = this.#begins(call);
    return this.#had.args.has(id) ? begun : [...begun, ...this.#openCall(shown)];
  }

  #openCall(shown: ShownCall): AgUiEvent[] {
    if (shown.isOpen) return [];
    shown.isOpen = true;
    const { of, call } = shown;
    // A message without text shows its author from the beginning.
    const events = of.isTold ? [] : [...this.#openWords(of), ...this.#endWords(of)];
    if (of.place) events.push(...this.#steps.enter(of.place, ownerOf(of.message)));
    const { id: toolCallId, function: made } = call;
    const more = { parentMessageId: of.message.id, ...ownerOf(of.message) };
    return [...events, { type: 'TOOL_CALL_START', toolCallId, toolCallName: made.name, ...more }];
  }

  #growCall(id: string, text: string): AgUiEvent[] {
    const shown = this.#approved.has(id) ? null : this.#callAt(id);
    if (!shown) return [];
    const { id: toolCallId, function: made } = shown.call;
    made.arguments += text;
    const delta = this.#news(this.#had.args, toolCallId, { said: made.arguments, text });
    if (delta === '') return [];
    const told = { type: 'TOOL_CALL_ARGS', toolCallId, delta, ...ownerOf(shown.of.message) } as const;
    return [...this.#openCall(shown), told];
  }

  #readyCall(id: string, args: string): AgUiEvent[] {
    const shown = this.#approved.has(id) ? null : this.#callAt(id);
    if (!shown) return [];
    const { function: made } = shown.call;
    // Arguments that were changed before the call can only be sent by a snapshot.
    if (made.arguments !== args) this.#isStale = true;
    made.arguments = args;
    return this.#endCall(shown);
  }

  #endCall(shown: ShownCall): AgUiEvent[] {
    if (!shown.isOpen) return [];
    shown.isOpen = false;
    return [{ type: 'TOOL_CALL_END', toolCallId: shown.call.id, ...ownerOf(shown.of.message) }];
  }

  #endWithResult({ id, outcome, text }: { id: string; outcome: string; text: string }): AgUiEvent[] {
    const shown = this.#callAt(id);
    if (!shown) return [];
    const { of, call } = shown;
    const metadata = { troupe: { outcome } };
    const result = { id: `${call.id}/result`, role: 'tool', toolCallId: call.id, content: text } as const;
    this.#insertAfter(of.message, { ...result, metadata, ...ownerOf(of.message) });
    const had = this.#had.results.get(call.id);
    if (had !== undefined && had !== text) this.#isStale = true;
    if (had !== undefined) return [];
    const { id: messageId, toolCallId, content } = result;
    const told = { type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, metadata } as const;
    return [...this.#endCall(shown), { ...told, ...ownerOf(of.message) }];
  }

  #progress({ id, text, done, total }: Extract<ChatChange, { type: 'call.progress' }>): AgUiEvent[] {
    const shown = this.#callAt(id);
    if (!shown) return [];
    const value = { toolCallId: shown.call.id, text, done, total };
    return [{ type: 'CUSTOM', name: 'troupe.progress', value, ...ownerOf(shown.of.message) }];
  }

  #insertAfter(message: AgUiWords, result: AgUiMessage): void {
    this.#messages = this.#messages.filter(({ id }) => id !== result.id);
    let at = this.#messages.findIndex(({ id }) => id === message.id) + 1;
    while (this.#messages[at]?.role === 'tool') at += 1;
    this.#messages.splice(at, 0, result);
  }

  #void(id: string): AgUiEvent[] {
    const known = this.#ids.get(id);
    if (known === undefined) return this.#thinking.end(id);
    // An approved call stays, whatever becomes of the turn that runs it.
    if (this.#asked.isAbout(known)) return [];
    this.#isStale = true;
    this.#ids.delete(id);
    const call = this.#calls.get(known);
    const of = call?.of ?? this.#words.get(known);
    if (!of) return [];
    const events = call ? this.#endCall(call) : this.#endWords(of);
    if (call) {
      this.#calls.delete(known);
      this.#voided.add(known);
      this.#messages = this.#messages.filter((each) => each.id !== `${known}/result`);
      of.message.toolCalls = (of.message.toolCalls ?? []).filter((each) => each !== call.call);
    } else of.message.content = '';
    if (of.message.content !== '' || (of.message.toolCalls ?? []).length > 0) return events;
    this.#messages = this.#messages.filter((each) => each !== of.message);
    this.#words.delete(of.message.id);
    return [...events, ...this.#endWords(of)];
  }

  #event(event: Event, call: string | undefined): AgUiEvent[] {
    const owner = this.#ownerIn(event.conversation);
    if (!owner) return [];
    const isHere = event.conversation === this.#conversation;
    this.#asked.note(event, { isHere, call: this.#ids.get(call ?? '') });
    const patch = isHere ? (this.#state?.note(event) ?? []) : [];
    const told = [...this.#eventIn(event, owner), ...this.#agents.note(event, owner)];
    const { turn, author } = event;
    if (turn === undefined || !isAbout(event, 'turnEnd')) return [...told, ...deltaOf(patch)];
    if (isHere) patch.push(...(this.#state?.rests(author.id) ?? []));
    return [...told, ...this.#steps.leave({ agent: author.id, turn }, owner), ...deltaOf(patch)];
  }

  #eventIn(event: Event, owner: Owner): AgUiEvent[] {
    const notice = noticeOf(event);
    if (notice) return [{ type: 'CUSTOM', ...notice, ...owner }];
    const refusal = refusalOf(event);
    const refused = this.#asked.callOf(refusal?.request ?? '');
    if (refusal && refused !== undefined) return this.#endWithResult({ ...refusal, id: refused });
    const words = wordsOf(event);
    // A message in a thread is for the agent that works there. A reply to a question is reported as the message that it is.
    const isTold =
      event.kind === 'question.answered'
        ? this.#asked.isReply(event)
        : event.kind === 'message' && owner.subagentRunId !== undefined;
    return words === null || isTold ? [] : this.#whole(event, words, owner);
  }

  /** A message that arrives whole. */
  #whole(event: Event, content: string, owner: Owner): AgUiEvent[] {
    const { id, author } = event;
    if (this.#words.has(id)) return [];
    const role = ({ user: 'user', agent: 'assistant', system: 'system' } as const)[author.kind];
    const metadata = { troupe: { [author.kind]: author.id } };
    const message: Words = { id, role, name: author.name, content: '', metadata, ...owner };
    const shown = this.#add(message, null);
    return [...this.#say(shown, content), ...this.#endWords(shown)];
  }

  #stepMessage(place: ChatBlock | ChatCall, owner: Owner): Shown {
    const { turn, step, agent } = place;
    const id = `${turn}/${step}`;
    const known = this.#words.get(id);
    if (known) return known;
    const about = { name: this.#nameOf(agent), content: '', metadata: { troupe: { agent, turn } } };
    return this.#add({ id, role: 'assistant', ...about, ...owner }, place);
  }

  #add(message: Words, place: Place | null): Shown {
    const shown = { message, place, isTold: this.#had.texts.has(message.id), isOpen: false };
    this.#words.set(message.id, shown);
    // A client keeps the order of its messages, so later messages that it has must first be removed.
    this.#isStale ||= !shown.isTold && [...this.#had.texts.keys()].some((id) => !this.#words.has(id));
    this.#messages.push(message);
    return shown;
  }

  #begins({ conversation, agent }: Place): AgUiEvent[] {
    return conversation === this.#conversation ? deltaOf(this.#state?.begins(agent) ?? []) : [];
  }

  /** Null if the task of this thread is unknown. */
  #ownerIn(conversation: string): Owner | null {
    if (conversation === this.#conversation) return {};
    const subagentRunId = this.#agents.taskOf(conversation);
    return subagentRunId === undefined ? null : { subagentRunId };
  }

  #wordsOf(id: string): Shown | undefined {
    return this.#words.get(this.#ids.get(id) ?? '');
  }

  #callAt(id: string): ShownCall | undefined {
    return this.#calls.get(this.#ids.get(id) ?? id);
  }

  #news(had: Map<string, string>, id: string, news: { said: string; text: string }): string {
    const delta = lacking(had, id, news);
    if (delta === null) this.#isStale = true;
    return delta ?? '';
  }

  /** Whether the client has text, arguments or results that the log does not have. */
  #hasMore(): boolean {
    const { texts, args, results } = this.#had;
    return (
      [...texts].some(([id, text]) => this.#words.get(id)?.message.content !== text) ||
      [...args].some(([id, text]) => this.#calls.get(id)?.call.function.arguments !== text) ||
      [...results.keys()].some((id) => !this.#messages.some((each) => each.id === `${id}/result`))
    );
  }

  #resync(): AgUiEvent {
    this.#isStale = false;
    for (const map of [this.#had.texts, this.#had.args, this.#had.results]) map.clear();
    for (const shown of this.#words.values()) shown.isTold = true;
    return { type: 'MESSAGES_SNAPSHOT', messages: this.#messages };
  }
}

function deltaOf(delta: readonly PatchOperation[]): AgUiEvent[] {
  return delta.length > 0 ? [{ type: 'STATE_DELTA', delta }] : [];
}

/** Feeds the log's events to the view, and returns the events that report them. */
export function replay(view: RoomView, events: readonly Event[]): AgUiEvent[] {
  const changesOf = chatChanges();
  return events.flatMap((event) =>
    changesOf({ type: 'event', event }).flatMap((change) => view.take(change)),
  );
}

/**
 * A text that arrives whole, as one message. Null if there is none, or if it belongs to a turn and was already sent while it
 * was written.
 */
function wordsOf(event: Event): string | null {
  if (event.kind === 'message' && event.author.kind === 'agent' && event.turn !== undefined) return null;
  const words = forKind(
    {
      message: ({ body }) => body.content,
      notice: ({ body }) => body.content,
      question: ({ body }) => body.text,
      'question.answered': ({ body }) => (body.outcome === 'answered' ? body.content : null),
    },
    event,
  );
  return words ?? null;
}

/** An event for which AG-UI has no type of its own. */
function noticeOf(event: Event): { name: string; value: unknown } | null {
  const { author, to, kind, body } = event;
  if (kind === 'handoff')
    return { name: 'troupe.handoff', value: { from: author.id, to, summary: body.summary } };
  return kind === 'guard.stopped' ? { name: 'troupe.stopped', value: { agent: author.id, ...body } } : null;
}

/** What the client sees as the result of a call that was not approved. */
function refusalOf(event: Event): { request: string; outcome: string; text: string } | null {
  const decided = eventOf(event, 'approval.decided');
  if (!decided || decided.body.outcome === 'approved') return null;
  const { request, outcome, note } = decided.body;
  return { request, outcome, text: note === '' ? `[${outcome}]` : `[${outcome}: ${note}]` };
}

interface Place {
  conversation: string;
  agent: string;
  turn: string;
}

/** The owner of a part of a run: the task of a sub-agent, or nobody. */
interface Owner {
  subagentRunId?: string;
}

function ownerOf({ subagentRunId }: Owner): Owner {
  return subagentRunId === undefined ? {} : { subagentRunId };
}

/** The turns of agents as steps of a run. Owns which of them have begun and not ended. */
class Steps {
  /** By owner and agent. */
  readonly #running = new Map<string, { turn: string; stepName: string; owner: Owner }>();

  enter({ agent: stepName, turn }: Place, owner: Owner): AgUiEvent[] {
    const key = keyOf(stepName, owner);
    const running = this.#running.get(key);
    if (running?.turn === turn) return [];
    this.#running.set(key, { turn, stepName, owner });
    const before: AgUiEvent[] = running ? [{ type: 'STEP_FINISHED', stepName, ...owner }] : [];
    return [...before, { type: 'STEP_STARTED', stepName, ...owner }];
  }

  leave({ agent: stepName, turn }: Pick<Place, 'agent' | 'turn'>, owner: Owner): AgUiEvent[] {
    const key = keyOf(stepName, owner);
    if (this.#running.get(key)?.turn !== turn) return [];
    this.#running.delete(key);
    return [{ type: 'STEP_FINISHED', stepName, ...owner }];
  }

  endAll(): AgUiEvent[] {
    const left = [...this.#running.values()];
    this.#running.clear();
    return left.map(({ stepName, owner }) => ({ type: 'STEP_FINISHED', stepName, ...owner }));
  }
}

function keyOf(agent: string, { subagentRunId = '' }: Owner): string {
  return `${subagentRunId} ${agent}`;
}

/** Most characters of a task that are sent when it begins. */
const DESCRIBED = 2_000;

/** The delegated tasks, as sub-agents. Owns which of them are running. */
class SubAgents {
  /** The last task of each thread. */
  readonly #tasks = new Map<string, string>();
  readonly #running = new Set<string>();

  taskOf(thread: string): string | undefined {
    return this.#tasks.get(thread);
  }

  note(event: Event, owner: { subagentRunId?: string }): AgUiEvent[] {
    if (event.kind === 'delegation.opened') {
      const { delegation, thread, home, assignee, task } = event.body;
      if (event.conversation !== home || this.#running.has(delegation)) return [];
      this.#tasks.set(thread, delegation);
      this.#running.add(delegation);
      const parent = owner.subagentRunId;
      return [
        {
          type: 'SUBAGENT_STARTED',
          subagentRunId: delegation,
          name: assignee,
          description: task.slice(0, DESCRIBED).toWellFormed(),
          ...(parent !== undefined && { parentSubagentRunId: parent }),
        },
      ];
    }
    if (event.kind !== 'delegation.ended') return [];
    const { delegation: subagentRunId, outcome, result, data } = event.body;
    if (this.#tasks.get(event.conversation) === subagentRunId || !this.#running.delete(subagentRunId))
      return [];
    return outcome === 'done'
      ? [{ type: 'SUBAGENT_FINISHED', subagentRunId, result: data ?? result, outcome: { type: 'success' } }]
      : [{ type: 'SUBAGENT_ERROR', subagentRunId, message: result, code: outcome }];
  }

  /** Innermost first. */
  suspend(interrupts: readonly { id: string; subagentRunId?: string }[]): AgUiEvent[] {
    return this.end().map((subagentRunId): AgUiEvent => {
      const own = interrupts.filter((each) => each.subagentRunId === subagentRunId);
      const interruptIds = own.map(({ id }) => id);
      return { type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'suspended', interruptIds } };
    });
  }

  /** Ids of the sub-agents that were running until now, innermost first. */
  end(): string[] {
    const ended = [...this.#running].toReversed();
    this.#running.clear();
    return ended;
  }
}

interface Thought {
  /** Id of the message it belongs to. */
  id: string;
  said: string;
  isOpen: boolean;
  owner: { subagentRunId?: string };
}

/** Reasoning of models. Snapshots do not contain it, so clients keep it, and this door keeps what became void. */
class Thinking {
  /** The reasoning that the client has, by the id of the message. */
  had: ReadonlyMap<string, string> = new Map();
  readonly #thoughts = new Map<string, Thought>();

  start(block: string, owner: { subagentRunId?: string }): void {
    this.#thoughts.set(block, { id: block, said: '', isOpen: false, owner });
  }

  grow(block: string, text: string): AgUiEvent[] {
    const thought = this.#thoughts.get(block);
    if (!thought) return [];
    const at = thought.said.length;
    thought.said += text;
    const own = this.had.get(thought.id);
    if (own === undefined) return this.#tell(thought, text);
    if (own.startsWith(text, at)) return [];
    const rest = own.slice(at);
    if (text.startsWith(rest)) return this.#tell(thought, text.slice(rest.length));
    // The client has reasoning under this id that became void, so the new one gets another id.
    thought.id = this.#unused(thought.id);
    return this.#tell(thought, thought.said);
  }

  end(block: string): AgUiEvent[] {
    const thought = this.#thoughts.get(block);
    if (!thought?.isOpen) return [];
    thought.isOpen = false;
    const { id: messageId, owner } = thought;
    return [
      { type: 'REASONING_MESSAGE_END', messageId, ...owner },
      { type: 'REASONING_END', messageId, ...owner },
    ];
  }

  endAll(): AgUiEvent[] {
    return [...this.#thoughts.keys()].flatMap((block) => this.end(block));
  }

  #tell(thought: Thought, delta: string): AgUiEvent[] {
    const { id: messageId, owner, isOpen } = thought;
    const content: AgUiEvent = { type: 'REASONING_MESSAGE_CONTENT', messageId, delta, ...owner };
    if (isOpen) return [content];
    thought.isOpen = true;
    return [
      { type: 'REASONING_START', messageId, ...owner },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...owner },
      content,
    ];
  }

  #unused(id: string): string {
    let number = 2;
    while (this.had.has(`${id}~${number}`)) number += 1;
    return `${id}~${number}`;
  }
}
