import type { Context } from 'hono';
import * as z from 'zod';
import {
  type Caller,
  ConversationPath,
  type DoorServer,
  beginExchange,
  changesSince,
  checkScope,
  defineDoor,
  defineRoute,
  giveCommand,
  openStream,
  parseInput,
  readMessages,
  unknownConversation,
  withHeartbeats,
  withPlace,
} from '../http.ts';
import {
  AgentId,
  type Answer,
  ConversationId,
  type Event,
  type Troupe,
  TroupeError,
  eventJson,
  isGranted,
  storedEvents,
  toTroupeError,
} from '../troupe.ts';
import { dataFrame, namesIn } from '../speech.ts';
import { endedBy, RoomState } from './room-state.ts';
import { compareWith, idIn, RunInput, type Said, saidIn } from './run-input.ts';
import { endOf, commandOf, interruptsOf } from './ending.ts';
import { type AgUiEvent, type AgUiLifecycle, type AgUiMessage, PROTOCOL_VERSION } from './protocol.ts';
import { replay, RoomView } from './room-view.ts';

/** Most events of a log that are compared with the client's messages, the newest ones. */
const COMPARED = 2_000;
const COMPARED_CHARS = 4 * 1_024 * 1_024;

type Framed = AgUiEvent | AgUiLifecycle | { type: 'MESSAGES_SNAPSHOT'; messages: readonly AgUiMessage[] };
const frame: (event: Framed) => string = dataFrame;

interface Asked {
  context: Context;
  caller: Caller;
  input: RunInput;
  conversation: string;
  to: string | undefined;
}

interface Tail {
  events: Event[];
  /** Whether it begins with the first event. */
  isWhole: boolean;
}

/** The message that a run answers, and how the run begins. */
interface Run {
  input: RunInput;
  view: RoomView;
  /** The first events for the client. */
  opening: AgUiEvent[];
  /** Null: nobody is to answer. */
  seq: number | null;
  /** The run began with a new message, not with one that the log already had. */
  isNew: boolean;
  troupe: Troupe;
  conversation: string;
}

function answer(asked: Asked, { clock, signal }: DoorServer): Promise<Response> {
  const { context, caller, conversation } = asked;
  if (!isGranted(caller.principal, conversation)) throw unknownConversation(conversation);
  // A run also reports earlier messages.
  checkScope(caller.principal, 'read');
  return withPlace({ caller, clock, signal }, async (place) => {
    const run = await begin(asked);
    const write = (ends: AbortSignal) => withHeartbeats(frames(run, ends), { clock, ends });
    return openStream(context, write, { caller, clock, place });
  });
}

async function begin(asked: Asked): Promise<Run> {
  const { caller, input, conversation } = asked;
  const { troupe } = caller;
  const opening = await decide(caller, input, conversation);
  const tail = await readTail(troupe, conversation);
  const said = saidIn(input.messages, new Set(tail.events.map(({ id }) => id as string)));
  const target = said ? await say(asked, said, tail) : answeredIn(input, tail);
  const { seq, id } = target ?? { seq: null, id: null };
  const view = new RoomView({ conversation, nameOf: namesIn(troupe) });
  replay(
    view,
    tail.events.filter((event) => event.seq <= (seq ?? Infinity)),
  );
  const { isWhole } = tail;
  const { base, snapshots, had } = compareWith(input.messages, view.messages, { target: id, isWhole });
  const state = await stateOf(troupe, conversation, tail.events.length === 0);
  opening.push(...snapshots.map((messages): AgUiEvent => ({ type: 'MESSAGES_SNAPSHOT', messages })));
  opening.push({ type: 'STATE_SNAPSHOT', snapshot: state.snapshot });
  view.begin({ base, had, state });
  return { input, view, opening, seq, isNew: said !== null, troupe, conversation };
}

/** A message that agents answer. */
type Target = { id: string; seq: number };

async function say({ caller, conversation, to }: Asked, said: Said, tail: Tail): Promise<Target> {
  const addressee = to === undefined ? {} : { to: [to] };
  const { seq } = await beginExchange(caller, { conversation, channel: 'ag-ui', ...said, ...addressee });
  await readOn(caller.troupe, conversation, tail);
  return { id: said.id, seq };
}

/** Executes the client's decisions. Reports those whose request is no longer open. */
async function decide(
  caller: Caller,
  { resume, tools }: RunInput,
  conversation: string,
): Promise<AgUiEvent[]> {
  const told: AgUiEvent[] = [];
  if (tools && tools.length > 0)
    told.push({ type: 'CUSTOM', name: 'troupe.ignored', value: { tools: tools.length } });
  for (const each of resume ?? []) {
    const command = commandOf(each, conversation);
    try {
      await giveCommand(caller, command);
    } catch (error) {
      const { code, message } = toTroupeError(error);
      if (code !== 'command_refused' && code !== 'task_unknown') throw error;
      const value = { interruptId: each.interruptId, code, message };
      told.push({ type: 'CUSTOM', name: 'troupe.refused', value });
    }
  }
  return told;
}

/**
 * The message to answer: the newest message of a person that the client has; else the newest in the log that needs an answer.
 * Null: nobody is to answer.
 */
function answeredIn({ messages }: RunInput, { events }: Tail): Target | null {
  const byPeople = new Map(events.filter(isOfPeople).map((event) => [event.id as string, event]));
  const own = messages.findLast(({ id, role }) => role === 'user' && idIn(byPeople, id) !== undefined);
  if (!own) return events.findLast((event) => isOfPeople(event) && event.to.length > 0) ?? null;
  const event = byPeople.get(idIn(byPeople, own.id)!)!;
  return event.to.length > 0 ? event : null;
}

function isOfPeople({ kind, author }: Event): boolean {
  return (kind === 'message' || kind === 'notice' || kind === 'question.answered') && author.kind === 'user';
}

async function readTail(troupe: Troupe, conversation: string): Promise<Tail> {
  const tail: Tail = { events: [], isWhole: true };
  try {
    const { head } = await troupe.events(conversation, { limit: 1 });
    await readOn(troupe, conversation, tail, Math.max(0, head - COMPARED));
  } catch (error) {
    // The conversation begins with the first message.
    if (!(error instanceof TroupeError) || error.code !== 'conversation_unknown') throw error;
  }
  return tail;
}

async function readOn(troupe: Troupe, conversation: string, tail: Tail, from = 0): Promise<void> {
  let chars = tail.events.reduce((sum, event) => sum + eventJson(event).length, 0);
  for (;;) {
    const after = tail.events.at(-1)?.seq ?? from;
    const { events } = await troupe.events(conversation, { after });
    for (const event of events) {
      tail.events.push(event);
      chars += eventJson(event).length;
      while (chars > COMPARED_CHARS && tail.events.length > 1)
        chars -= eventJson(tail.events.shift()!).length;
    }
    if (events.length === 0) break;
  }
  tail.isWhole = (tail.events[0]?.seq ?? 1) === 1;
}

async function stateOf(troupe: Troupe, conversation: string, isEmpty: boolean): Promise<RoomState> {
  const actors = isEmpty ? [] : await troupe.actors(conversation);
  const states = new Map(actors.map(({ agent, status }) => [agent, status]));
  const state = new RoomState(
    troupe.agents.map(({ id, name, role }) => ({ id, name, role, status: states.get(id) ?? 'idle' })),
  );
  if (!isEmpty) state.addTasks((await troupe.tasks(conversation, { open: true })).tasks);
  return state;
}

/** Reports what follows from an event, and from the decisions and answers that people have given since. */
async function* told(
  { view, troupe, conversation }: Run,
  from: number,
  ends: AbortSignal,
): AsyncGenerator<string, Answer> {
  let seq = from;
  for (;;) {
    const going = changesSince(troupe, { conversation, seq }, ends);
    let next = await going.next();
    for (; !next.done; next = await going.next()) {
      const change = next.value;
      if (change.type === 'event' && change.event.conversation === conversation) seq = change.event.seq;
      yield* view.take(change).map(frame);
    }
    const waited = new Set(next.value.waits.map(({ task }) => task.id));
    if ([...view.asked].every((task) => waited.has(task))) return next.value;
    const events = await untilDecided(troupe, { conversation, seq, asked: view.asked });
    yield* replay(view, events).map(frame);
    seq = events.at(-1)?.seq ?? seq;
    if (events.length === 0) return next.value;
  }
}

/** The events after a seq, up to one that ends a question or request. Empty if there is none. */
async function untilDecided(
  troupe: Troupe,
  { conversation, seq, asked }: { conversation: string; seq: number; asked: ReadonlySet<string> },
): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of storedEvents(troupe, ConversationId.parse(conversation), seq)) {
    events.push(event);
    if (event.to.length > 0 && asked.has(endedBy(event) ?? '')) return events;
  }
  return [];
}

async function* frames(run: Run, ends: AbortSignal): AsyncGenerator<string, void> {
  const { input, opening, seq } = run;
  const { threadId, runId, parentRunId } = input;
  try {
    const parent = parentRunId ? { parentRunId } : {};
    yield frame({ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION, ...parent });
    yield* opening.map(frame);
    if (seq === null) {
      yield frame({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } });
      return;
    }
    yield* ending(run, yield* told(run, seq, ends)).map(frame);
  } catch (error) {
    if (ends.aborted) return;
    const { code, message } = toTroupeError(error);
    yield frame({ type: 'RUN_ERROR', code, message });
  }
}

function ending({ input, view, isNew, troupe }: Run, answered: Answer): (AgUiEvent | AgUiLifecycle)[] {
  const interrupts = interruptsOf(answered.waits, {
    callOf: (request) => view.callOf(request),
    taskOf: (conversation) => view.taskOf(conversation),
    nameOf: namesIn(troupe),
  });
  const events: (AgUiEvent | AgUiLifecycle)[] = [...view.finish(), ...view.suspend(interrupts)];
  // A client that resumes may have only these messages.
  if (interrupts.length > 0) events.push({ type: 'MESSAGES_SNAPSHOT', messages: view.messages });
  return [...events, ...endOf(input, answered, { interrupts, isNew })];
}

async function read(context: Context): Promise<RunInput> {
  return parseInput(RunInput, await readMessages(context), 'the body');
}

const running = {
  method: 'POST',
  scopes: ['write'],
  query: z.object({ to: AgentId.optional() }),
  body: RunInput,
  example: { threadId: 'main', runId: 'r1', messages: [{ id: 'm1', role: 'user', content: 'Hello' }] },
  answerType: 'text/event-stream',
  errors: [403, 404, 409, 413, 429],
} as const;

const agUiRoutes = [
  defineRoute({
    ...running,
    path: '/api/ag-ui',
    id: 'runThread',
    summary:
      'A run of AG-UI in the conversation that `threadId` names: sends what the user says, or goes on with what is in the log, and answers with events. `to` is the id of an agent; without it the message is routed. Needs the scope `read`, too',
    handle: async ({ context, caller, query: { to } }, server) => {
      const input = await read(context);
      const { conversation } = parseInput(
        z.object({ conversation: ConversationId }),
        { conversation: input.threadId },
        'threadId',
      );
      return answer({ context, caller, input, conversation, to }, server);
    },
  }),
  defineRoute({
    ...running,
    path: '/api/conversations/{conversation}/ag-ui',
    id: 'runConversation',
    summary: 'The same in this conversation, whatever its client names the thread',
    handle: async ({ context, params, caller, query: { to } }, server) => {
      const { conversation } = parseInput(ConversationPath, params, 'the path');
      return answer({ context, caller, input: await read(context), conversation, to }, server);
    },
  }),
] as const;

export const agUi = defineDoor({ name: 'ag-ui', routes: agUiRoutes });
