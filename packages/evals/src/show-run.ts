import { type Event, summariseEvent } from './troupe.ts';
import type { ConversationRun, RunPlace } from './conversation-run.ts';

/** Lines around what matters, and most lines of a report. */
const AROUND = 2;
const MOST_LINES = 24;
const MOST_TEXT = 110;

/** Kinds that say nothing to a reader unless they are the matter. */
const BOOKKEEPING =
  /^(?:baseline|turn\.started|turn\.done|joined|compaction\.\w+|session\.\w+|prune|todos|tool\.result)$/;

/** The part of a log around some events, which are marked. Without any: the end of the log. */
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

/** How a developer looks at a run on the page. `event`: what is selected there. */
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
