import {
  type BusyPolicy,
  type CommandOf,
  type ConversationId,
  type Event,
  type EventId,
  parseTurnId,
  type TaskCommand,
  type TurnId,
} from '../../events/index.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { onInterrupt } from '../process/interrupt.ts';
import { showAccepted, waitForAnswers } from './wait-for-answers.ts';
import { text as readText } from 'node:stream/consumers';
import { TroupeError } from '../../base/errors.ts';
import type { NewAttachment, NewMessage } from '../../library/troupe.ts';
import { authorNamed } from '../client/author-named.ts';
import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { readImageHeader } from '../../library/facade/image-header.ts';

interface ActOptions extends ClientOptions {
  as?: string;
  wait?: boolean;
}

/**
 * Acts in a conversation and shows the result. With a server it shows that the act was accepted, and with `--wait` the
 * replies. Without a server it always waits until the agents are quiet: no other process would continue.
 */
export async function act(
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
}

export async function send(conversation: string, text: string, options: SendOptions): Promise<void> {
  const content = text === '-' ? await readText(process.stdin) : text;
  const attachments = await readFiles(options.attach ?? []);
  // An empty message would be stored and never answered, so that `--wait` would not end.
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
