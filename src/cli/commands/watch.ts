import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { type ConversationId, EVENT_KINDS, type Event, nearestName } from '../../events/index.ts';
import { matchesRow, type RowFilter } from '../../library/projection/match-event.ts';
import { rowOf } from '../../library/projection/row.ts';
import type { RemoteNote } from '../../http/api/client.ts';
import type { Client, WatchFrame } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { describeEvent } from '../render/reply-printer.ts';
import { onInterrupt } from '../process/terminal.ts';
import { clip, paint, print, printable, printJson, screenWidth } from '../render/output.ts';
import { progressInWords } from '../../library/projection/words.ts';

interface WatchOptions extends ClientOptions {
  agent?: string[];
  kind?: string[];
  problems?: boolean;
  after?: number;
}

/** Stored events shown without `--after`. */
const TAIL = 20;
const RETRY_MS = 500;
const MAX_RETRY_MS = 5_000;

/** Shows events until interrupted. Reconnects after a failure. When one conversation is watched, no event is lost or repeated. */
export async function watch(conversation: string | undefined, options: WatchOptions): Promise<void> {
  const shown = filterOf(options);
  const client = await connect(options, { needs: 'data' });
  const stop = new AbortController();
  const dispose = onInterrupt(() => stop.abort());
  try {
    const where = conversation ?? null;
    // This request reports a missing server at once, even when all conversations are watched.
    const head = where === null ? (await client.conversations()).length : await client.head(where);
    const after = options.after ?? Math.max(0, head - TAIL);
    const inWords = createActivityWords();
    const show = (frame: WatchFrame) =>
      showFrame(frame, { shown, inWords, isOne: where !== null, ...options });
    if (client.isDirect) await showStored(client, where, { after, head, show });
    else await follow(client, where, { after, show, signal: stop.signal });
  } finally {
    dispose();
    await client.close();
  }
}

function filterOf({ agent, kind, problems }: WatchOptions): RowFilter {
  for (const name of kind ?? []) {
    if (EVENT_KINDS.some((known) => known === name)) continue;
    const nearest = nearestName(name, EVENT_KINDS);
    const message = `there is no event kind "${name}"${nearest ? `; did you mean "${nearest}"?` : ''}`;
    throw new TroupeError('event_invalid', message, { kind: name, nearest });
  }
  const agents = agent?.map((name) => name.replace(/^@/, ''));
  return { agents, kinds: kind, level: problems ? 'problem' : undefined };
}

type Show = (frame: WatchFrame) => void;

/** Shows stored events only, because no other process has the data open, and this one takes no turns. */
async function showStored(
  client: Client,
  conversation: string | null,
  { after, head, show }: { after: number; head: number; show: Show },
): Promise<void> {
  if (conversation !== null && after < head) {
    const enough = new AbortController();
    for await (const frame of client.watch(conversation, after, enough.signal)) {
      show(frame);
      if (frame.type === 'event' && frame.event.seq >= head) enough.abort();
    }
  }
  printNotice('nothing is running here to watch: start "troupe dev", or name a server with --url');
}

async function follow(
  client: Client,
  conversation: string | null,
  { after, show, signal }: { after: number; show: Show; signal: AbortSignal },
): Promise<void> {
  let seen = after;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const frame of client.watch(conversation, seen, signal)) {
        if (frame.type === 'open' && failures > 0) printNotice('connected again');
        failures = 0;
        show(frame);
        if (frame.type === 'event') seen = frame.event.seq;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof TroupeError) || error.policy !== 'retry') throw error;
      if (failures === 0) printNotice(`${error.message} Trying again${lossOf(conversation)}.`);
      failures += 1;
      await systemClock.sleep(Math.min(RETRY_MS * failures, MAX_RETRY_MS), signal);
    }
  }
}

function lossOf(conversation: string | null): string {
  return conversation === null ? '; events in the meantime are not shown' : '';
}

function printNotice(text: string): void {
  process.stderr.write(`${text}\n`);
}

interface Shown {
  shown: RowFilter;
  inWords: ReturnType<typeof createActivityWords>;
  /** True if one conversation is watched, so that lines omit its name. */
  isOne: boolean;
  json?: boolean;
}

function showFrame(frame: WatchFrame, options: Shown): void {
  const { shown, json } = options;
  if ('agent' in frame) return showLive(frame, options);
  switch (frame.type) {
    case 'event': {
      const { event } = frame;
      if (!matchesRow(rowOf(event), event, shown)) return;
      const summary = describeEvent(event);
      if (json) printJson({ type: 'event', summary, event });
      else print(eventLine(event, summary, options));
      return;
    }
    case 'open':
      return;
    case 'gap':
      printNotice('some events were dropped: they came faster than they could be read');
      return;
    case 'reset':
      printNotice(
        `${frame.conversation} was deleted and begun anew, or restored: its events come from the first on`,
      );
      return;
  }
}

/** Live notes are no events, so `--kinds` and `--level` hide them. Pieces of texts are not shown, because their event follows. */
function showLive(note: RemoteNote, options: Shown): void {
  const { shown, json } = options;
  if (shown.kinds || shown.level || note.type === 'text') return;
  if (shown.agents && !shown.agents.includes(note.agent)) return;
  if (json) return printJson(note.type === 'state' ? note : { ...note, type: 'activity', kind: note.type });
  const line = note.type === 'state' ? stateLine(note, options) : activityLine(note, options);
  if (line !== null) print(line);
}

function eventLine(event: Event, summary: string, { isOne }: Shown): string {
  const { level } = rowOf(event);
  const kind = event.kind.padEnd(KIND_WIDTH);
  const words = clip(summary, Math.max(30, screenWidth() - KIND_WIDTH - 20));
  const style = level === 'problem' ? 'red' : level === 'noise' ? 'dim' : 'reset';
  return `${placeOf(event.conversation, isOne)}${headOf(event.seq, event.at)}  ${kind}  ${paint(style, words)}`;
}

const KIND_WIDTH = 18;

function stateLine(told: RemoteNote & { type: 'state' }, { isOne }: Shown): string {
  const { conversation, agent, state, event, doing, waits, at } = told;
  const wait = waits ? `: ${waits.code} since ${timeOf(waits.since)}, next try at ${timeOf(waits.next)}` : '';
  const tools = doing.length > 0 ? `: ${doing.join(', ')}` : wait;
  const text = `${headOf(null, at)}  @${agent} is ${state} after ${event}${tools}`;
  return placeOf(conversation, isOne) + paint('dim', printable(text));
}

/** What happens to a call, live. Null for pieces of texts, because their event follows. */
function activityLine(told: TurnFrame, { isOne, inWords }: Shown): string | null {
  const words = inWords(told);
  if (words === null) return null;
  const text = clip(`@${told.agent} ${words}`, Math.max(30, screenWidth() - 20));
  return `${placeOf(told.conversation, isOne)}${headOf(null, Date.now())}  ${paint('dim', printable(text))}`;
}

function placeOf(conversation: ConversationId, isOne: boolean): string {
  return isOne ? '' : `${conversation}  `;
}

function headOf(seq: number | null, at: number): string {
  return `${`${seq ?? '·'}`.padStart(5)}  ${timeOf(at)}`;
}

function timeOf(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

export type TurnFrame = Exclude<RemoteNote, { type: 'state' }>;

/** Words for what happens in turns. Of a call's pieces only the first is shown. */
export function createActivityWords(): (note: TurnFrame) => string | null {
  /** The call that each agent began last. An agent writes one call after another. */
  const begun = new Map<string, string>();
  return (note) => {
    if (note.type !== 'arguments') return activityInWords(note);
    const { conversation, agent, turn, attempt, step, round, call } = note;
    const [key, place] = [`${conversation} ${agent}`, `${turn} ${attempt} ${step} ${round} ${call}`];
    if (begun.get(key) === place) return null;
    if (begun.size >= MAX_AGENTS) begun.clear();
    begun.set(key, place);
    return `begins to call ${note.name}`;
  };
}

/** Most agents whose last call is remembered: a stream over all conversations may have any number. */
const MAX_AGENTS = 10_000;

/** A few words for the note, without its agent; null for pieces of longer texts. */
function activityInWords(note: TurnFrame): string | null {
  switch (note.type) {
    case 'dropped':
      return `${note.name} does not run: the call is not finished`;
    case 'called':
      return `runs ${note.name} ${note.args}`;
    case 'progress':
      return `${note.name}: ${progressInWords(note)}`;
    case 'result':
      return `${note.name} ${note.outcome}: ${note.text}`;
    case 'void':
      return `what was said so far does not count: ${note.reason}`;
    case 'text':
    case 'reasoning':
    case 'arguments':
      return null;
  }
}
