import { CANCELLED } from '../src/actors/tasks/task-ends.ts';
import {
  type ActorRecord,
  type Event,
  eventOf,
  newActorRecord,
  parseTurnId,
  type PromptReceipt,
} from '../src/events/index.ts';
import type { ActorAddress } from '../src/events/index.ts';
import type { ActorRow } from '../src/store/driver.ts';
import { withoutEvents } from '../src/store/documents/actor-steps.ts';
import { chainValue } from '../src/store/event-row.ts';
import { checkLog, checkSessions } from '../packages/testing/src/check-log.ts';
import type { Clients } from './clients.ts';
import { checkCancelledTasks } from './check-cancelled-tasks.ts';
import { CROWDED_AGENT, REMEMBERING_AGENT } from './company.ts';
import { eventOfRow } from './task-watch.ts';
import type { World } from './world.ts';

/** The problems in the history of a schedule that has settled: one line each, which starts with the invariant. */
export function checkWorld(world: World, clients: Clients): string[] {
  const events = [...world.data.logs.values()].flatMap(({ bySeq }) =>
    [...bySeq.values()].sort((a, b) => a.seq - b.seq).map(eventOfRow),
  );
  const actors = [...world.data.actors.values()].filter(({ tenant }) => tenant !== '-').map(recordOfRow);
  const found = checkLog(events, actors, { cancelled: clients.cancelled }).map(
    ({ invariant, conversation, problem }) => `${invariant} ${conversation}: ${problem}`,
  );
  const byKey = new Map(events.map((event) => [`${event.conversation}/${event.id}`, event]));
  found.push(
    ...checkPosts(clients, byKey),
    ...checkCalls(world, byKey),
    ...checkTurns(world, events, clients.asked),
    ...checkTasks(world, events),
    ...checkCancelledTasks(world, events),
    ...checkMemories(world, events),
    ...checkChains(world),
    ...checkReceipts(world, events),
    ...actors.filter(({ parked }) => parked === 'failed').map((actor) => `FAILED ${actor.agent}`),
    ...clients.problems.map((problem) => `CLIENT ${problem}`),
    ...world.surprises.map((warning) => `WARNING ${warning}`),
  );
  world.figures.joins += events.filter(
    ({ kind, body }) => kind === 'membership.changed' && body.change === 'joined',
  ).length;
  return found;
}

/** Every acknowledged message is in the log, unchanged. */
function checkPosts({ posted }: Clients, byKey: ReadonlyMap<string, Event>): string[] {
  return [...posted].flatMap(([key, draft]) => {
    const event = byKey.get(key);
    if (!event) return [`ACK post ${key} was acknowledged but is not in the log`];
    const same = JSON.stringify([event.to, event.body]) === JSON.stringify([draft.to, draft.body]);
    return same ? [] : [`ACK post ${key} was changed`];
  });
}

/** R1: whoever asks what an ended turn saw finds the receipt of its last prompt. */
function checkReceipts({ data }: World, events: readonly Event[]): string[] {
  const receipts = new Set<string>();
  for (const { namespace, data: text } of data.entries.values()) {
    if (namespace !== 'prompt') continue;
    const { turn, step } = JSON.parse(text) as PromptReceipt;
    receipts.add(`${turn}:${step}`);
  }
  return events.flatMap((event) => {
    const done = eventOf(event, 'turn.done');
    if (!done || done.body.steps === 0 || receipts.has(`${done.turn}:${done.body.steps}`)) return [];
    return [`R1 ${done.turn}: its last prompt has no receipt (step ${done.body.steps})`];
  });
}

/** S7: each event is chained to the one before it, whoever wrote the two. */
function checkChains({ data }: World): string[] {
  return [...data.logs.values()].flatMap(({ conversation, bySeq }) =>
    [...bySeq.values()].flatMap((row) => {
      const before = bySeq.get(row.seq - 1)?.chain ?? null;
      return row.chain === chainValue(row, row.seq, before)
        ? []
        : [`S7 ${conversation}: ${row.seq} is not chained`];
    }),
  );
}

/**
 * S1: a session shows its agent every message exactly once, whatever happens to turns and processes. Messages of
 * agents are all alike here and are not checked.
 */
function checkMemories({ memories, figures }: World, events: readonly Event[]): string[] {
  const seen = memories.flatMap((memory) => memory.seen);
  figures.sessionRequests += seen.filter(({ change }) => change !== 'started').length;
  return [...Map.groupBy(events, ({ conversation }) => conversation).values()].flatMap((log) =>
    checkSessions(log.filter(isOfPeople), REMEMBERING_AGENT, seen).map((problem) => `S1 ${problem}`),
  );
}

function isOfPeople({ kind, author }: Event): boolean {
  return kind !== 'message' || author.kind === 'user';
}

const LEDGERED: readonly string[] = ['note', 'put', 'sign'];

/**
 * I5: the calls that ran are the calls in the journal; calls that must not repeat ran once; the model learns of every
 * call whose outcome is unknown.
 */
function checkCalls({ ledger, figures }: World, byKey: ReadonlyMap<string, Event>): string[] {
  const found: string[] = [];
  for (const [effect, { name, nonce, runs }] of Object.entries(ledger)) {
    figures.calls += runs;
    const [turn = '', at = ''] = effect.split('/');
    const conversation = parseTurnId(turn)?.conversation;
    if (name !== 'put' && runs > 1) found.push(`I5 ${effect} (${name}) ran ${runs} times`);
    const [step, index] = at.split('.');
    const asked = eventAt(byKey, `${conversation}/${turn}:step:${step}`, 'step')?.body.calls[Number(index)];
    const result = eventAt(byKey, `${conversation}/${turn}:result:${at}`, 'tool.result')?.body;
    if (!asked || !result) {
      // Results of an agent that was paused after a crash are logged when it is resumed. Other unfinished turns are
      // found by I7.
      if (!byKey.has(`${conversation}/${turn}:end`)) continue;
      found.push(`I5 ${effect} (${name}) ran but is not in the log`);
      continue;
    }
    if (asked.name !== name || asked.args !== JSON.stringify({ nonce }))
      found.push(`I5 ${effect} ran as ${name} ${nonce}, the log has ${asked.name} ${asked.args}`);
    if (result.outcome === 'lost') figures.lost += 1;
    if (result.outcome === 'lost' && !result.content.includes('[lost'))
      found.push(`I5 ${effect} is lost, but its result does not say so`);
    if (result.outcome === 'done' && runs === 0) found.push(`I5 ${effect} is done but never ran`);
  }
  for (const [key, event] of byKey) {
    const result = eventOf(event, 'tool.result')?.body;
    if (result?.outcome !== 'done' || !LEDGERED.includes(result.name)) continue;
    const [, turn = '', at = ''] = /^[^/]+\/(.*):result:(\d+\.\d+)$/.exec(key) ?? [];
    if (!ledger[`${turn}/${at}`]) found.push(`I5 ${turn}/${at} is done but never ran`);
  }
  return found;
}

/** Every task ends, and each approval is used once, for the call that it approved. */
function checkTasks({ tasks, ledger, figures }: World, events: readonly Event[]): string[] {
  const found = tasks.open().map(({ conversation, task }) => `D4 ${conversation}: ${task.id} never ended`);
  for (const { task } of tasks.all()) {
    figures.tasks += 1;
    if (task.end?.outcome === 'expired') figures.expired += 1;
  }
  const allowed = new Map<string, number>();
  const asked = new Map(
    events.flatMap((event) => {
      const requested = eventOf(event, 'approval.requested');
      return requested ? [[requested.body.request, requested.body.args] as const] : [];
    }),
  );
  for (const event of events) {
    const decided = eventOf(event, 'approval.decided');
    if (decided?.body.outcome !== 'approved') continue;
    const args = asked.get(decided.body.request) ?? '';
    allowed.set(args, (allowed.get(args) ?? 0) + 1);
  }
  for (const [effect, { name, nonce, runs }] of Object.entries(ledger)) {
    if (name !== 'sign') continue;
    const args = JSON.stringify({ nonce });
    if (!allowed.has(args)) found.push(`D5 ${effect} ran without approval of ${args}`);
    const all = Object.values(ledger).filter((entry) => entry.name === 'sign' && entry.nonce === nonce);
    if (runs > 1 || all.length > 1)
      found.push(`D5 the approval of ${args} was used ${all.length * runs} times`);
  }
  return found;
}

/** F9 and F25: a turn covers its inputs, and fails only because of its own actions. */
function checkTurns(
  { limits, figures, plan }: World,
  events: readonly Event[],
  asked: ReadonlySet<string>,
): string[] {
  const found: string[] = [];
  const inputs = new Map<string, readonly number[]>();
  const broken = plan.struck.filter(({ kind }) => kind !== 'next job loss' && kind !== 'queue loss').length;
  const isPoison = (code: string) => code === 'poison' && limits.maxAttempts <= broken;
  const isExpected = (code: string) =>
    code.startsWith('provider_') || code === 'command_refused' || isPoison(code);
  for (const event of events) {
    const started = eventOf(event, 'turn.started');
    if (started?.turn) inputs.set(started.turn, started.body.inputs);
    const steered = eventOf(event, 'turn.steered');
    if (steered?.turn)
      inputs.set(steered.turn, [...(inputs.get(steered.turn) ?? []), ...steered.body.inputs]);
    if (steered) figures.steered += 1;
    const error = eventOf(event, 'error');
    if (error && !isExpected(error.body.code)) found.push(`ERROR ${error.body.code}: ${error.body.message}`);
    const end =
      eventOf(event, 'turn.done') ?? eventOf(event, 'turn.failed') ?? eventOf(event, 'turn.aborted');
    if (!end) continue;
    figures.turns += 1;
    if (String(inputs.get(end.turn ?? '')) !== String(end.body.covers))
      found.push(
        `F9 turn ${end.turn} was started with ${inputs.get(end.turn ?? '')}, covers ${end.body.covers}`,
      );
    const isOff = end.kind === 'turn.aborted' && end.body.by === CANCELLED;
    if (end.kind === 'turn.aborted' && !isOff && !asked.has(end.turn ?? '') && !interrupts(events, end))
      found.push(`F26 turn ${end.turn} was aborted without a request`);
    if (end.kind !== 'turn.failed' || end.body.code.startsWith('provider_')) continue;
    if (end.body.code === 'poison') figures.poisoned += 1;
    // The messages that wait for this agent may exceed its window.
    if (end.body.code === 'context_overflow' && end.author.id === CROWDED_AGENT) continue;
    if (isPoison(end.body.code)) continue;
    found.push(`F25 turn ${end.turn} failed: ${end.body.code} ${end.body.message}`);
  }
  return found;
}

/** True if a message or an abort interrupted the agent. */
function interrupts(events: readonly Event[], end: Event): boolean {
  return events.some(
    (event) =>
      event.conversation === end.conversation &&
      event.to.some((agent) => agent === end.author.id) &&
      (event.whileBusy === 'interrupt' || event.id.endsWith(':cancel')),
  );
}

function eventAt<K extends Event['kind']>(byKey: ReadonlyMap<string, Event>, key: string, kind: K) {
  const event = byKey.get(key);
  return event ? eventOf(event, kind) : null;
}

function recordOfRow(row: ActorRow): ActorRecord {
  const { tenant, conversation, agent, fence, owner, until, processed, abort, parked, data } =
    withoutEvents(row);
  const address = { tenant, conversation, agent } as ActorAddress;
  const columns = { fence, owner, until, processed, abort, parked };
  return { ...newActorRecord(address), ...JSON.parse(data), ...columns } as ActorRecord;
}

/** Actors with pending work. */
export function unsettled({ data }: World): string[] {
  const found = new Set<string>();
  for (const [key, { addressed }] of data.logs) {
    for (const [agent, rows] of addressed) {
      const actor = data.actors.get(`${key}/${agent}`);
      if ((actor?.processed ?? 0) < (rows.at(-1)?.seq ?? 0) && actor?.parked == null)
        found.add(`${key}/${agent}`);
    }
  }
  for (const [key, { turn, outbox, parked }] of data.actors) {
    if ((turn !== null || outbox) && parked === null) found.add(key);
  }
  return [...found];
}
