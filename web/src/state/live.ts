import { batch, computed, signal } from '@preact/signals';
import type { AgentId, Event, TurnId } from '../../../src/events/index.ts';
import type { Projection } from '../../../src/library/projection/model.ts';
import type { foldEvents } from '../../../src/library/projection/projection.ts';
import type { ActorStatus } from '../../../src/library/troupe.ts';
import { api, streamOf } from './api.ts';
import { failed, opening, reached } from './connection.ts';
import { type RunningCall, type LiveTold, withNote } from './running-calls.ts';
import { readFrames, type ServerFrame } from './read-frames.ts';
import { conversation, route } from './route.ts';
import { nextWrite, pause, untilSeen, whileSeen, withPlace } from './stream-place.ts';

/**
 * The conversation on the screen, live: a snapshot, and every later event folded as the server folds it.
 *
 * Owns the stream of one conversation at a time. Shows no effect of a button before its event has arrived.
 * V1  `seq` of the projection rises by one with each event; after a lost connection the stream resumes after it.
 * V2  Everything that arrives within one frame of the screen is shown together; a background page draws nothing.
 * V3  Memory does not grow with the log: the projection is bounded, and texts of running turns end with them.
 */
/** The last transition of a machine, received live. */
export interface LiveState {
  turn: TurnId | null;
  state: string;
  event: string;
  at: number;
  doing: string[];
  waits?: { code: string; since: number; next: number } | undefined;
}

const RECONNECT_MS = 1_000;
/** Most characters kept of a running turn's text, from its end. */
const MAX_STREAM_CHARS = 60_000;

export const live = signal<Projection | null>(null);
/** Set with the first live event: the server has folded the events before it. */
let fold: typeof foldEvents | null = null;

async function loadFold(): Promise<void> {
  try {
    fold ??= (await import('../../../src/library/projection/projection.ts')).foldEvents;
  } catch (cause) {
    throw new TypeError('a part of the page did not load: load the page again', { cause });
  }
}

/** The projection at `route.at`; null while live. */
export const past = signal<Projection | null>(null);
/** The projection shown: the past if a moment is selected, else the present. */
export const shown = computed(() => (route.value.at === null ? live.value : past.value));
/** Current status from the server; empty for the past. */
export const actors = signal<ActorStatus[]>([]);
/** The agent that a message to nobody goes to, as the server says. Null: none. */
export const unaddressed = signal<AgentId | null>(null);
export const states = signal<ReadonlyMap<string, LiveState>>(new Map());
export const streams = signal<ReadonlyMap<string, string>>(new Map());
/** The tool calls of running turns, by turn. */
export const calls = signal<ReadonlyMap<string, readonly RunningCall[]>>(new Map());

type EventListener = (events: readonly Event[]) => void;
const listeners = new Set<EventListener>();

/** Notifies the listener of new events once they are folded. Returns a function that unsubscribes. */
export function onEvents(listener: EventListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let newest: readonly Event[] = [];
/** The newest events of the conversation when it was opened. */
export const newestEvents = (): readonly Event[] => newest;

/** Increases when content that was read before may no longer be shown, because text of it was erased. */
export const readings = signal(0);

let current: AbortController | null = null;

export function openConversation(id: string | null): void {
  current?.abort();
  current = null;
  batch(() => {
    opening();
    live.value = null;
    past.value = null;
    actors.value = [];
    states.value = new Map();
    streams.value = new Map();
    calls.value = new Map();
    newest = [];
  });
  if (id === null) return;
  current = new AbortController();
  void follow(id, current.signal);
}

async function follow(id: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const written = nextWrite();
    try {
      await untilSeen(signal);
      if (signal.aborted) return;
      if (live.value === null) await load(id, signal);
      const isStreamed = await withPlace(() => stream(id, signal));
      if (!isStreamed) await poll(id, signal);
    } catch (error) {
      if (signal.aborted || !failed(error)) return;
    }
    await pause(RECONNECT_MS, AbortSignal.any([signal, written]));
  }
}

async function load(id: string, signal: AbortSignal): Promise<void> {
  const snapshot = await api.snapshot(id, null);
  if (signal.aborted) return;
  batch(() => {
    live.value = snapshot.projection;
    actors.value = snapshot.actors;
    unaddressed.value = snapshot.unaddressed ?? null;
    newest = snapshot.events ?? [];
  });
}

/** Resolves when the tab sleeps, or when the log was replaced. Throws if the stream ends otherwise. */
async function stream(id: string, signal: AbortSignal): Promise<void> {
  const seen = whileSeen(signal);
  try {
    const response = await streamOf(id, { after: live.value?.seq ?? 0, signal: seen.signal });
    batch(() => {
      reached();
      forgetNotes();
    });
    const due = frameBuffer((frames) => batch(() => take(frames)));
    for await (const frame of readFrames(response, reached)) {
      if (frame.event !== 'reset') {
        if (frame.event === 'event') await loadFold();
        due(frame);
        continue;
      }
      // The log was replaced by another one, so it is loaded again.
      live.value = null;
      return;
    }
    throw new TypeError('the server has ended the stream');
  } catch (error) {
    if (signal.aborted || !seen.signal.aborted) throw error;
  } finally {
    seen.end();
  }
}

/** Forgets running turns. A stream reports them again from their beginning; without a stream nothing reports them. */
function forgetNotes(): void {
  states.value = new Map();
  streams.value = new Map();
  calls.value = new Map();
}

/** Reads the log once, for a tab without a place for a stream. */
async function poll(id: string, signal: AbortSignal): Promise<void> {
  const seq = live.value?.seq ?? 0;
  const { events, head } = await api.events(id, { after: seq });
  if (events.length > 0) await loadFold();
  if (signal.aborted) return;
  // The log was replaced by another one.
  if (head < seq) live.value = null;
  batch(() => {
    reached();
    forgetNotes();
    take(events.map((event) => ({ event: 'event', data: JSON.stringify(event) })));
  });
}

/** Collects frames until the next screen refresh, or for a short time if nothing is drawn. */
function frameBuffer(flush: (frames: ServerFrame[]) => void): (frame: ServerFrame) => void {
  let waiting: ServerFrame[] = [];
  return (frame) => {
    waiting.push(frame);
    if (waiting.length > 1) return;
    const done = () => {
      const frames = waiting;
      waiting = [];
      if (frames.length > 0) flush(frames);
    };
    if (document.visibilityState === 'visible') requestAnimationFrame(done);
    else setTimeout(done, 250);
  };
}

/** The changes of several frames, which are applied together. */
class Incoming {
  readonly events: Event[] = [];
  readonly texts = new Map(streams.value);
  readonly states = new Map(states.value);
  readonly calls = new Map(calls.value);
  areTextsNew = false;
  areStatesNew = false;
  areCallsNew = false;
  isActorChanged = false;
  #seq = live.value?.seq ?? Number.POSITIVE_INFINITY;

  event(event: Event): void {
    if (event.seq <= this.#seq) return;
    this.#seq = event.seq;
    this.events.push(event);
    this.isActorChanged ||= CHANGES_ACTORS.test(event.kind);
    if (!event.turn || !ENDS_TURN.test(event.kind)) return;
    this.areTextsNew = this.texts.delete(event.turn) || this.areTextsNew;
    this.areCallsNew = this.calls.delete(event.turn) || this.areCallsNew;
  }

  stream({ turn, index, text }: { turn: string; index: number; text: string }): void {
    const before = index === 0 ? '' : (this.texts.get(turn) ?? '');
    this.texts.set(turn, `${before}${text}`.slice(-MAX_STREAM_CHARS));
    this.areTextsNew = true;
  }

  activity({ turn, kind: type, ...rest }: { turn: string; kind: LiveTold['type'] }): void {
    this.calls.set(turn, withNote(this.calls.get(turn) ?? [], { type, ...rest } as LiveTold));
    this.areCallsNew = true;
    if (type === 'void') this.areTextsNew = this.texts.delete(turn) || this.areTextsNew;
  }

  state({ agent, ...state }: { agent: AgentId } & LiveState): void {
    this.states.set(agent, state);
    this.areStatesNew = true;
    this.isActorChanged ||= !state.state.startsWith('working');
  }
}

function take(frames: readonly ServerFrame[]): void {
  const incoming = new Incoming();
  for (const { event: type, data } of frames) {
    if (type === 'event') incoming.event(JSON.parse(data) as Event);
    else if (type === 'stream') incoming.stream(JSON.parse(data) as Parameters<Incoming['stream']>[0]);
    else if (type === 'activity') incoming.activity(JSON.parse(data) as Parameters<Incoming['activity']>[0]);
    else if (type === 'state') incoming.state(JSON.parse(data) as Parameters<Incoming['state']>[0]);
  }
  if (incoming.events.some(isErasure)) readAgain();
  else show(incoming);
}

/** The content of the page was folded from text that is now erased. */
function readAgain(): void {
  readings.value += 1;
  openConversation(conversation.peek());
}

function show(incoming: Incoming): void {
  const { events } = incoming;
  if (live.value && fold && events.length > 0) live.value = fold(live.value, events);
  if (incoming.areTextsNew) streams.value = incoming.texts;
  if (incoming.areStatesNew) states.value = incoming.states;
  if (incoming.areCallsNew) calls.value = incoming.calls;
  if (events.length > 0) for (const listener of listeners) listener(events);
  if (incoming.isActorChanged) refreshActors();
}

/** Like `isErasure` of the events, whose module would bring its schemas along. */
export function isErasure(event: Event): boolean {
  return event.kind === 'command' && event.body.erasure !== undefined;
}

const ENDS_TURN = /^turn\.(done|failed|aborted)$/;
const CHANGES_ACTORS = /^(turn\.|command|error|membership)/;
const REFRESH_MS = 150;
let refreshing = false;

/** Only the server knows which commands an actor accepts. Changes that come together cause one request. */
function refreshActors(): void {
  if (refreshing) return;
  refreshing = true;
  setTimeout(() => {
    refreshing = false;
    void askActors();
  }, REFRESH_MS);
}

async function askActors(): Promise<void> {
  const id = live.value?.conversation;
  if (id === undefined) return;
  const answer = await api.actors(id).catch(() => null);
  if (!answer || live.value?.conversation !== id) return;
  actors.value = answer.actors;
  unaddressed.value = answer.unaddressed;
}

/** Shows the conversation as it was after the event with this seq. */
export async function showPast(id: string, at: number): Promise<void> {
  const snapshot = await api.snapshot(id, at);
  if (route.value.at === at) past.value = snapshot.projection;
}
