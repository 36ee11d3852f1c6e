import * as z from 'zod';
import {
  ActorAddress,
  addressKey,
  charsOf,
  ConversationId,
  keyOfText,
  type LiveNote,
  TenantId,
  ToolOutcome,
  tryParse,
  TurnId,
  type TurnNote,
} from '../events/index.ts';
import type { Notice } from './broadcast.ts';
import type { Outage } from './outage.ts';

/**
 * Notices that wait to be sent together, joined where possible (B2).
 *  O1  `entries` has the waiting notices, oldest first; `open` has those that a later notice may still join.
 *  O2  Pieces join in their order. A piece with index 0 opens a new text at the end.
 *  O3  An `appended` notice comes after the notes that preceded it, so that watchers get a reply after its pieces: the
 *      joined notice moves to the end.
 *  O4  Only the latest state of an agent waits.
 *  O5  At most `maxChars` of notes of turns and answers to recalls wait; beyond that the oldest are dropped, because
 *      Redis cuts off readers of very long messages. Other notices are never dropped: at most one waits per conversation,
 *      turn, task and agent.
 *  O6  Only the latest progress of a call waits.
 *  O7  Pieces do not join pieces that wait from before a `recalled` of their conversation: they continue its texts.
 */
interface NoticeOutbox {
  add(notice: Notice): void;
  /** Removes and returns all waiting notices, oldest first. */
  take(): Notice[];
  isEmpty(): boolean;
  /** Number of dropped notes and answers, each counted once, however many pieces it has. */
  dropped(): number;
}

interface Entry {
  readonly key: string;
  notice: Notice;
}

export function createNoticeOutbox({ maxChars }: { maxChars: number }): NoticeOutbox {
  const entries = new Set<Entry>();
  const live = new Set<Entry>();
  const open = new Map<string, Entry>();
  let chars = 0;
  let dropped = 0;

  function enqueue(key: string, notice: Notice): Entry {
    const entry = { key, notice };
    entries.add(entry);
    open.set(key, entry);
    return entry;
  }

  /** Enqueues `notice` in place of the waiting one with the same key. */
  function replace(key: string, notice: Notice): void {
    const waiting = open.get(key);
    if (waiting) entries.delete(waiting);
    enqueue(key, notice);
  }

  function addLive(notice: TurnNote | Recalled): void {
    const key = keyOf(notice);
    const waiting = open.get(key);
    const piece = pieceOf(notice);
    const joined = piece && piece.index > 0 && waiting && pieceOf(waiting.notice);
    if (piece && joined) joined.text += piece.text;
    else {
      if (waiting && isOnlyLatest(notice)) remove(waiting);
      if (notice.type === 'recalled') closePieces(notice);
      live.add(enqueue(key, structuredClone(notice)));
    }
    chars += lengthOf(notice, maxChars);
    for (const oldest of live) {
      if (chars <= maxChars) break;
      remove(oldest);
      dropped += 1;
    }
  }

  function closePieces(of: Recalled): void {
    for (const { key, notice } of live) if (isNoteIn(notice, of)) open.delete(key);
  }

  function remove(entry: Entry): void {
    chars -= lengthOf(entry.notice, maxChars);
    live.delete(entry);
    entries.delete(entry);
    if (open.get(entry.key) === entry) open.delete(entry.key);
  }

  return {
    add(notice) {
      if (isTurnNote(notice) || notice.type === 'recalled') return addLive(notice);
      const key = keyOf(notice);
      const waiting = open.get(key)?.notice;
      if (!waiting || notice.type === 'state') return replace(key, notice);
      if (notice.type !== 'appended' || waiting.type !== 'appended') return;
      replace(key, joinedAppends(waiting, notice));
    },
    take() {
      const notices = [...entries].map((entry) => entry.notice);
      entries.clear();
      live.clear();
      open.clear();
      chars = 0;
      return notices;
    },
    isEmpty: () => entries.size === 0,
    dropped: () => dropped,
  };
}

type Appended = Notice & { type: 'appended' };

function joinedAppends(first: Appended, next: Appended): Appended {
  return { ...next, after: Math.min(first.after, next.after), head: Math.max(first.head, next.head) };
}

type Recalled = Extract<Notice, { type: 'recalled' }>;

/** Only notes of turns have a round. */
function isTurnNote(notice: Notice): notice is TurnNote {
  return 'round' in notice;
}

/** The text that later pieces may extend; null if the notice is whole. */
function pieceOf(notice: Notice): { index: number; text: string } | null {
  return 'index' in notice ? notice : null;
}

function isNoteIn(notice: Notice, { tenant, conversation }: Recalled): boolean {
  return isTurnNote(notice) && notice.tenant === tenant && notice.conversation === conversation;
}

/** Whether a later notice replaces it. */
function isOnlyLatest({ type }: Notice): boolean {
  return type === 'recalled' || type === 'progress';
}

/** Characters that a waiting notice counts: for an answer at most half of the limit, or a long one could never wait. */
function lengthOf(notice: Notice, maxChars: number): number {
  if (notice.type === 'recalled') {
    const all = notice.notes.reduce((sum, note) => sum + charsOf(note), 0);
    return Math.min(all, maxChars / 2);
  }
  return isTurnNote(notice) ? charsOf(notice) : 0;
}

/** Notices with the same key join, or the later one replaces the other. */
function keyOf(notice: Notice): string {
  if (isTurnNote(notice)) return `${addressKey(notice)} ${keyOfText(notice)}`;
  switch (notice.type) {
    case 'appended':
      return `appended ${notice.tenant}/${notice.conversation}`;
    case 'recall':
    case 'recalled':
      return `${notice.type} ${notice.tenant}/${notice.conversation}`;
    case 'state':
      return `state ${addressKey(notice)}`;
    case 'stop':
      return `stop ${addressKey(notice.address)} ${notice.turn}`;
    case 'cancelled':
      return `cancelled ${notice.tenant}/${notice.task}`;
  }
}

const seq = z.int().min(0);

const ofAgent = ActorAddress.shape;
const place = { ...ofAgent, turn: TurnId, attempt: seq, step: seq, round: seq };
const ofCall = { ...place, call: z.string(), name: z.string() };
const piece = { index: seq, text: z.string() };

const NOTES = [
  z.object({ type: z.literal('text'), ...place, ...piece }),
  z.object({ type: z.literal('reasoning'), ...place, ...piece }),
  z.object({ type: z.literal('arguments'), ...ofCall, ...piece }),
  z.object({ type: z.literal('dropped'), ...ofCall }),
  z.object({ type: z.literal('called'), ...ofCall, args: z.string() }),
  z.object({
    type: z.literal('progress'),
    ...ofCall,
    text: z.string().optional(),
    done: z.number().optional(),
    total: z.number().optional(),
  }),
  z.object({ type: z.literal('result'), ...ofCall, outcome: ToolOutcome, text: z.string() }),
  z.object({ type: z.literal('void'), ...place, reason: z.string(), all: z.boolean() }),
  z.object({
    type: z.literal('state'),
    ...ofAgent,
    turn: TurnId.nullable(),
    state: z.string(),
    event: z.string(),
    at: z.number(),
    doing: z.array(z.string()),
    waits: z.object({ code: z.string(), since: z.number(), next: z.number() }).optional(),
  }),
] as const;
const LiveNoteSchema: z.ZodType<LiveNote> = z.discriminatedUnion('type', NOTES);

const ofConversation = { tenant: TenantId, conversation: ConversationId };

const NoticeSchema: z.ZodType<Notice> = z.discriminatedUnion('type', [
  ...NOTES,
  z.object({ type: z.literal('appended'), ...ofConversation, after: seq, head: seq }),
  z.object({ type: z.literal('recall'), ...ofConversation }),
  z.object({ type: z.literal('recalled'), ...ofConversation, notes: z.array(LiveNoteSchema) }),
  z.object({ type: z.literal('stop'), address: ActorAddress, turn: TurnId }),
  z.object({ type: z.literal('cancelled'), tenant: TenantId, task: z.string().max(128) }),
]);

const Message = z.object({ from: z.string(), notices: z.array(z.unknown()) });

function encodeNotices(from: string, notices: readonly Notice[]): string {
  return JSON.stringify({ from, notices });
}

/** Checks the sender without parsing: a busy process receives mostly its own messages. */
export function isFrom(text: string, from: string): boolean {
  return text.startsWith(`{"from":${JSON.stringify(from)},`);
}

interface DecodedMessage {
  /** The member that sent it. */
  from: string;
  /** In their order. */
  notices: Notice[];
  /** Number of unreadable notices: anyone may write to a channel, and a newer process may use types unknown here. */
  malformed: number;
}

/** Null if the whole message cannot be read. */
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

interface NoticeSenderOptions {
  /** Identifies this member. */
  process: string;
  /** Sends one message to all members. */
  send: (text: string) => Promise<unknown>;
  /** The reason why nothing can be sent now, else null. */
  whyNot?: () => string | null;
  /** Receives whether messages can be sent. */
  outage: Outage;
  /** Ends the sending. */
  signal: AbortSignal;
  /** How long notes of turns and answers to recalls wait to be joined. */
  coalesceMs?: number | undefined;
  /** The server counts as unavailable when a message takes longer. */
  stallMs?: number | undefined;
  /** Most characters of waiting notes and answers to recalls. */
  maxPendingChars?: number | undefined;
}

const CLOSE_WAIT_MS = 500;
/** Notices that are sent at once: they are always small, and they matter beyond the moment. */
const URGENT: ReadonlySet<Notice['type']> = new Set(['appended', 'recall', 'stop', 'cancelled']);

/**
 * The publishing side of a broadcast over a server. Nothing is stored.
 *  P1  At most one message is under way. Notices that come meanwhile wait in the outbox and are joined there.
 *  P2  Notes of turns and answers to recalls wait `coalesceMs`. Everything else is sent at once, together with
 *      what came before it.
 *  P3  While the server is unavailable (`whyNot`, or a message under way longer than `stallMs`) notices are dropped.
 */
export function createNoticeSender(options: NoticeSenderOptions) {
  const { outage, signal, whyNot = () => null, coalesceMs = 50, stallMs = 5_000 } = options;
  const outbox = createNoticeOutbox({ maxChars: options.maxPendingChars ?? 1_000_000 });
  const counts = { sent: 0, dropped: 0 };
  let timer: NodeJS.Timeout | null = null;
  let sending: Promise<void> | null = null;
  let sendsSoon = false;
  let isStalled = false;

  function publish(notice: Notice): void {
    if (signal.aborted) return;
    if (isStalled) return void (counts.dropped += 1);
    outbox.add(notice);
    if (!URGENT.has(notice.type)) {
      timer ??= setTimeout(sendWaiting, coalesceMs);
    } else if (!sendsSoon) {
      sendsSoon = true;
      queueMicrotask(send);
    }
  }

  function sendWaiting(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    sendsSoon = true;
    send();
  }

  function send(): void {
    if (sending) return;
    sendsSoon = false;
    if (outbox.isEmpty()) return;
    const notices = outbox.take();
    const why = whyNot();
    if (why !== null) return drop(notices, new Error(why));
    const stall = setTimeout(() => {
      isStalled = true;
      drop(outbox.take(), new Error(`no answer for ${stallMs} ms`));
    }, stallMs).unref();
    sending = options.send(encodeNotices(options.process, notices)).then(
      () => {
        counts.sent += 1;
        outage.end('publishing');
      },
      (error: unknown) => drop(notices, error),
    );
    void sending.finally(() => {
      clearTimeout(stall);
      sending = null;
      isStalled = false;
      if (sendsSoon) send();
    });
  }

  function drop(notices: readonly Notice[], error: unknown): void {
    counts.dropped += notices.length;
    outage.begin('publishing', error);
  }

  /** Sends the waiting notices. Returns when they are sent, or after `CLOSE_WAIT_MS`. */
  async function flush(): Promise<void> {
    sendWaiting();
    if (!sending) return;
    const late = Promise.withResolvers<void>();
    const limit = setTimeout(late.resolve, CLOSE_WAIT_MS);
    await Promise.race([sending, late.promise]);
    clearTimeout(limit);
  }

  return {
    publish,
    flush,
    counts: () => ({ sent: counts.sent, dropped: counts.dropped + outbox.dropped() }),
  };
}
