import type { EventDraft } from '../events/index.ts';
import { AGENT_MACHINE_VERSION, type AgentEvent } from '../machines/agent-lifecycle.ts';
import { saveSettled } from '../machines/snapshot.ts';
import type { ActorPatch } from '../store/store.ts';
import { sealTurn } from './seal-turn.ts';
import { sessionPatch } from './session/settle-session.ts';
import { type ModelAnswer, ownDraft, type TurnRun, written } from './turn-run.ts';

/**
 * Ends a turn in one fenced compare-and-set: index, snapshot and everything the turn says, together. Nothing is
 * published before it, and nothing at all if the fence is lost. A turn that was asked to stop is refused by the same
 * write and ends as aborted instead: after an acknowledged stop there is no reply.
 */
export async function commitTurn(run: TurnRun): Promise<AgentEvent> {
  const { lease } = run;
  await written(run);
  if (run.resumed && run.ending.kind !== 'done') await sealTurn(run);
  const cancelled = lease.record.cancel === run.turn.id;
  if (run.ending.kind !== 'aborted' && !cancelled) {
    const committed = await lease.writeUnlessCancelled(patchOf(run));
    if (committed) return ended(run);
  }
  run.ending = { kind: 'aborted', by: 'command' };
  if (run.resumed) await sealTurn(run);
  await lease.write(patchOf(run));
  return ended(run);
}

function ended({ deps, ending, usage, member }: TurnRun): AgentEvent {
  const { metrics } = deps;
  const { provider } = member.profile;
  metrics.count('turns', { outcome: ending.kind });
  metrics.count('tokens', { provider, kind: 'input' }, usage.input);
  metrics.count('tokens', { provider, kind: 'output' }, usage.output);
  metrics.count('tokens', { provider, kind: 'cache_read' }, usage.cacheRead);
  metrics.count('tokens', { provider, kind: 'cache_write' }, usage.cacheWrite);
  metrics.count('tokens', { provider, kind: 'reasoning' }, usage.reasoning);
  return { type: 'COMMITTED' };
}

function patchOf(run: TurnRun): ActorPatch {
  const { live, turn, lease } = run;
  return {
    processed: turn.upTo,
    cancel: null,
    state: {
      turnNo: lease.record.turnNo + 1,
      lastTurn: turn.id,
      snapshot: saveSettled(live.machine.getSnapshot()),
      machineVersion: AGENT_MACHINE_VERSION,
      turn: null,
      ...sessionPatch(run),
      outbox: [...outputsOf(run), ...endingOf(run)],
    },
  };
}

/** A turn that did not end well hands nothing over: the receiver would answer in its stead. */
function outputsOf({ ending, outputs }: TurnRun): EventDraft[] {
  return ending.kind === 'done' ? outputs : outputs.filter(({ kind }) => kind !== 'handoff');
}

/** All endings share one id, so a turn can have only one. */
function endingOf(run: TurnRun): EventDraft[] {
  const { turn, ending, answer, usage, step, last } = run;
  // An answer that was complete when the turn was stopped has been heard by whoever watched.
  const partial = answer?.text ?? run.partial;
  const covers = turn.inputs;
  const end = ownDraft(run, 'end');
  if (ending.kind === 'aborted') {
    return [{ ...end, kind: 'turn.aborted', body: { covers, by: ending.by, partial } }];
  }
  if (ending.kind === 'failed') {
    const { code, message } = ending;
    return [{ ...end, kind: 'turn.failed', body: { covers, code, message, partial } }];
  }
  const done: EventDraft = {
    ...end,
    kind: 'turn.done',
    body: {
      covers,
      steps: step + (answer ? 1 : 0),
      usage,
      ...(answer?.stop === 'length' && { cut: 'length' }),
      ...(last && { last }),
    },
  };
  const text = answer?.text ?? '';
  if (text.trim() === '') return [done];
  return [{ ...ownDraft(run, 'reply'), kind: 'message', body: { content: text, ...dataOf(answer) } }, done];
}

function dataOf(answer: ModelAnswer | null): { data?: unknown } {
  return answer && 'data' in answer ? { data: answer.data } : {};
}
