import type { ActorRecord, Event, EventOf } from '../src/events/index.ts';
import { checkLog } from '../packages/testing/src/check-log.ts';
import type { Post } from './clients.ts';
import { type Execution, turnOfEffect } from './fake-tools.ts';

/**
 * The final state of one conversation, compared with the requests and faults it received. Checks, besides the invariants
 * of `checkLog`:
 *  I5    The log has every execution of a tool under its effect id, as done, failed or lost (the model learns of it). No
 *        execution that must not be repeated happened twice. No call is logged as done that never happened.
 *  ack   An acknowledged message is in the log once, as it was sent, at the acknowledged seq.
 *  turn  No actor failed, and no turn failed except by its model: every other fault of the rig is survivable.
 * I9 (budgets) is not checked.
 */
export interface ConversationRun {
  conversation: string;
  events: readonly Event[];
  actors: readonly ActorRecord[];
  /** Errors of actors that cannot be read. */
  corrupt: readonly string[];
  posts: readonly Post[];
  executions: readonly Execution[];
  cancelled: readonly string[];
}

export interface Finding {
  invariant: string;
  conversation: string;
  problem: string;
}

/** Tools that may be called again under the same effect id. */
const IDEMPOTENT = new Set(['look']);
/** Our own tools with effects outside; handoffs have none. */
const OUTSIDE = new Set(['book', 'look']);

export function checkConversation(run: ConversationRun): Finding[] {
  const { conversation, events, actors, cancelled } = run;
  const found: Finding[] = checkLog(events, actors, { cancelled });
  const report = (invariant: string, problem: string) => found.push({ invariant, conversation, problem });
  for (const reason of run.corrupt) report('I6', reason);
  for (const { agent, parked } of actors) if (parked !== null) report('turn', `@${agent} is ${parked}`);
  for (const { kind, turn, body } of events) {
    if (kind === 'turn.failed' && !body.code.startsWith('provider_'))
      report('turn', `turn ${turn} failed: ${body.code}: ${body.message}`);
  }
  checkEffects(run, report);
  checkPosts(run, report);
  return found;
}

type Report = (invariant: string, problem: string) => void;

function checkEffects({ events, executions }: ConversationRun, report: Report): void {
  const results = new Map<string, EventOf<'tool.result'>>();
  for (const event of events) {
    if (event.kind !== 'tool.result' || !OUTSIDE.has(event.body.name)) continue;
    results.set(event.id.replace(':result:', '/'), event);
  }
  const executed = Map.groupBy(executions, ({ effect }) => effect);
  for (const [effect, times] of executed) {
    const [{ tool }] = times as [Execution];
    const who = times.map(({ process: by, at }) => `${by} at ${at}`).join(', ');
    if (times.length > 1 && !IDEMPOTENT.has(tool))
      report('I5', `${tool} ${effect} was executed ${times.length} times: by ${who}`);
    const result = results.get(effect);
    if (!result && !IDEMPOTENT.has(tool))
      report('I5', `${tool} ${effect} was executed by ${who}, and ${endOf(events, effect)} has no result`);
  }
  for (const [effect, { seq, body }] of results) {
    if (body.outcome === 'done' && !executed.has(effect))
      report('I5', `${body.name} ${effect} is done in the log at ${seq}, and was never executed`);
  }
}

function endOf(events: readonly Event[], effect: string): string {
  const turn = turnOfEffect(effect);
  const last = events.findLast((event) => event.turn === turn);
  return last ? `the turn, which stands at ${last.kind} (${last.seq}),` : 'the log';
}

function checkPosts({ events, posts }: ConversationRun, report: Report): void {
  const stored = Map.groupBy(events, ({ id }) => id as string);
  for (const { id, content, to, acked } of posts) {
    if (!acked) {
      report('ack', `message ${id} was never acknowledged`);
      continue;
    }
    const found = stored.get(id) ?? [];
    const [event] = found;
    if (!event || found.length > 1) {
      report('ack', `message ${id}, acknowledged as ${acked.seq}, is ${found.length} times in the log`);
      continue;
    }
    const same = event.kind === 'message' && event.body.content === content && event.to.join() === to.join();
    if (!same) report('ack', `message ${id} is not in the log as it was sent`);
    if (event.seq !== acked.seq)
      report('ack', `message ${id} was acknowledged as ${acked.seq} and is at ${event.seq}`);
  }
}
