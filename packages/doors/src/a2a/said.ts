import type { AttachmentByAddress, CommandInput, NewAttachment, TaskInfo } from '../troupe.ts';
import { a2aError } from './problem.ts';
import type { GivenMessage, GivenPart } from './requests.ts';

/** What a client's message says. */
export interface Said {
  content: string;
  attachments: (NewAttachment | AttachmentByAddress)[];
}

const UNKNOWN_TYPE = 'application/octet-stream';

/** Data that is no file is told as JSON. Throws INVALID_PARAMS for a part without content, or with several. */
export function saidIn({ parts }: Pick<GivenMessage, 'parts'>): Said {
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

/** Something that a task waits for. */
export interface TaskWait {
  conversation: string;
  task: Pick<TaskInfo, 'id' | 'kind'>;
}

const YES = ['yes', 'approve', 'approved'];
const NO = ['no', 'refuse', 'refused', 'deny', 'denied'];

/**
 * The command that a further message to a task is: an answer, or a decision. A data part may name what it is about as
 * `request` or `question`; else it is about the oldest. Throws INVALID_PARAMS for a decision that is none.
 */
export function commandIn(message: Pick<GivenMessage, 'parts'>, waits: readonly TaskWait[]): CommandInput {
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
