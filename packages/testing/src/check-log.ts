import {
  createLogTasks,
  type LogTasks,
  visibleText,
  type ActorRecord,
  addressKey,
  type AgentId,
  type Event,
  type EventOf,
  eventOf,
  isRuntimeId,
  isTaskEnd,
  parseTurnId,
  type TurnId,
} from './troupe.ts';
import type { SeenCall } from './fake-sessions.ts';

/**
 * Checks a history against the invariants of the turn engine in one scan: ids are unique, so no solver is needed.
 *  I1  One event per id; seq 1..n, dense. Events of the runtime have ids no client can take.
 *  I2  Each pair of an event and an addressee is in `covers` of exactly one ending of the addressee. A turn has exactly
 *      one ending, at most one reply, and one `tool.result` per call.
 *  I3  An agent's covers rise in seq, its turns are numbered 1..n in order, and a reply comes after its inputs.
 *  I4  Covers are events of this conversation that address the agent.
 *  I6  The snapshot equals the fold of the log: as many finished turns as endings.
 *  I7  When all is quiet, all addressed events are processed, no turn is pinned, and every event of a turn is in the log.
 *  I8  A turn whose abort was acknowledged writes nothing more: no reply, no handoff, and it ends as aborted.
 *  R1  A retry follows the end of a failed or aborted turn, and addresses only its agent.
 *  D1  The end of a task reaches its owner at most once, and only if its group is due.
 *  D2  When all is quiet, no group is due: every waiting agent was woken.
 *  D3  A task is ended once, in the log of its owner.
 *  D4  No agent reports a task as done while the agent itself waits for a task.
 */
export type Invariant = 'I1' | 'I2' | 'I3' | 'I4' | 'I6' | 'I7' | 'I8' | 'R1' | 'D1' | 'D2' | 'D3' | 'D4';

/** A broken rule. */
export interface Violation {
  /** Name of the broken rule. */
  invariant: Invariant;
  /** Id of the conversation. */
  conversation: string;
  /** What is wrong. */
  problem: string;
}

/** Options of `checkLog`. */
export interface CheckOptions {
  /** Turns whose abort was acknowledged. */
  cancelled?: readonly string[];
  /** False while work is in progress: unfinished work is then no violation. Default true. */
  quiet?: boolean;
}

type Ending = EventOf<'turn.done'> | EventOf<'turn.failed'> | EventOf<'turn.aborted'>;
type Report = (invariant: Invariant, problem: string) => void;

/** Takes all events of one or more conversations, and the current records of their actors; failed actors may be left out. */
export function checkLog(
  events: readonly Event[],
  actors: readonly ActorRecord[],
  options: CheckOptions = {},
): Violation[] {
  const keyOf = (at: { tenant: string; conversation: string }) => `${at.tenant}/${at.conversation}`;
  const logs = Map.groupBy(events, keyOf);
  const crews = Map.groupBy(actors, keyOf);
  const violations: Violation[] = [];
  for (const key of new Set([...logs.keys(), ...crews.keys()])) {
    const report: Report = (invariant, problem) => violations.push({ invariant, conversation: key, problem });
    checkConversation(logs.get(key) ?? [], crews.get(key) ?? [], options, report);
  }
  return violations;
}

function checkConversation(
  events: readonly Event[],
  actors: readonly ActorRecord[],
  { cancelled = [], quiet = true }: CheckOptions,
  report: Report,
): void {
  checkOrder(events, report);
  const turns = turnsOf(events);
  // A paused, failed or retired actor owes nothing until it is resumed.
  const resting = new Set(actors.filter(({ parked }) => parked !== null).map(({ agent }) => agent as string));
  for (const turn of turns.values()) {
    const mayBeOpen = !quiet || resting.has(parseTurnId(turn.id)?.agent ?? '');
    checkTurn(turn, mayBeOpen, report);
  }
  const tasks = checkTasks(events, resting, quiet, report);
  checkRetries(events, turns, report);
  for (const id of cancelled) checkCancelled(turns.get(id), report);
  const endings = Map.groupBy(events.filter(isEnding), (event) => event.author.id);
  for (const [agent, ends] of endings) checkCovers(agent, ends, { events, tasks }, report);
  if (quiet) checkAnswered({ events, tasks }, endings, resting, report);
  for (const actor of actors) checkActor(actor, endings.get(actor.agent) ?? [], { events, quiet }, report);
}

/** Kinds that only the runtime writes: neither clients nor imported transcripts may contain them. */
const RUNTIME_KINDS =
  /^(?:delegation|question|approval|session|compaction|baseline|prune|guard|todos|injection)\b/;

function checkOrder(events: readonly Event[], report: Report): void {
  const ids = new Set<string>();
  for (const [index, { seq, id, kind, turn }] of events.entries()) {
    if ((turn !== undefined || RUNTIME_KINDS.test(kind)) && !isRuntimeId(id))
      report('I1', `${kind} at ${seq} has the id ${id}, which a client could have taken`);
    if (seq !== index + 1) report('I1', `event ${index + 1} has seq ${seq}`);
    if (ids.has(id)) report('I1', `id ${id} is used twice`);
    ids.add(id);
  }
}

interface Turn {
  id: string;
  started: Event[];
  steps: EventOf<'step'>[];
  results: EventOf<'tool.result'>[];
  /** Messages and handoffs of the turn. */
  said: Event[];
  endings: Ending[];
}

function turnsOf(events: readonly Event[]): Map<string, Turn> {
  const turns = new Map<string, Turn>();
  for (const event of events) {
    if (event.turn === undefined || !parseTurnId(event.turn)) continue;
    const { turn: id } = event;
    const turn = turns.get(id) ?? { id, started: [], steps: [], results: [], said: [], endings: [] };
    turns.set(id, turn);
    if (event.kind === 'turn.started') turn.started.push(event);
    if (event.kind === 'step') turn.steps.push(event);
    if (event.kind === 'tool.result') turn.results.push(event);
    if (event.kind === 'message' || event.kind === 'handoff') turn.said.push(event);
    if (isEnding(event)) turn.endings.push(event);
  }
  return turns;
}

function checkTurn(turn: Turn, mayBeOpen: boolean, report: Report): void {
  const { id, endings, steps, results, said, started } = turn;
  const ending = endings[0];
  if (endings.length > 1) report('I2', `turn ${id} has ${endings.length} endings`);
  if (!ending && !mayBeOpen) report('I7', `turn ${id} has no ending`);
  if (started.length !== 1) report('I2', `turn ${id} was started ${started.length} times in the log`);
  const replies = said.filter(({ kind }) => kind === 'message');
  if (replies.length > 1) report('I2', `turn ${id} has ${replies.length} replies`);
  for (const { seq, kind } of [...steps, ...results, ...said, ...started]) {
    if (ending && seq > ending.seq) report('I2', `turn ${id} has a ${kind} at ${seq}, after its end`);
  }
  const inputs = ending?.body.covers ?? [];
  for (const { seq } of said) {
    if (inputs.some((input) => input >= seq)) report('I3', `turn ${id} speaks at ${seq}, before its inputs`);
  }
  if (ending) checkResults(turn, report);
}

function checkResults({ id, steps, results }: Turn, report: Report): void {
  const calls = steps.flatMap(({ body }) => body.calls.map((call) => call.id));
  const answers = results.map(({ body }) => body.call);
  for (const call of new Set([...calls, ...answers])) {
    const asked = calls.filter((other) => other === call).length;
    const answered = answers.filter((other) => other === call).length;
    if (asked !== answered) report('I2', `call ${call} of turn ${id}: ${asked} calls, ${answered} results`);
  }
}

function checkCancelled(turn: Turn | undefined, report: Report): void {
  if (!turn) return;
  const { id, said, endings } = turn;
  for (const { kind, seq } of said) report('I8', `turn ${id} was cancelled and has a ${kind} at ${seq}`);
  const other = endings.find(({ kind }) => kind !== 'turn.aborted');
  if (other) report('I8', `turn ${id} was cancelled and ended as ${other.kind}`);
}

function checkRetries(events: readonly Event[], turns: ReadonlyMap<string, Turn>, report: Report): void {
  for (const { kind, body, id, seq, to } of events) {
    if (kind !== 'command' || body.command !== 'retry') continue;
    const { turn = '', agent } = body;
    const end = turns.get(turn)?.endings[0];
    if (id !== `${turn}:retry`) report('R1', `the retry of ${turn} at ${seq} has the id ${id}`);
    if (!end || end.seq > seq || end.kind === 'turn.done')
      report('R1', `${turn} is retried at ${seq}, and has not failed by then`);
    if (agent === undefined || to.join(' ') !== agent || parseTurnId(turn)?.agent !== agent)
      report('R1', `the retry of ${turn} at ${seq} is to ${to.join(', ')}`);
  }
}

/** Checks the endings of one agent, given in order. */
function checkCovers(
  agent: string,
  endings: readonly Ending[],
  { events, tasks }: History,
  report: Report,
): void {
  let last = 0;
  for (const [index, { turn, seq, body }] of endings.entries()) {
    if (turn && parseTurnId(turn)?.number !== index + 1)
      report('I3', `ending ${index + 1} of ${agent} belongs to turn ${turn}`);
    for (const covered of body.covers) {
      if (covered >= seq) report('I3', `turn ${turn} ends at ${seq} and covers ${covered}`);
      // The end of a task waits for the others of its group.
      const waits = tasks.ended.has(covered);
      if (covered <= last && !waits) report('I3', `turn ${turn} covers ${covered} after ${last}`);
      if (!waits) last = Math.max(last, covered);
      const event = events[covered - 1];
      if (!event?.to.includes(agent as Event['to'][number]))
        report('I4', `turn ${turn} covers ${covered}, which does not address ${agent}`);
    }
  }
}

interface History {
  events: readonly Event[];
  tasks: LogTasks;
}

/** Checks each task of a conversation against the turns that received its end. */
function checkTasks(
  events: readonly Event[],
  resting: ReadonlySet<string>,
  quiet: boolean,
  report: Report,
): LogTasks {
  const tasks = createLogTasks();
  for (const event of events) {
    for (const seq of isEnding(event) ? event.body.covers : []) {
      if (tasks.ended.has(seq) && !tasks.isDue(seq))
        report('D1', `turn ${event.turn} received the end at ${seq} of a task whose group is not due`);
    }
    checkDone(tasks, event, report);
    const before = tasks.ended.size;
    tasks.add(event);
    const isHome = isTaskEnd(event) && event.id.endsWith(':end');
    if (isHome && tasks.ended.size === before)
      report('D3', `${event.id} at ${event.seq} ends no open task of this conversation`);
  }
  for (const [seq, { id, owner }] of quiet ? tasks.ended : []) {
    if (tasks.isDue(seq) && !resting.has(owner) && !tasks.isAway(owner))
      report('D2', `${owner} was never woken with the end of ${id}`);
  }
  return tasks;
}

function checkDone(tasks: LogTasks, event: Event, report: Report): void {
  if (event.kind !== 'delegation.ended' || event.body.outcome !== 'done' || !event.turn) return;
  for (const id of tasks.awaitedBy(event.author.id as AgentId))
    report('D4', `${event.id}: done, while it waits for ${id}`);
}

function checkAnswered(
  { events, tasks }: History,
  endings: ReadonlyMap<string, readonly Ending[]>,
  resting: ReadonlySet<string>,
  report: Report,
): void {
  const covered = timesCovered(endings);
  const past = events.findLast(({ kind, body }) => kind === 'command' && body.from !== undefined)?.seq ?? 0;
  for (const event of events) {
    // An event without words needs no answer.
    if (visibleText(event) === null) continue;
    for (const agent of event.to) {
      const times = covered.get(`${event.seq}/${agent}`) ?? 0;
      if (tasks.ended.has(event.seq)) continue; // D1 and D2
      // Events open at the point of a fork are answered in the original conversation.
      const isPast = event.seq < past;
      if (times > 1 || (times === 0 && !isPast && !resting.has(agent) && !tasks.isUnheard(agent, event)))
        report('I2', `event ${event.seq} to ${agent} is covered ${times} times`);
    }
  }
}

/** How often each `seq/agent` is covered. */
function timesCovered(endings: ReadonlyMap<string, readonly Ending[]>): Map<string, number> {
  const covered = new Map<string, number>();
  for (const [agent, ends] of endings) {
    for (const seq of ends.flatMap(({ body }) => body.covers)) {
      covered.set(`${seq}/${agent}`, (covered.get(`${seq}/${agent}`) ?? 0) + 1);
    }
  }
  return covered;
}

const NEVER = 0;

function checkActor(
  actor: ActorRecord,
  endings: readonly Ending[],
  { events, quiet }: { events: readonly Event[]; quiet: boolean },
  report: Report,
): void {
  const name = addressKey(actor);
  if (actor.unpublished && quiet) report('I7', `${name}: events of its last turn are not in the log`);
  if (actor.unpublished) return;
  const ids = new Set<TurnId | undefined>(endings.map(({ turn }) => turn));
  if (actor.turnNo !== ids.size) report('I6', `${name}: turnNo ${actor.turnNo}, ${ids.size} in the log`);
  if ((actor.snapshot === null) !== (actor.turnNo === 0))
    report('I6', `${name}: turnNo ${actor.turnNo}, snapshot ${actor.snapshot}`);
  if (actor.lastTurn !== null && !ids.has(actor.lastTurn))
    report('I6', `${name}: its last turn ${actor.lastTurn} has no ending`);
  if (!quiet || actor.parked !== null) return;
  if (actor.turn) report('I7', `${name}: turn ${actor.turn.id} is still pinned`);
  const addressed = events.findLast(({ to }) => to.includes(actor.agent))?.seq ?? NEVER;
  if (actor.processed < addressed)
    report('I7', `${name}: processed ${actor.processed}, addressed at ${addressed}`);
}

function isEnding<E extends Pick<Event, 'kind'>>(event: E): event is E & Ending {
  return event.kind === 'turn.done' || event.kind === 'turn.failed' || event.kind === 'turn.aborted';
}

/**
 * Checks the sessions of an agent in one conversation against its log: every message that a model call must see (those
 * up to the pin of its turn, and the agent's own earlier replies) is in its session exactly once. Messages with equal
 * texts are left out. Returns one line per violation.
 */
export function checkSessions(events: readonly Event[], agent: string, calls: readonly SeenCall[]): string[] {
  const messages = events.flatMap((event) => eventOf(event, 'message') ?? []);
  const bodies = Map.groupBy(messages, ({ body }) => body.content);
  const unique = messages.filter(({ body }) => bodies.get(body.content)?.length === 1);
  const pinned = new Map(
    events.flatMap((event) => {
      const started = eventOf(event, 'turn.started');
      return started ? [[started.turn, started.body.upTo]] : [];
    }),
  );
  const found: string[] = [];
  for (const { trace, session, transcript, change } of calls) {
    if (trace.conversation !== events[0]?.conversation || trace.agent !== agent) continue;
    const all = transcript.join('\n');
    for (const { seq, body, author } of unique) {
      if (seq > (pinned.get(trace.turn) ?? 0)) continue;
      const times = timesOf(body.content, all);
      if (times === 1) continue;
      found.push(
        `session ${session} (${change}) showed ${trace.turn} step ${trace.step} event ${seq} of ${author.id}, "${body.content}", ${times} times`,
      );
    }
  }
  return found;
}

/** Counts whole words: "message 1" is not in "message 12". */
function timesOf(text: string, all: string): number {
  let times = 0;
  for (let at = all.indexOf(text); at >= 0; at = all.indexOf(text, at + 1)) {
    if (!/[\w:]/.test(all[at + text.length] ?? '')) times += 1;
  }
  return times;
}
