import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import type * as z from 'zod';
import {
  a2aError,
  type A2aTask,
  type StreamResponse,
  type TaskState,
  fromProtoJson,
  ListRequest,
  NewPushRequest,
  PushListRequest,
  PushRequest,
  SendRequest,
  TaskRequest,
  type GivenMessage,
  taskId,
  type GivenPart,
  type TaskUpdate,
  PROTOCOL_VERSION,
} from './protocol.ts';
import {
  isAtRest,
  isTerminal,
  findTask,
  readTask,
  showTask,
  TaskView,
  absentWorkers,
  type Desk,
} from './task.ts';
import {
  authorOf,
  type Caller,
  checkScope,
  type DoorServer,
  type HeldPlace,
  parseInput,
  readAs,
  withPlace,
  beginExchange,
  giveCommand,
  newConversation,
} from '../http.ts';
import {
  type Clock,
  type Event,
  type AttachmentByAddress,
  type CommandInput,
  type NewAttachment,
  type TaskInfo,
  type Answer,
  type ChatChange,
  type Troupe,
  followConversation,
  openChat,
  wholeExchange,
  type AgentInfo,
  LOCAL,
  TroupeError,
  canonicalJson,
} from '../troupe.ts';
import { namesIn } from '../speech.ts';
import { listTasks } from './list-tasks.ts';
import { addPush, type Repositories, checkPush, listPushes, readPush, removePush } from './pushes.ts';

/** A client's request, in either binding. */
export interface Call {
  context: Context;
  caller: Caller;
  agent: string;
  params: unknown;
  /** Receivers of notifications about tasks. */
  pushes: Repositories;
  server: DoorServer;
}

/** Result of an operation. `stream` holds its place until it ends. */
export type Reply =
  | { type: 'value'; value: object }
  | { type: 'stream'; place: HeldPlace; tell: (ends: AbortSignal) => AsyncGenerator<StreamResponse, void> };

type Operation = (call: Call) => Promise<Reply>;

/** The protocol's operations, by their JSON-RPC names. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  SendMessage: send,
  SendStreamingMessage: sendStreaming,
  GetTask: get,
  ListTasks: list,
  CancelTask: cancel,
  SubscribeToTask: subscribe,
  GetExtendedAgentCard: extendedCard,
  CreateTaskPushNotificationConfig: createPush,
  GetTaskPushNotificationConfig: getPush,
  ListTaskPushNotificationConfigs: listPush,
  DeleteTaskPushNotificationConfig: deletePush,
};

/** Throws errors of the protocol, and the errors of every route. */
export async function operate(name: string, call: Call): Promise<Reply> {
  const operation = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
  if (!operation)
    throw a2aError('METHOD_NOT_FOUND', `there is no method "${name.slice(0, 100).toWellFormed()}"`);
  return operation(call);
}

function input<T>(schema: z.ZodType<T>, { params }: Call): T {
  return parseInput(schema, fromProtoJson(params), 'params');
}

/** Begins the task of a message. If the client asks for notifications that could not be sent, nothing is begun. */
async function beginSent({ caller, agent, pushes }: Call, request: SendRequest): Promise<Event> {
  const push = request.configuration?.taskPushNotificationConfig;
  if (!push) return beginTask(caller, agent, request.message);
  await checkPush({ ...caller, pushes }, push);
  const sent = await beginTask(caller, agent, request.message);
  await addPush({ ...caller, agent, pushes }, sent, push);
  return sent;
}

async function send(call: Call): Promise<Reply> {
  const { context, caller, server } = call;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const request = input(SendRequest, call);
  const { configuration } = request;
  const { clock, signal } = server;
  return withPlace({ caller, clock, signal }, async (place) => {
    const sent = await beginSent(call, request);
    const ends = AbortSignal.any([place.ends, context.req.raw.signal]);
    if (!configuration?.returnImmediately) await untilOver(caller, sent, { clock, signal: ends });
    place.end();
    const { historyLength } = configuration ?? {};
    return { type: 'value', value: { task: await shown(caller, sent, historyLength) } };
  });
}

async function untilOver(
  { troupe }: Caller,
  sent: Event,
  parts: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  try {
    // Runs to the end, after which the log has everything.
    for await (const _ of followTask({ troupe }, sent, { ...parts, until: isAtRest }));
  } catch (error) {
    if (!parts.signal.aborted) throw error;
  }
}

async function shown({ troupe }: Caller, sent: Event, historyLength?: number): Promise<A2aTask> {
  return showTask(troupe, await readTask({ troupe }, sent), { historyLength });
}

async function sendStreaming(call: Call): Promise<Reply> {
  const { caller, server } = call;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const request = input(SendRequest, call);
  const { clock, signal } = server;
  return withPlace({ caller, clock, signal }, async (place) => {
    const sent = await beginSent(call, request);
    return streamOf(caller, { sent, place, clock, until: isAtRest }, request.configuration?.historyLength);
  });
}

interface StreamParts {
  sent: Event;
  place: HeldPlace;
  clock: Clock;
  until: (state: TaskState) => boolean;
}

function streamOf(
  { troupe }: Caller,
  { sent, place, clock, until }: StreamParts,
  historyLength?: number,
): Reply {
  async function* tell(ends: AbortSignal): AsyncGenerator<StreamResponse, void> {
    for await (const each of followTask({ troupe }, sent, { clock, signal: ends, until }))
      if (each.type === 'update') yield each.update;
      else yield { task: await showTask(troupe, each.view, { historyLength }) };
  }
  return { type: 'stream', place, tell };
}

async function subscribe(call: Call): Promise<Reply> {
  const { caller, agent, server } = call;
  const { troupe } = caller;
  checkScope(caller.principal, 'read');
  const { id } = input(TaskRequest, call);
  const { clock, signal } = server;
  return withPlace({ caller, clock, signal }, async (place) => {
    const sent = await findTask({ troupe, agent }, id);
    if ((await readTask({ troupe }, sent)).isOver)
      throw a2aError('UNSUPPORTED_OPERATION', 'the task has ended: get it instead');
    return streamOf(caller, { sent, place, clock, until: isTerminal });
  });
}

async function get(call: Call): Promise<Reply> {
  const { caller, agent } = call;
  const { id, historyLength } = input(TaskRequest, call);
  return reading(caller, async () => {
    const sent = await findTask({ troupe: caller.troupe, agent }, id);
    return shown(caller, sent, historyLength);
  });
}

async function list(call: Call): Promise<Reply> {
  const { caller, agent } = call;
  const request = input(ListRequest, call);
  return reading(caller, () => listTasks({ troupe: caller.troupe, agent }, request));
}

/** Cancels everything that is running in the task's context. */
async function cancel(call: Call): Promise<Reply> {
  const { caller, agent } = call;
  const { troupe } = caller;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const { id } = input(TaskRequest, call);
  const sent = await findTask({ troupe, agent }, id);
  const { isOver } = await readTask({ troupe }, sent);
  if (isOver) throw a2aError('TASK_NOT_CANCELABLE', 'the task has ended');
  const { conversation } = sent;
  await troupe.command({ command: 'cancelTask', conversation, task: 'all' }, authorOf(caller));
  return { type: 'value', value: await shown(caller, sent) };
}

async function extendedCard({ context, caller, agent, server }: Call): Promise<Reply> {
  checkScope(caller.principal, 'read');
  return { type: 'value', value: cardOf({ context, caller, agent, server }, { isExtended: true }) };
}

async function createPush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  const { troupe } = caller;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  const { taskId, ...push } = input(NewPushRequest, call);
  const sent = await findTask({ troupe, agent }, taskId);
  return { type: 'value', value: await addPush({ ...caller, agent, pushes }, sent, push) };
}

async function getPush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  const request = input(PushRequest, call);
  return reading(caller, () => readPush({ ...caller, agent, pushes }, request));
}

async function listPush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  const { taskId } = input(PushListRequest, call);
  return reading(caller, async () => ({
    configs: await listPushes({ ...caller, agent, pushes }, taskId),
    nextPageToken: '',
  }));
}

async function deletePush(call: Call): Promise<Reply> {
  const { caller, agent, pushes } = call;
  checkScope(caller.principal, 'write');
  checkScope(caller.principal, 'read');
  await removePush({ ...caller, agent, pushes }, input(PushRequest, call));
  return { type: 'value', value: {} };
}

async function reading(caller: Caller, work: () => Promise<object>): Promise<Reply> {
  checkScope(caller.principal, 'read');
  return { type: 'value', value: await readAs(caller, work) };
}

/**
 * Passes a client's message on to the agent, or to the task that it names and that waits for it. Returns the message that
 * began the task. The message's id is its idempotency key. If the message names no context, its id and parts also determine
 * the context, so that a repeated message begins no second task. Other content with the same id is another message, because
 * some clients restart their numbering.
 */
async function beginTask(caller: Caller, agent: string, message: GivenMessage): Promise<Event> {
  const { troupe, principal } = caller;
  if (message.taskId) return goOn(caller, agent, message);
  const conversation =
    message.contextId ||
    newConversation(
      principal,
      `a2a-${digest(principal.id, agent, message.messageId, JSON.stringify(message.parts))}`,
    );
  const id = eventId(message.messageId);
  const said = { conversation, channel: 'a2a', id, ...saidIn(message), to: [agent] };
  const { seq } = await beginExchange(caller, said);
  return findTask({ troupe, agent }, taskId({ conversation, seq }));
}

async function goOn(caller: Caller, agent: string, message: GivenMessage): Promise<Event> {
  const { troupe } = caller;
  const sent = await findTask({ troupe, agent }, message.taskId!);
  if (message.contextId && message.contextId !== sent.conversation)
    throw a2aError('INVALID_PARAMS', `the task is of the context "${sent.conversation}"`);
  const { progress, isOver } = await readTask({ troupe }, sent);
  if (isOver) throw a2aError('UNSUPPORTED_OPERATION', 'the task has ended: begin another in its context');
  const waits = progress.asked.map(({ conversation, ...asked }) => ({
    conversation,
    task:
      asked.kind === 'question'
        ? ({ id: asked.body.question, kind: 'question' } as const)
        : ({ id: asked.body.request, kind: 'approval' } as const),
  }));
  if (waits.length === 0)
    throw a2aError('UNSUPPORTED_OPERATION', 'the task waits for no message: begin another in its context');
  await giveCommand(caller, commandIn(message, waits));
  return sent;
}

/** The id under which a client's message is stored: its own, if that is a valid event id. */
function eventId(messageId: string): string {
  const isEventId = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,255}$/.test(messageId);
  return isEventId ? messageId : `a2a-${digest(messageId)}`;
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

interface Said {
  content: string;
  attachments: (NewAttachment | AttachmentByAddress)[];
}

const UNKNOWN_TYPE = 'application/octet-stream';

/** Data that is not a file becomes JSON text. Throws INVALID_PARAMS for a part with no content, or with several. */
function saidIn({ parts }: Pick<GivenMessage, 'parts'>): Said {
  const texts: string[] = [];
  const attachments: Said['attachments'] = [];
  for (const part of parts) {
    const { text, raw, url, data, filename, mediaType } = part;
    if ([text, raw, url, data].filter((each) => each !== undefined).length !== 1)
      throw a2aError('INVALID_PARAMS', 'a part has one of text, raw, url and data');
    const name = filename ? { name: filename } : {};
    if (text !== undefined) texts.push(text);
    else if (raw !== undefined)
      attachments.push({ data: raw, mediaType: mediaType || UNKNOWN_TYPE, ...name });
    else if (url !== undefined) attachments.push({ url, ...(mediaType ? { mediaType } : {}), ...name });
    else texts.push(JSON.stringify(data));
  }
  const content = texts.filter((text) => text !== '').join('\n\n');
  if (content === '' && attachments.length === 0) throw a2aError('INVALID_PARAMS', 'the message is empty');
  return { content, attachments };
}

/** A question or approval that a task waits for. */
interface TaskWait {
  conversation: string;
  task: Pick<TaskInfo, 'id' | 'kind'>;
}

const YES = ['yes', 'approve', 'approved'];
const NO = ['no', 'refuse', 'refused', 'deny', 'denied'];

/**
 * The command that a further message to a task means: an answer or a decision. A data part may name its question or approval
 * as `question` or `request`; without a name, the oldest is meant. Throws INVALID_PARAMS for an invalid decision.
 */
function commandIn(message: Pick<GivenMessage, 'parts'>, waits: readonly TaskWait[]): CommandInput {
  const data = message.parts.find(({ data: given }) => isRecord(given))?.data as
    | Record<string, unknown>
    | undefined;
  const named = data?.['request'] ?? data?.['question'];
  const wait = named === undefined ? waits[0] : waits.find(({ task }) => task.id === named);
  if (!wait) throw a2aError('INVALID_PARAMS', 'the task does not wait for what the message names');
  const { conversation, task } = wait;
  if (task.kind === 'question') {
    const content = typeof data?.['answer'] === 'string' ? data['answer'] : textOf(message.parts);
    if (content === '') throw a2aError('INVALID_PARAMS', 'the answer to a question is a text');
    return { command: 'answer', conversation, question: task.id, content };
  }
  return { command: 'decide', conversation, request: task.id, ...decisionIn(data, textOf(message.parts)) };
}

function decisionIn(
  data: Record<string, unknown> | undefined,
  text: string,
): { approved: boolean; note?: string; args?: Record<string, unknown> } {
  const { approved, note, args } = data ?? {};
  if (typeof approved === 'boolean')
    return {
      approved,
      ...(typeof note === 'string' && note !== '' && { note }),
      ...(approved && isRecord(args) && { args }),
    };
  const word = text.trim().toLowerCase();
  if (YES.includes(word)) return { approved: true };
  if (NO.includes(word)) return { approved: false };
  throw a2aError(
    'INVALID_PARAMS',
    'the task waits for approval: send "approve" or "refuse", or a data part { approved, note?, args? }',
  );
}

function textOf(parts: readonly GivenPart[]): string {
  return parts.flatMap(({ text }) => (text ? [text] : [])).join('\n\n');
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `task`: the state of the task, before any update. */
type Followed = { type: 'task'; view: TaskView } | { type: 'update'; update: TaskUpdate };

interface FollowParts {
  clock: Clock;
  signal: AbortSignal;
  /** The states in which following ends. */
  until: (state: TaskState) => boolean;
}

/**
 * Follows a task until it reaches a state for which `until` is true, such as its end or a question to people. Continues while
 * its agents are paused and nobody works on it.
 *  F1  Everything that the log has at the beginning is in the task, and everything later is in the updates, each text once.
 */
async function* followTask(
  { troupe }: Pick<Desk, 'troupe'>,
  sent: Event,
  parts: FollowParts,
): AsyncGenerator<Followed, TaskView> {
  const { conversation, seq } = sent;
  const { signal, until } = parts;
  const { head } = await troupe.events(conversation, { limit: 1 });
  const view = new TaskView(sent, namesIn(troupe));
  const changesOf = changesFrom(troupe, sent);
  /** Seq of the last event, by conversation. */
  const seen = new Map<string, number>([[conversation, seq]]);
  let isTold = head <= seq;
  if (isTold) yield { type: 'task', view };
  for (;;) {
    const going = wholeExchange({ troupe, changes: changesOf }, { conversation, seq }, signal);
    try {
      for (let next = await going.next(); !next.done; next = await going.next()) {
        const change = next.value;
        if (change.type === 'event') seen.set(change.event.conversation, change.event.seq);
        const updates = view.take(change);
        if (isTold) for (const update of updates) yield { type: 'update', update };
        else if (isAt(change, conversation, head) || view.isOver) {
          isTold = true;
          yield { type: 'task', view };
        }
        if (view.isOver) return view;
      }
    } finally {
      await going.return(undefined as never);
    }
    const held = view.hold(await absentWorkers(troupe, view.progress));
    if (!isTold) yield { type: 'task', view };
    else for (const update of held) yield { type: 'update', update };
    isTold = true;
    if (until(view.progress.state)) return view;
    if (!(await somethingCame(troupe, { sent, seen, ...parts }))) return view;
  }
}

/** The changes that follow from the message, and from answers to its questions, without those that were already yielded. */
function changesFrom(troupe: Troupe, { conversation, seq }: Event) {
  const chat = openChat(troupe, conversation);
  /** An exchange reports what comes after its event. An answer to a question begins such an exchange, too. */
  return async function* changes(
    place: { seq: number },
    ends: AbortSignal,
  ): AsyncGenerator<ChatChange, Answer> {
    const { events } = await troupe.events(conversation, { after: place.seq - 1, limit: 1 });
    if (place.seq > seq) for (const event of events) yield { type: 'event', event };
    return yield* chat.follow(place.seq, ends);
  };
}

interface Waiting extends Pick<FollowParts, 'clock' | 'signal'> {
  sent: Event;
  seen: ReadonlyMap<string, number>;
}

/** Resolves when the conversation, or a thread of the task, has an event that was not seen yet. False if `signal` has aborted. */
async function somethingCame(troupe: Troupe, { sent, seen, clock, signal }: Waiting): Promise<boolean> {
  const options = { troupe, clock, signal, threads: true };
  for await (const frame of followConversation(sent.conversation, sent.seq, options)) {
    if (frame.type === 'event' && frame.event.seq > (seen.get(frame.event.conversation) ?? 0)) return true;
  }
  return false;
}

function isAt(change: { type: string; event?: Event }, conversation: string, head: number): boolean {
  const { event } = change;
  return event !== undefined && event.conversation === conversation && event.seq >= head;
}

/** Throws `agent_unknown`. */
export function agentIn({ agents }: Troupe, id: string): AgentInfo {
  const agent = agents.find((each) => each.id === id);
  if (!agent) throw new TroupeError('agent_unknown', `there is no agent "${id}"`, { agent: id });
  return agent;
}

interface CardRequest {
  context: Context;
  caller: Caller;
  agent: string;
  server: Pick<DoorServer, 'addressOf' | 'version'>;
}

/** The signed card of an agent, with the public URL. */
export function cardOf({ context, caller, agent, server }: CardRequest, options = { isExtended: false }) {
  const { troupe, principal } = caller;
  const info = agentIn(troupe, agent);
  const base = `${server.addressOf(context)}/api/a2a`;
  const { version } = server;
  const place = { url: `${base}/${info.id}`, version, isKeyed: principal.id !== LOCAL.id };
  const card = agentCard(info, place, options);
  const header = { typ: 'JOSE', jku: `${base}/.well-known/jwks.json` };
  return { ...card, signatures: [troupe.cardKey.sign(canonicalJson(card), header)] };
}

interface CardPlace {
  url: string;
  version: string;
  /** Whether callers need a key. */
  isKeyed: boolean;
}

const INPUT_MODES = ['text/plain', 'application/json', 'image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const OUTPUT_MODES = ['text/plain', 'application/json'];

type Skill = { id: string; name: string; description: string; tags: string[] };

/**
 * The card of an agent. It has no empty values, because signers leave them out of what they sign. `isExtended`: with the
 * agent's tools.
 */
function agentCard(agent: AgentInfo, place: CardPlace, { isExtended = false } = {}): object {
  const { id, name, role, capabilities, tools } = agent;
  const { url, version, isKeyed } = place;
  const description = agent.description || name;
  const skills: Skill[] = [{ id, name, description, tags: [role, ...capabilities] }];
  if (isExtended)
    for (const tool of tools)
      skills.push({ id: `${id}.${tool}`, name: tool, description: `Calls the tool ${tool}`, tags: ['tool'] });
  return {
    name,
    description,
    version,
    supportedInterfaces: ['JSONRPC', 'HTTP+JSON'].map((protocolBinding) => ({
      url,
      protocolBinding,
      protocolVersion: PROTOCOL_VERSION,
    })),
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    ...(isKeyed && {
      securitySchemes: { key: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
      securityRequirements: [{ schemes: { key: { list: ['read', 'write'] } } }],
    }),
    defaultInputModes: INPUT_MODES,
    defaultOutputModes: OUTPUT_MODES,
    skills,
  };
}
