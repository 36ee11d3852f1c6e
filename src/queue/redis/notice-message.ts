import * as z from 'zod';
import { ActorAddress, ConversationId, TenantId, tryParse, TurnId } from '../../events/index.ts';
import type { Notice } from '../broadcast.ts';

const seq = z.int().min(0);

const NoticeSchema: z.ZodType<Notice> = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('appended'),
    tenant: TenantId,
    conversation: ConversationId,
    after: seq,
    head: seq,
  }),
  z.object({
    type: z.literal('delta'),
    delta: z.object({
      address: ActorAddress,
      turn: TurnId,
      attempt: seq,
      step: seq,
      index: seq,
      text: z.string(),
    }),
  }),
  z.object({
    type: z.literal('state'),
    note: z.object({
      address: ActorAddress,
      turn: TurnId.nullable(),
      state: z.string(),
      event: z.string(),
      at: z.number(),
      doing: z.array(z.string()),
      waits: z.object({ code: z.string(), since: z.number(), next: z.number() }).optional(),
    }),
  }),
  z.object({ type: z.literal('stop'), address: ActorAddress, turn: TurnId }),
  z.object({ type: z.literal('called off'), tenant: TenantId, task: z.string().max(128) }),
]);

const Message = z.object({ from: z.string(), notices: z.array(z.unknown()) });

export function encodeNotices(from: string, notices: readonly Notice[]): string {
  return JSON.stringify({ from, notices });
}

/** Without reading it: one's own are the most of them where one process does the most. */
export function isFrom(text: string, from: string): boolean {
  return text.startsWith(`{"from":${JSON.stringify(from)},`);
}

export interface DecodedMessage {
  from: string;
  notices: Notice[];
  /** What could not be read: anybody may write to a channel, and a newer process may say what this one does not know. */
  malformed: number;
}

/** Null where the whole message cannot be read. */
export function decodeNotices(text: string): DecodedMessage | null {
  const message = Message.safeParse(parseJson(text));
  if (!message.success) return null;
  const read = message.data.notices.map((notice) => tryParse(NoticeSchema, notice));
  const notices = read.flatMap((each) => (each.success ? [each.data] : []));
  return { from: message.data.from, notices, malformed: read.length - notices.length };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
