import { text as readText } from 'node:stream/consumers';
import { userInfo } from 'node:os';
import { TroupeError } from '../errors.ts';
import type { Author, Event, EventId } from '../events/index.ts';
import type { NewMessage } from '../troupe.ts';
import { type Answers, awaitAnswers } from './await-answers.ts';
import type { Client, Frame } from './client.ts';
import { type ClientOptions, connect } from './connect.ts';
import { onInterrupt } from './interrupt.ts';
import { errorText, paint, print, printJson } from './output.ts';
import { readFiles } from './read-files.ts';
import { createReplyPrinter } from './reply-printer.ts';

interface SendOptions extends ClientOptions {
  to?: string[];
  as?: string;
  id?: string;
  attach?: string[];
  wait?: boolean;
}

export async function send(conversation: string, text: string, options: SendOptions): Promise<void> {
  const content = text === '-' ? await readText(process.stdin) : text;
  const attachments = await readFiles(options.attach ?? []);
  // It would be stored, and as it says nothing, answered by nobody: waiting for that would never end.
  if (content.trim() === '' && attachments.length === 0)
    throw new TroupeError('event_invalid', 'TEXT is empty: nothing to send', { path: 'content' });
  const message: NewMessage = {
    author: authorNamed(options.as ?? userName()),
    content,
    ...(attachments.length > 0 && { attachments }),
    ...(options.to && { to: options.to }),
    ...(options.id !== undefined && { id: options.id as EventId }),
  };
  const client = await connect(options, { needs: 'work', mayCreate: true });
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort());
  try {
    if (!client.isDirect && !options.wait) showAccepted(await client.send(conversation, message), options);
    else await sendAndWait(client, conversation, message, stop, options.json === true);
  } finally {
    stop.abort();
    await client.close();
    dispose();
  }
}

async function sendAndWait(
  client: Client,
  conversation: string,
  message: NewMessage,
  stop: AbortController,
  asJson: boolean,
): Promise<void> {
  const head = await client.head(conversation);
  // Watching begins before the message is there, so that the reply is seen from its first word.
  const early = follow(client, conversation, head, stop.signal);
  const event = await client.send(conversation, message);
  const answers = awaitAnswers(event);
  await giveUpOnParked(client, answers, conversation);
  // One that was there before has its answers, perhaps, before the head.
  const frames = event.seq > head ? early : follow(client, conversation, event.seq, stop.signal);
  const printer = asJson ? null : createReplyPrinter();
  const quiet = client.isDirect ? client.idle().then(() => endAt(client, conversation, frames)) : null;
  // Awaited below; only where the command is interrupted the store may be closed under it.
  quiet?.catch(() => {});
  while (!answers.areComplete) {
    const frame = await frames.next();
    if (!frame) break;
    if (frame.type === 'event') answers.note(frame.event);
    printer?.show(frame, event.seq);
  }
  if (!stop.signal.aborted) await quiet;
  for (const agent of answers.missing) answers.giveUp(agent, 'aborted', `@${agent} has not answered`);
  report(event, answers, asJson);
}

interface Frames {
  /** Null once nothing more is to come. */
  next(): Promise<Frame | null>;
  /** Ends after the event with this seq. */
  endAfter(seq: number): void;
}

function follow(client: Client, conversation: string, after: number, signal: AbortSignal): Frames {
  const end = new AbortController();
  const source = client.follow(conversation, after, AbortSignal.any([signal, end.signal]));
  let seen = after;
  let last = Infinity;
  let first: Promise<IteratorResult<Frame, void>> | null = source.next();
  // Awaited in `next`; a refused send must not leave it unhandled.
  first.catch(() => {});
  return {
    async next() {
      if (seen >= last) return null;
      const pending = first ?? source.next();
      first = null;
      const { done, value } = await pending;
      if (done) return null;
      if (value.type === 'event') seen = value.event.seq;
      return value;
    },
    endAfter(seq) {
      last = seq;
      if (seen >= last) end.abort();
    },
  };
}

/** When all is quiet, an answer that is not in the log yet will not come. */
async function endAt(client: Client, conversation: string, frames: Frames): Promise<void> {
  frames.endAfter(await client.head(conversation));
}

async function giveUpOnParked(client: Client, answers: Answers, conversation: string): Promise<void> {
  for (const { agent, status, problem } of await client.actors(conversation)) {
    if (!answers.missing.includes(agent)) continue;
    if (status !== 'paused' && status !== 'failed' && status !== 'retired') continue;
    const message = `@${agent} is ${status} and takes no turns${problem === undefined ? '' : `: ${problem}`}`;
    answers.giveUp(agent, 'command_refused', message);
  }
}

function report(event: Event, { replies, failures }: Answers, asJson: boolean): void {
  if (asJson) printJson({ event, replies });
  else if (event.to.length === 0) print(paint('dim', `seq ${event.seq}: stored; it addresses nobody`));
  for (const { agent, ...failure } of failures) {
    process.stderr.write(errorText({ ...failure, data: { agent } }, asJson));
  }
  if (failures.length > 0) process.exitCode = 1;
}

function showAccepted(event: Event, { json }: SendOptions): void {
  if (json) return printJson({ event });
  const to = event.to.length > 0 ? event.to.map((agent) => `@${agent}`).join(', ') : 'nobody in particular';
  print(`accepted as seq ${event.seq} of ${event.conversation}, for ${to}`);
}

function authorNamed(name: string): Author {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  if (name.trim() === '')
    throw new TroupeError('event_invalid', '--as: a name is missing', { path: 'author.name' });
  return { kind: 'user', id: id || 'user', name };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A process may run as a user that the system has no entry for.
    return 'user';
  }
}
