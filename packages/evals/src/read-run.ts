import {
  type Author,
  type ByKind,
  type ConversationId,
  type Event,
  forKind,
  type KindAbout,
  parseTurnId,
  type Troupe,
  TroupeError,
} from './troupe.ts';
import {
  type ConversationRun,
  NO_USAGE,
  type RunEnd,
  type RunPlace,
  type RunPrompt,
  type RunTurn,
  type RunUser,
} from './conversation-run.ts';

/** Options of `readRun`. */
export interface ReadRunOptions {
  /**
   * Renders the prompts of all turns, which is slow for long logs. With `tools`, renders only the first prompt of each turn
   * whose agent is offered other tools than before. Default true.
   */
  prompts?: boolean | 'tools' | undefined;
  /** How the run ended. Default: done. */
  ended?: RunEnd | undefined;
  /** Time of its end, ms since the epoch. Default: the time of the last event. */
  endedAt?: number | undefined;
  /** Where people can view it. Default: nowhere. */
  place?: RunPlace | null | undefined;
  /** The outcomes of the simulated users of a run just played, whose log may be empty. Default: there were none. */
  users?: readonly RunUser[] | undefined;
}

type Source = Pick<Troupe, 'events' | 'promptOf' | 'trace'>;

/**
 * Reads a conversation with its threads in the form for matchers, whether it was just played or is from a real log. Throws
 * `conversation_unknown`.
 */
export async function readRun(
  troupe: Source,
  conversation: string,
  { prompts = true, ended = { kind: 'done' }, endedAt, place = null, users }: ReadRunOptions = {},
): Promise<ConversationRun> {
  const events = await readOrdered(troupe, conversation, users !== undefined);
  const turns = turnsOf(events);
  if (prompts === 'tools') await addPromptsOfNewTools(troupe, turns);
  else if (prompts) for (const turn of turns) await addPrompts(troupe, turn);
  const first = events[0]?.at ?? endedAt ?? 0;
  const last = events.reduce((latest, { at }) => Math.max(latest, at), endedAt ?? first);
  return {
    conversation: conversation as ConversationId,
    events,
    turns,
    durationMs: last - first,
    ended,
    place,
    users: users ?? [],
  };
}

/** All events of a conversation, page by page. */
async function readLog(troupe: Source, conversation: string): Promise<Event[]> {
  const all: Event[] = [];
  for (;;) {
    const page = await troupe.events(conversation, { after: all.at(-1)?.seq ?? 0 });
    all.push(...page.events);
    if (page.events.length === 0 || (all.at(-1)?.seq ?? 0) >= page.head) return all;
  }
}

/**
 * Puts the events of threads in their place by causes alone: times are too coarse to compare across threads, and no log has
 * the order of arrival. A thread's events up to the end of its task come before that end in its owner's log.
 */
async function readOrdered(troupe: Source, root: string, mayBeEmpty: boolean): Promise<Event[]> {
  const logs = new Map<string, { events: Event[]; next: number }>();
  const ordered: Event[] = [];

  async function open(conversation: string): Promise<{ events: Event[]; next: number }> {
    const known = logs.get(conversation);
    if (known) return known;
    const log = {
      events: await readThread(troupe, conversation, mayBeEmpty || conversation !== root),
      next: 0,
    };
    logs.set(conversation, log);
    return log;
  }

  /** Takes events up to and including the one for which `isLast` is true; otherwise all that are left. */
  async function take(conversation: string, isLast: (event: Event) => boolean): Promise<void> {
    const log = await open(conversation);
    while (log.next < log.events.length) {
      const event = log.events[log.next++]!;
      await takeThreadOf(event);
      ordered.push(event);
      if (isLast(event)) return;
    }
  }

  const threads = new Map<string, string>();
  async function takeThreadOf(event: Event): Promise<void> {
    const { kind, body, conversation } = event;
    if (kind === 'delegation.opened' && body.thread !== conversation)
      threads.set(body.delegation, body.thread);
    if (kind !== 'delegation.ended') return;
    const thread = threads.get(body.delegation);
    if (thread === undefined || thread === conversation) return;
    const isEnd = (each: Event) =>
      each.kind === 'delegation.ended' && each.body.delegation === body.delegation;
    await take(thread, isEnd);
  }

  await take(root, () => false);
  // Taking the rest of one thread may find further threads.
  for (const [, thread] of threads) await take(thread, () => false);
  return ordered;
}

/** A thread begins a moment after its task, and not at all if the process ended in between. */
async function readThread(troupe: Source, conversation: string, mayBeEmpty: boolean): Promise<Event[]> {
  try {
    return await readLog(troupe, conversation);
  } catch (error) {
    if (mayBeEmpty && error instanceof TroupeError && error.code === 'conversation_unknown') return [];
    throw error;
  }
}

type OpenTurn = RunTurn & {
  events: Event[];
  inputs: Event[];
  askedBy: Author[];
  prompts: RunPrompt[];
};

function turnsOf(events: readonly Event[]): OpenTurn[] {
  const bySeq = new Map(events.map((event) => [placeOf(event.conversation, event.seq), event]));
  const turns = new Map<string, OpenTurn>();
  /** The turn that opened a task. */
  const openedBy = new Map<string, string>();
  const causesOf = (event: Event) => [event.turn ?? '', openedBy.get(forKind(TASK_OF, event) ?? '') ?? ''];
  for (const event of events) {
    const parts = event.turn === undefined ? null : parseTurnId(event.turn);
    if (!parts || event.turn === undefined) continue;
    const turn = turns.get(event.turn) ?? newTurn(event.turn, parts);
    turns.set(event.turn, turn);
    turn.events.push(event);
    if (event.kind === 'turn.started' || event.kind === 'turn.steered') {
      for (const seq of event.body.inputs) {
        const input = bySeq.get(placeOf(event.conversation, seq));
        if (input)
          addInput(
            turn,
            input,
            causesOf(input).flatMap((id) => turns.get(id) ?? []),
          );
      }
    }
    const task = forKind(TASK_OF, event);
    if (task !== undefined && !openedBy.has(task)) openedBy.set(task, event.turn);
    endTurn(turn, event);
  }
  return [...turns.values()];
}

function newTurn(id: string, parts: NonNullable<ReturnType<typeof parseTurnId>>): OpenTurn {
  return {
    id,
    ...parts,
    status: 'open',
    inputs: [],
    askedBy: [],
    events: [],
    prompts: [],
    usage: NO_USAGE,
    cost: null,
  };
}

/** A handoff, a task and its end lead back to those who are answered by the turns that wrote or opened them. */
function addInput(turn: OpenTurn, input: Event, causes: readonly OpenTurn[]): void {
  turn.inputs.push(input);
  for (const author of [input.author, ...causes.flatMap(({ askedBy }) => askedBy)]) {
    const isNew = !turn.askedBy.some(({ kind, id }) => kind === author.kind && id === author.id);
    if (isNew) turn.askedBy.push(author);
  }
}

/** The task that an event opens or ends. */
const TASK_OF: ByKind<KindAbout<'taskOpening' | 'taskEnd'>, string> = {
  'delegation.opened': ({ body }) => body.delegation,
  'delegation.ended': ({ body }) => body.delegation,
  question: ({ body }) => body.question,
  'question.answered': ({ body }) => body.question,
  'approval.requested': ({ body }) => body.request,
  'approval.decided': ({ body }) => body.request,
};

function endTurn(turn: OpenTurn, event: Event): void {
  if (event.kind === 'turn.done') {
    turn.status = 'done';
    turn.usage = event.body.usage;
  }
  if (event.kind === 'turn.failed') turn.status = 'failed';
  if (event.kind === 'turn.aborted') turn.status = 'aborted';
}

async function addPrompts(troupe: Source, turn: OpenTurn, most = Infinity): Promise<void> {
  const trace = await troupe.trace(turn.id);
  turn.cost = trace.cost;
  for (const { step } of trace.prompts.slice(0, most)) {
    const { model, messages, tools, verified } = await troupe.promptOf(turn.id, step);
    turn.prompts.push({ step, model, messages, tools, verified });
  }
}

/** The first prompt of each turn whose agent is offered other tools than before. */
async function addPromptsOfNewTools(troupe: Source, turns: readonly OpenTurn[]): Promise<void> {
  const known = new Set<string>();
  for (const turn of turns) {
    const tools = turn.events.find(({ kind }) => kind === 'turn.started')?.context?.tools ?? '';
    const key = `${turn.agent} ${tools}`;
    if (known.has(key)) continue;
    await addPrompts(troupe, turn, 1);
    // A turn may end before its model is asked.
    if (turn.prompts.length > 0) known.add(key);
  }
}

function placeOf(conversation: string, seq: number): string {
  return `${seq} ${conversation}`;
}
