import {
  type BusyPolicy,
  type CommandOf,
  type ConversationId,
  type Event,
  type EventId,
  parseTurnId,
  type TaskCommand,
  type TurnId,
  type AgentId,
  type ConversationCommand,
  type JoinPolicy,
  type Mode,
} from '../../events/index.ts';
import { authorNamed, type Client, type Frame } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { onInterrupt } from '../process/terminal.ts';
import { text as readText } from 'node:stream/consumers';
import { TroupeError } from '../../base/errors.ts';
import type { NewAttachment, NewMessage, ActorStatus } from '../../library/troupe.ts';
import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { readImageHeader } from '../../library/facade/image-header.ts';
import { print, printJson, errorText, paint } from '../render/output.ts';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answers, awaitAnswers } from '../../library/asking/ask.ts';
import { openWaits, type Wait, waitText } from './tasks.ts';
import { createReplyPrinter, type ReplyPrinter } from '../render/reply-printer.ts';

interface ActOptions extends ClientOptions {
  as?: string;
  wait?: boolean;
}

/**
 * Acts in a conversation and shows the result. With a server it shows that the command was accepted, and with `--wait` the
 * replies. Without a server it always waits until the agents are quiet, because no other process would continue their work.
 */
async function act(
  conversation: string,
  deed: (client: Client) => Promise<Event>,
  options: ActOptions,
  mayCreate = false,
): Promise<void> {
  const asJson = options.json === true;
  const client = await connect(options, { needs: 'work', mayCreate });
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort());
  try {
    if (!client.isDirect && !options.wait) showAccepted(await deed(client), asJson);
    else await waitForAnswers(client, conversation, () => deed(client), { stop, asJson });
  } finally {
    stop.abort();
    await client.close();
    dispose();
  }
}

interface SendOptions extends ActOptions {
  to?: string[];
  id?: string;
  attach?: string[];
  whileBusy?: BusyPolicy;
  peopleOnly?: boolean;
  session?: string;
  mode?: Mode;
}

export async function send(conversation: string, text: string, options: SendOptions): Promise<void> {
  const content = text === '-' ? await readText(process.stdin) : text;
  const attachments = await readFiles(options.attach ?? []);
  // An empty message would be stored but never answered, so `--wait` would not end.
  if (content.trim() === '' && attachments.length === 0)
    throw new TroupeError('event_invalid', 'TEXT is empty; there is nothing to send', { path: 'content' });
  const message: NewMessage = {
    author: authorNamed(options.as),
    content,
    ...(attachments.length > 0 && { attachments }),
    ...(options.to && { to: options.to }),
    ...(options.id !== undefined && { id: options.id as EventId }),
    ...(options.whileBusy !== undefined && { whileBusy: options.whileBusy }),
    ...(options.peopleOnly && { includeInContext: false }),
    ...(options.session !== undefined && { session: namedSession(options.session, options.to) }),
    ...(options.mode !== undefined && { mode: options.mode }),
    channel: 'cli',
  };
  await act(conversation, (client) => client.send(conversation, message), options, true);
}

/** Throws `event_invalid` unless the text is `PROVIDER:ID` and the message has one addressee. */
function namedSession(text: string, [agent, ...others]: readonly string[] = []): NewMessage['session'] {
  const [, provider, id] = /^([^:]+):(.+)$/.exec(text) ?? [];
  if (provider !== undefined && id !== undefined && agent !== undefined && others.length === 0)
    return { agent, provider, id };
  const message = '--session is PROVIDER:ID, for example claude-code:1f0c…, and needs one agent in --to';
  throw new TroupeError('event_invalid', message, { path: 'session' });
}

/** Media types by file extension, for files whose bytes do not identify them. */
const TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.svg': 'image/svg+xml',
  '.pdf': 'application/pdf',
  '.zip': 'application/zip',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.csv': 'text/csv',
  '.html': 'text/html',
};

/** Reads files as attachments. Throws `event_invalid` for a file that cannot be read. */
function readFiles(paths: readonly string[]): Promise<NewAttachment[]> {
  return Promise.all(
    paths.map(async (path) => {
      const bytes = await readOrThrow(path);
      return { name: basename(path), mediaType: typeOf(path, bytes), data: bytes.toString('base64') };
    }),
  );
}

async function readOrThrow(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a directory' : String(cause);
    throw new TroupeError(
      'event_invalid',
      `--attach: cannot read ${path}: ${reason}`,
      { file: path },
      { cause },
    );
  }
}

function typeOf(path: string, bytes: Buffer): string {
  const image = readImageHeader(bytes);
  if (image) return image.mediaType;
  return TYPES[extname(path).toLowerCase()] ?? (isText(bytes) ? 'text/plain' : 'application/octet-stream');
}

function isText(bytes: Buffer): boolean {
  return !bytes.includes(0) && Buffer.from(bytes.toString()).equals(bytes);
}

/** Retries a turn that failed or was stopped. */
export async function retry(turn: string, options: ActOptions): Promise<void> {
  const parts = parseTurnId(turn);
  if (!parts) throw new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
  const author = authorNamed(options.as);
  await act(
    parts.conversation,
    (client) => client.command({ command: 'retry', turn: turn as TurnId }, author),
    options,
  );
}

interface RunOptions extends ActOptions {
  directive?: string;
  run?: string;
  step?: string;
}

export async function runWorkflow(
  conversation: string,
  workflow: string,
  options: RunOptions,
): Promise<void> {
  const { directive, run, step } = options;
  const command: CommandOf<'run'> = {
    command: 'run',
    conversation: conversation as ConversationId,
    workflow,
    ...(directive !== undefined && {
      directive: directive === '-' ? await readText(process.stdin) : directive,
    }),
    ...(run !== undefined && { run }),
    ...(step !== undefined && { step }),
  };
  const author = authorNamed(options.as);
  await act(conversation, (client) => client.command(command, author), options, step === undefined);
}

interface TaskOptions extends ActOptions {
  note?: string;
  args?: string;
  argsHash?: string;
  reason?: string;
}

export async function answer(
  conversation: string,
  question: string,
  text: string,
  options: TaskOptions,
): Promise<void> {
  const content = text === '-' ? await readText(process.stdin) : text;
  await say({ command: 'answer', conversation: conversation as ConversationId, question, content }, options);
}

export async function decide(
  conversation: string,
  request: string,
  approved: boolean,
  options: TaskOptions,
): Promise<void> {
  const { note, args, argsHash } = options;
  const more = {
    ...(note !== undefined && { note }),
    ...(args !== undefined && { args: argumentsIn(args) }),
    ...(argsHash !== undefined && { argsHash }),
  };
  const command = { command: 'decide', conversation: conversation as ConversationId } as const;
  await say({ ...command, request, approved, ...more }, options);
}

/** Throws `event_invalid` unless the text is a JSON object. */
function argumentsIn(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new TroupeError('event_invalid', '--args: give a JSON object, such as --args \'{"to":"ben"}\'', {
    path: 'args',
  });
}

export async function cancel(conversation: string, task: string, options: TaskOptions): Promise<void> {
  const { reason } = options;
  const command = { command: 'cancelTask', conversation: conversation as ConversationId, task } as const;
  await say({ ...command, ...(reason !== undefined && { reason }) }, options);
}

/** Sends a command about a task, and shows the agents' replies. */
async function say(command: TaskCommand, options: TaskOptions): Promise<void> {
  const author = authorNamed(options.as);
  await act(command.conversation, (client) => client.command(command, author), options);
}

interface SayOptions extends ClientOptions {
  as?: string;
  reason?: string;
}

interface AgentOptions extends SayOptions {
  policy?: JoinPolicy;
}

type AgentAction = Extract<ConversationCommand, { agent: AgentId } | { template: AgentId }>['command'];

export async function agentCommand(
  action: AgentAction,
  conversation: string,
  name: string,
  options: AgentOptions,
): Promise<void> {
  const { reason, policy } = options;
  const where = conversation as ConversationId;
  const agent = name.replace(/^@/, '') as AgentId;
  await carry(commandOf(action, { conversation: where, agent }, { reason, policy }), options, 'agents');
}

function commandOf(
  action: AgentAction,
  about: { conversation: ConversationId; agent: AgentId },
  { reason, policy }: { reason: string | undefined; policy: AgentOptions['policy'] | undefined },
): ConversationCommand {
  switch (action) {
    case 'join':
      return { command: action, ...about, ...(policy && { policy }) };
    case 'leave':
    case 'block':
      return { command: action, ...about, ...(reason !== undefined && { reason }) };
    case 'spawn':
      return { command: action, conversation: about.conversation, template: about.agent };
    case 'unblock':
    case 'retire':
    case 'reinstate':
    case 'recall':
    case 'compact':
      return { command: action, ...about };
  }
}

export async function endCommand(
  command: 'archive' | 'reopen',
  conversation: string,
  options: SayOptions,
): Promise<void> {
  const { reason } = options;
  const where = conversation as ConversationId;
  await carry({ command, conversation: where, ...(reason !== undefined && { reason }) }, options, 'names');
}

/** Runs a command that may need the agents file to resolve agent names. */
async function carry(
  command: ConversationCommand,
  options: SayOptions,
  needs: 'agents' | 'names',
): Promise<void> {
  const author = authorNamed(options.as);
  const client = await connect(options, { needs });
  try {
    const event = await client.command(command, author);
    if (options.json) printJson({ event });
    else print(`${doneText(event)} in ${event.conversation}, seq ${event.seq}`);
  } finally {
    await client.close();
  }
}

function doneText(event: Event): string {
  if (event.kind === 'membership.changed') {
    const { body } = event;
    return `@${body.agent} ${body.change === 'joined' ? 'takes part' : body.blocked ? 'is blocked' : 'has left'}`;
  }
  if (event.kind !== 'command') return event.kind;
  const { command, agent } = event.body;
  if (command === 'archive') return 'archived';
  if (command === 'reopen') return 'reopened';
  if (command === 'compact') return `@${agent} compacts its prompt before its next turn`;
  return `${command === 'recall' ? 'reinstate' : command} of @${agent}`;
}

interface ForkOptions extends ClientOptions {
  at?: number;
  turn?: string;
  asConversation?: string;
  as?: string;
}

/** Creates a conversation from the beginning of another. Default: from all of it. */
export async function fork(conversation: string, options: ForkOptions): Promise<void> {
  const { at, turn, asConversation } = options;
  if (at !== undefined && turn !== undefined)
    throw new TroupeError(
      'config_invalid',
      'fork at an event or before a turn: give --at or --turn, not both',
    );
  if (turn !== undefined && parseTurnId(turn)?.conversation !== conversation)
    throw new TroupeError('turn_unknown', `there is no turn "${turn}" in ${conversation}`, { turn });
  const author = authorNamed(options.as);
  const client = await connect(options, { needs: 'names' });
  try {
    const place: Omit<CommandOf<'fork'>, 'command'> = turn === undefined
      ? { conversation: conversation as ConversationId, seq: at ?? (await client.head(conversation)) }
      : { turn: turn as TurnId };
    const as = asConversation === undefined ? {} : { as: asConversation as ConversationId };
    const event = await client.command({ command: 'fork', ...place, ...as }, author);
    const made = event.kind === 'command' ? event.body.fork : undefined;
    if (options.json) printJson({ event, fork: made });
    else print(`${made?.conversation} has the first ${made?.seq} events of ${event.conversation}`);
  } finally {
    await client.close();
  }
}

/** Time without a frame after which the agents' state is read, ms: a server does not report that all agents are idle. */
const LOOK_MS = 1_000;
/** Consecutive idle checks that end the wait: between two tasks all agents may look idle. */
const IDLE_LOOKS = 2;

/**
 * Acts in a conversation, for example sends a message, and shows the replies until all agents have answered or none can
 * answer. If none can, it prints what they wait for, with the command that helps.
 */
export async function waitForAnswers(
  client: Client,
  conversation: string,
  act: () => Promise<Event>,
  { stop, asJson }: { stop: AbortController; asJson: boolean },
): Promise<void> {
  const head = await client.head(conversation);
  // Watching begins before the message is stored, so that the reply is shown from its first word.
  const early = follow(client, conversation, head, stop.signal);
  const stopped = head > 0 ? await stoppedAgents(client, conversation) : [];
  const event = await act();
  const answers = awaitAnswers(event);
  // Agents that stop later write their reason to the log.
  const still = stopped.length > 0 ? await stoppedAgents(client, conversation) : [];
  for (const each of still) if (stopped.some(({ agent }) => agent === each.agent)) giveUpOn(each, answers);
  // A message that was already stored may have been answered before the head.
  const frames = event.seq > head ? early : follow(client, conversation, event.seq, stop.signal);
  const printer = asJson ? null : createReplyPrinter();
  const quiet = client.isDirect ? client.idle().then(() => endAt(client, conversation, frames)) : null;
  // Awaited below. After an interrupt it is not awaited, and fails when the store closes.
  quiet?.catch(() => {});
  await showUntilAnswered({ client, conversation, frames, answers, printer, after: event.seq });
  if (!stop.signal.aborted) await quiet;
  const { waits } = stop.signal.aborted ? { waits: [] } : await openWaits(client, conversation);
  const waiting = new Set<string>(waits.map(({ task }) => task.owner));
  for (const agent of answers.missing) {
    if (!waiting.has(agent)) answers.giveUp(agent, 'aborted', `@${agent} has not answered`);
  }
  report(event, answers, waits, asJson);
}

interface Shown {
  client: Client;
  conversation: string;
  frames: Frames;
  answers: Answers;
  printer: ReplyPrinter | null;
  /** Seq of the event that is answered. */
  after: number;
}

async function showUntilAnswered(shown: Shown): Promise<void> {
  const { client, conversation, frames, answers, printer, after } = shown;
  for (let looks = 0; !answers.areComplete && looks < IDLE_LOOKS;) {
    const frame = await frames.next();
    if (frame === null) break;
    if (frame === 'quiet') {
      looks =
        client.isDirect || (await isAnyAgentAtWork(client, answers, conversation, frames.seen()))
          ? 0
          : looks + 1;
      continue;
    }
    looks = 0;
    if (frame.type === 'event') answers.note(frame.event);
    printer?.show(frame, after);
  }
}

interface Frames {
  /** Seq of the last event returned by `next`. */
  seen(): number;
  /** The next frame; null at the end, `quiet` after `LOOK_MS` without one. */
  next(): Promise<Frame | 'quiet' | null>;
  /** Ends after the event with this seq. */
  endAfter(seq: number): void;
}

function follow(client: Client, conversation: string, after: number, signal: AbortSignal): Frames {
  const end = new AbortController();
  const source = client.follow(conversation, after, AbortSignal.any([signal, end.signal]));
  let seen = after;
  let last = Infinity;
  let pending: Promise<IteratorResult<Frame, void>> | null = source.next();
  // Awaited in `next`. If the send is refused, nobody calls `next`.
  pending.catch(() => {});
  return {
    seen: () => seen,
    async next() {
      if (seen >= last) return null;
      pending ??= source.next();
      const got = await orQuiet(pending);
      if (got === 'quiet') return got;
      pending = null;
      if (got.done) return null;
      if (got.value.type === 'event') seen = got.value.event.seq;
      return got.value;
    },
    endAfter(seq) {
      last = seq;
      if (seen >= last) end.abort();
    },
  };
}

async function orQuiet<T>(work: Promise<T>): Promise<T | 'quiet'> {
  const done = new AbortController();
  const quiet = pause(LOOK_MS, 'quiet' as const, { signal: done.signal });
  // Fails when it is aborted after the work is done.
  quiet.catch(() => {});
  try {
    return await Promise.race([work, quiet]);
  } finally {
    done.abort();
  }
}

/** Once all agents are idle, the log has every answer. */
async function endAt(client: Client, conversation: string, frames: Frames): Promise<void> {
  frames.endAfter(await client.head(conversation));
}

async function stoppedAgents(client: Client, conversation: string): Promise<ActorStatus[]> {
  return (await client.actors(conversation)).filter(isStopped);
}

function isStopped({ status }: ActorStatus): boolean {
  return status === 'paused' || status === 'failed' || status === 'retired';
}

function giveUpOn({ agent, status, problem }: ActorStatus, answers: Answers): void {
  if (!answers.missing.includes(agent)) return;
  const message = `@${agent} is ${status} and takes no turns${problem === undefined ? '' : `: ${problem}`}`;
  answers.giveUp(agent, 'command_refused', message);
}

/** Whether any agent is working. An idle agent that has read its messages is itself waiting for something. */
async function isAnyAgentAtWork(
  client: Client,
  answers: Answers,
  conversation: string,
  seen: number,
): Promise<boolean> {
  const actors = await client.actors(conversation);
  // Answers, and the reasons of agents that stop, are stored before the agents' state, so frames with them may still come.
  if ((await client.head(conversation)) > seen) return true;
  const stopped = actors.filter((each) => isStopped(each) && answers.missing.includes(each.agent));
  for (const each of stopped) giveUpOn(each, answers);
  const isMissing = answers.unanswered.some(({ agent, seq }) => {
    const actor = actors.find((each) => each.agent === agent);
    return !actor || actor.turn !== null || actor.lastProcessedIndex < seq;
  });
  return isMissing || (await openWaits(client, conversation)).atWork;
}

function report(event: Event, { replies, failures }: Answers, waits: readonly Wait[], asJson: boolean): void {
  if (asJson) printJson({ event, replies, waiting: waits });
  else if (event.to.length === 0 && (event.kind === 'message' || event.kind === 'notice'))
    print(
      paint(
        'dim',
        `seq ${event.seq}: stored; ${event.kind === 'notice' ? 'no agent sees it' : 'it addresses no agent'}`,
      ),
    );
  if (!asJson) for (const wait of waits) print(waitText(wait));
  for (const { agent, ...failure } of failures) {
    process.stderr.write(errorText({ ...failure, data: { agent } }, asJson));
  }
  if (failures.length > 0) process.exitCode = 1;
}

function showAccepted(event: Event, asJson: boolean): void {
  if (asJson) return printJson({ event });
  const nobody = event.kind === 'notice' ? 'people only' : 'no agent in particular';
  const to = event.to.length > 0 ? event.to.map((agent) => `@${agent}`).join(', ') : nobody;
  print(`accepted as seq ${event.seq} of ${event.conversation}, for ${to}`);
}
