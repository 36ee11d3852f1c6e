import {
  ActorAddress,
  addressKey,
  ConversationId,
  type StreamDelta,
  TenantId,
  tryParse,
  TurnId,
} from '../events/index.ts';
import type { Notice } from './broadcast.ts';
import * as z from 'zod';

/**
 * Notices that wait to be sent together, joined where they can be (B2).
 *  O1  What waits is in `entries`, oldest first; `open` has those that a later notice may still join.
 *  O2  Pieces join in the order they came. A piece with index 0 opens a new delta behind what waits.
 *  O3  That a conversation has grown is told after the deltas that came before it, so that watchers see a reply whole
 *      after its pieces: the joined notice moves to the end.
 *  O4  Of the states of one agent only the latest waits: what it was before concerns nobody who hears both at once.
 *  O5  At most `maxChars` of delta text wait: then the oldest deltas go. Other notices are never dropped; there is at
 *      most one for each conversation, each turn, each task and each agent.
 */
export interface NoticeOutbox {
  add(notice: Notice): void;
  /** Removes and returns all waiting notices, oldest first. */
  take(): Notice[];
  isEmpty(): boolean;
  /** Number of dropped deltas, each counted once whatever its number of pieces. */
  dropped(): number;
}

interface Entry {
  readonly key: string;
  notice: Notice;
}

export function createNoticeOutbox({ maxChars }: { maxChars: number }): NoticeOutbox {
  const entries = new Set<Entry>();
  const deltas = new Set<Entry>();
  const open = new Map<string, Entry>();
  let chars = 0;
  let dropped = 0;

  function enqueue(key: string, notice: Notice): Entry {
    const entry = { key, notice };
    entries.add(entry);
    open.set(key, entry);
    return entry;
  }

  function addDelta(piece: StreamDelta): void {
    const key = `delta ${addressKey(piece.address)} ${piece.turn} ${piece.attempt} ${piece.step}`;
    const waiting = open.get(key)?.notice;
    if (waiting?.type === 'delta' && piece.index > 0) waiting.delta.text += piece.text;
    else deltas.add(enqueue(key, { type: 'delta', delta: { ...piece } }));
    chars += piece.text.length;
    for (const oldest of deltas) {
      if (chars <= maxChars) break;
      discard(oldest);
    }
  }

  function discard(entry: Entry): void {
    if (entry.notice.type === 'delta') chars -= entry.notice.delta.text.length;
    dropped += 1;
    deltas.delete(entry);
    entries.delete(entry);
    if (open.get(entry.key) === entry) open.delete(entry.key);
  }

  function addAppended(notice: Extract<Notice, { type: 'appended' }>): void {
    const key = `appended ${notice.tenant}/${notice.conversation}`;
    const waiting = open.get(key);
    if (waiting?.notice.type !== 'appended') return void enqueue(key, notice);
    entries.delete(waiting);
    const after = Math.min(waiting.notice.after, notice.after);
    enqueue(key, { ...notice, after, head: Math.max(waiting.notice.head, notice.head) });
  }

  function addState(notice: Extract<Notice, { type: 'state' }>): void {
    const key = `state ${addressKey(notice.note.address)}`;
    const waiting = open.get(key);
    if (waiting) entries.delete(waiting);
    enqueue(key, notice);
  }

  return {
    add(notice) {
      switch (notice.type) {
        case 'delta':
          return addDelta(notice.delta);
        case 'appended':
          return addAppended(notice);
        case 'state':
          return addState(notice);
        case 'stop': {
          const key = `stop ${addressKey(notice.address)} ${notice.turn}`;
          if (!open.has(key)) enqueue(key, notice);
          return;
        }
        case 'called off': {
          const key = `called off ${notice.tenant}/${notice.task}`;
          if (!open.has(key)) enqueue(key, notice);
        }
      }
    },
    take() {
      const notices = [...entries].map((entry) => entry.notice);
      entries.clear();
      deltas.clear();
      open.clear();
      chars = 0;
      return notices;
    },
    isEmpty: () => entries.size === 0,
    dropped: () => dropped,
  };
}

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

/** Checks the sender without parsing: a busy process hears mostly its own messages. */
export function isFrom(text: string, from: string): boolean {
  return text.startsWith(`{"from":${JSON.stringify(from)},`);
}

interface DecodedMessage {
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
