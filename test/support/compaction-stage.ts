import type { CompactionProgressBody, Event } from '../../src/events/index.ts';
import type { ModelEvent, ModelRequest } from '../../src/providers/provider.ts';
import { modelOf, says, type TestModel } from './engine-models.ts';
import { type Stage, type StageAgent, turns } from './engine-stage.ts';

/** A window that a dozen of `prose(n)` overflow. */
export const SMALL = { contextWindow: 8_000, maxOutputTokens: 1_000 };

const FILLER = 'as was agreed before, the harbour office keeps its books in the second drawer; ';

/** About 150 tokens. */
const INSTRUCTIONS = () => 'You keep the books. '.repeat(29);

/** About 400 tokens by the stage's count, with a unique word: `w<n>z`. */
export function prose(n: number, characters = 1_600): string {
  return `w${n}z ${FILLER.repeat(Math.ceil(characters / FILLER.length))}`.slice(0, characters);
}

export const SUMMARY = `## Goal
Ana wants the books of the harbour office to be kept in order, and @bo keeps them.
## Decisions
The books stay in the second drawer, as Ana said.
## Next steps
@bo answers what is asked next.`;

export interface Mind extends TestModel {
  /** The requests for turns, and those for summaries. */
  asked(): ModelRequest[];
  summaries(): ModelRequest[];
}

type Hears = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent> | Iterable<ModelEvent>;

/** A model that by default answers `ok` and writes a good summary. */
export function mind({ turn, summary }: { turn?: Hears; summary?: Hears } = {}): Mind {
  const model = modelOf(async function* (request, signal) {
    if (isForSummary(request)) yield* summary?.(request, signal) ?? says(SUMMARY);
    else yield* turn?.(request, signal) ?? says('ok');
  });
  return Object.assign(model, {
    asked: () => model.requests.filter((request) => !isForSummary(request)),
    summaries: () => model.requests.filter(isForSummary),
  });
}

function isForSummary({ trace }: ModelRequest): boolean {
  return trace.purpose === 'compaction';
}

export function small(id: string, model: TestModel, more: Partial<StageAgent> = {}): StageAgent {
  return { id, model, instructions: INSTRUCTIONS, ...SMALL, ...more };
}

/** Ana posts this much prose without an addressee; the next addressed agent gets it. */
export async function fill(stage: Stage, messages: number, from = 1): Promise<void> {
  for (let n = from; n < from + messages; n++) await stage.say('c', prose(n), []);
}

export async function ask(stage: Stage, content: string, to = ['bo']): Promise<void> {
  await stage.say('c', content, to);
  await stage.quiet();
}

/** Advances the clock in steps, so that leases are renewed on the way. */
export async function pass(stage: Stage, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    await stage.clock.advance(1_000);
    await turns(2);
  }
}

export async function of<K extends Event['kind']>(stage: Stage, kind: K): Promise<EventsOf<K>> {
  return only(await stage.events('c'), kind);
}

type EventsOf<K extends Event['kind']> = Extract<Event, { kind: K }>[];

export function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventsOf<K> {
  return events.filter((event): event is EventsOf<K>[number] => event.kind === kind);
}

type Phase = CompactionProgressBody['phase'];

/** The progress of compactions in one phase. */
export function inPhase(events: readonly Event[], phase: Phase): EventsOf<'compaction.progress'> {
  return only(events, 'compaction.progress').filter(({ body }) => body.phase === phase);
}

export async function progress(stage: Stage, phase: Phase): Promise<EventsOf<'compaction.progress'>> {
  return inPhase(await stage.events('c'), phase);
}

/** The kinds of events, with the phase of a compaction's progress. */
export function labels(events: readonly Event[]): string[] {
  return events.map((event) =>
    event.kind === 'compaction.progress' ? `${event.kind} ${event.body.phase}` : event.kind,
  );
}

export async function kinds(stage: Stage, ...wanted: string[]): Promise<string[]> {
  const told = labels(await stage.events('c'));
  return told.filter((label) => wanted.length === 0 || wanted.includes(label));
}

/** The first message after the system message. */
export function opening(request: ModelRequest | undefined): string {
  return request?.messages[1]?.content ?? '';
}
