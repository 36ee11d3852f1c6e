import { agentAuthor } from '../../events/index.ts';
import type { Redaction } from '../log/redaction.ts';
import type { CallEffects } from '../tasks/call-effects.ts';
import type { ModelAnswer } from './turn-run.ts';

interface Speaker {
  id: string;
  name: string;
}

/** An answer before it is journalled: what becomes of it is a step, or the agent's message. */
export function redactAnswer(redaction: Redaction, agent: Speaker, answer: ModelAnswer): ModelAnswer {
  const { text, calls, reasoning } = answer;
  const data = 'data' in answer ? { data: answer.data } : {};
  const kind = calls.length > 0 ? 'step' : 'message';
  const said = { text, calls, ...(reasoning && { reasoning }), ...data };
  return { ...answer, ...redaction.body(said, { kind, author: agentAuthor(agent) }) };
}

/** What a call gave, and what it does, before its ledger entry. */
export function redactCall<T extends { text: string; effects?: CallEffects | undefined }>(
  redaction: Redaction,
  agent: Speaker,
  end: T,
): T {
  const text = redaction.text(end.text, { kind: 'tool.result', author: agentAuthor(agent) });
  const { effects } = end;
  if (!effects) return { ...end, text };
  const { state } = redaction.patch({
    state: { outbox: effects.events, posts: effects.posts, timers: effects.timers },
  });
  const { outbox = [], posts = [], timers = [] } = state ?? {};
  return { ...end, text, effects: { ...effects, events: outbox, posts, timers } };
}
