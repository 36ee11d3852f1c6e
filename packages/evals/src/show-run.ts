import { type Event, summariseEvent, type ByKind, type EventOf, forKind } from './troupe.ts';
import { type ConversationRun, type RunPlace, callsOf, eventWords, isSpoken } from './conversation-run.ts';

/** Lines shown around the relevant events, and most lines of a report. */
const AROUND = 2;
const MOST_LINES = 24;
const MOST_TEXT = 110;

/** Kinds of events that are shown only if they are relevant themselves. */
const BOOKKEEPING =
  /^(?:baseline|turn\.started|turn\.done|joined|compaction\.\w+|session\.\w+|prune|todos|tool\.result)$/;

/** The part of a log around some events, which are marked. Without events: the end of the log. */
export function excerpt(run: ConversationRun, matter: readonly Event[]): string {
  const marked = new Set(matter);
  const shown = run.events.filter((event) => marked.has(event) || !BOOKKEEPING.test(event.kind));
  const kept = new Set<Event>();
  const places = shown.flatMap((event, at) => (marked.has(event) ? [at] : []));
  for (const place of places.length > 0 ? places : [shown.length - 1])
    for (const event of shown.slice(Math.max(0, place - AROUND), place + AROUND + 1)) kept.add(event);
  if (places.length === 0) for (const event of shown.slice(-MOST_LINES / 2)) kept.add(event);
  const lines: string[] = [];
  let skipped = 0;
  for (const event of shown) {
    if (!kept.has(event) || lines.length >= MOST_LINES) {
      skipped += 1;
      continue;
    }
    if (skipped > 0) lines.push(`      … ${skipped} more`);
    skipped = 0;
    lines.push(line(event, run, marked.has(event)));
  }
  if (skipped > 0) lines.push(`      … ${skipped} more`);
  return lines.length > 0 ? lines.join('\n') : '      (the log is empty)';
}

function line(event: Event, run: ConversationRun, isMarked: boolean): string {
  const { seq, conversation, author, to, kind } = event;
  const where = conversation === run.conversation ? '' : ` in ${conversation}`;
  const who = author.kind === 'agent' ? `@${author.id}` : author.name;
  const whom = to.length > 0 ? ` -> ${to.map((id) => `@${id}`).join(' ')}` : '';
  const text = clip(summariseEvent(event));
  return `  ${isMarked ? '>' : ' '} #${seq}${where} ${who}${whom} [${kind}] ${text}`;
}

export function clip(text: string, most: number = MOST_TEXT): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  return flat.length > most ? `${flat.slice(0, most).toWellFormed()}…` : flat;
}

/** How a developer can view a run on the page. `event`: the event to select there. */
export function howToOpen(
  { conversation }: Pick<ConversationRun, 'conversation'>,
  place: RunPlace,
  event?: Event,
): string {
  const file = place.agentsFile === null ? '--no-demo' : quoted(place.agentsFile);
  const at = event ? `?list=events&event=${event.seq}` : '';
  const where = encodeURIComponent(event?.conversation ?? conversation);
  return `look at it: npx troupe dev ${file} --read-only --data ${quoted(place.data)}\n            http://127.0.0.1:4600/c/${where}${at}`;
}

/** A path as an argument of a command line. */
export function quoted(path: string): string {
  return /^[\w./:@+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

/** A line of a conversation in readable form. */
export type RunLine =
  | {
      /** A text of a person or an agent. */
      readonly kind: 'said';
      readonly event: Event;
      readonly who: string;
      readonly text: string;
    }
  | {
      /** A tool call with its result. */
      readonly kind: 'called';
      readonly event: Event;
      readonly who: string;
      readonly tool: string;
      readonly args: string;
      /** Null: it has none yet. */
      readonly result: EventOf<'tool.result'> | null;
    }
  | {
      /** A turn ended without an answer. */
      readonly kind: 'ended';
      readonly event: Event;
      readonly who: string;
      readonly text: string;
    };

/** What was said and called, in causal order, and which turns failed. */
export function linesOf(run: ConversationRun): RunLine[] {
  const calls = Map.groupBy(callsOf(run), ({ step }) => step);
  return run.events.flatMap((event): RunLine[] => {
    const who = event.author.id;
    const end = forKind(ENDS, event);
    if (end !== undefined) return [{ kind: 'ended', event, who, text: end }];
    const own = event.kind === 'step' ? (calls.get(event) ?? []) : [];
    const text = isSpoken(event) ? eventWords(event) : '';
    const said: RunLine[] = text === '' ? [] : [{ kind: 'said', event, who, text }];
    const made = own.map(({ turn, tool, args, result, step }): RunLine => {
      return { kind: 'called', event: step, who: turn.agent, tool, args, result };
    });
    return [...said, ...made];
  });
}

const ENDS: ByKind<'turn.failed' | 'turn.aborted' | 'guard.stopped', string> = {
  'turn.failed': (event) => `The turn failed: ${eventWords(event)}`,
  'turn.aborted': (event) => `The turn was stopped: ${eventWords(event)}`,
  'guard.stopped': (event) => eventWords(event),
};

const MOST_TOLD = 8_000;
const MOST_ALL = 200_000;

/**
 * What was said and called, for a judge: one JSON object per line, so that no text in it can imitate another line. Without
 * times and ids of calls. Long texts are cut, and a long conversation is cut in its middle.
 */
export function transcriptOf(run: ConversationRun): string {
  const lines = linesOf(run).flatMap((line) => {
    if (line.kind === 'ended') return [];
    return JSON.stringify(line.kind === 'said' ? spoken(line.event, line.text) : called(line));
  });
  return cutMiddle(lines).join('\n');
}

function called({ who, tool, args, result }: Extract<RunLine, { kind: 'called' }>): object {
  return { who, kind: 'call', tool, arguments: cut(args), result: result && cut(result.body.content) };
}

function spoken({ author, to, kind }: Event, text: string): object {
  return { who: author.id, is: author.kind, ...(to.length > 0 && { to }), kind, text: cut(text) };
}

function cut(text: string): string {
  if (text.length <= MOST_TOLD) return text;
  return `${text.slice(0, MOST_TOLD).toWellFormed()}… (${text.length - MOST_TOLD} more characters)`;
}

function cutMiddle(lines: readonly string[]): readonly string[] {
  const fits = (some: readonly string[]) => {
    let left = MOST_ALL / 2;
    const end = some.findIndex((line) => (left -= line.length) < 0);
    return end < 0 ? some.length : end;
  };
  const first = fits(lines);
  const last = Math.min(fits(lines.toReversed()), lines.length - first);
  const skipped = lines.length - first - last;
  if (skipped === 0) return lines;
  const tail = last === 0 ? [] : lines.slice(-last);
  return [...lines.slice(0, first), JSON.stringify({ kind: 'cut', lines: skipped }), ...tail];
}
