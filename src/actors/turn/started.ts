import { type EventDraft, type EventId, type PinnedTurn, runtimeId } from '../../events/index.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import { promptRulesOf } from './prompt-rules.ts';

export function startedDraft(runtime: AgentRuntime, turn: PinnedTurn): EventDraft {
  const { id, name } = runtime.profile;
  const { upTo, inputs, live, join, baseline, context } = turn;
  return {
    id: startedId(turn),
    author: { kind: 'agent', id, name },
    to: [],
    turn: turn.id,
    kind: 'turn.started',
    body: { upTo, inputs, live, join, baseline, ...promptRulesOf(turn) },
    ...(context && { context }),
  };
}

export function startedId({ id }: PinnedTurn): EventId {
  return runtimeId(id, 'started');
}
