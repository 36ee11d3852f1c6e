import { agentAuthor } from '../../events/index.ts';
import type { Redaction } from '../log/redaction.ts';
import type { CallEffects } from '../tasks/call-effects.ts';
import type { ModelAnswer } from './turn-run.ts';

interface Speaker {
  id: string;
  name: string;
}

/** Redacts an answer before it is journalled, as the step or the message that it becomes. */
export function redactAnswer(redaction: Redaction, agent: Speaker, answer: ModelAnswer): ModelAnswer {
  const { text, original, calls, reasoning, fault } = answer;
  const data = 'data' in answer ? { data: answer.data } : {};
  const kind = calls.length > 0 ? 'step' : 'message';
  const said = { text, calls, ...(reasoning && { reasoning }), ...data };
  const where = { kind, author: agentAuthor(agent) } as const;
  return {
    ...answer,
    ...redaction.body(said, where),
    ...(original !== undefined && { original: redaction.text(original, where) }),
    // It may quote the answer.
    ...(fault && {
      fault: {
        ...fault,
        note: fault.note && redaction.text(fault.note, where),
        message: redaction.text(fault.message, where),
      },
    }),
  };
}

/** Redacts the result and the effects of a call before they enter the ledger. */
export function redactCall<T extends { text: string; effects?: CallEffects | undefined }>(
  redaction: Redaction,
  agent: Speaker,
  end: T,
): T {
  const text = redaction.text(end.text, { kind: 'tool.result', author: agentAuthor(agent) });
  const { effects } = end;
  if (!effects) return { ...end, text };
  const { events, posts, timers } = effects;
  return {
    ...end,
    text,
    effects: {
      ...effects,
      events: events.map((draft) => redaction.draft(draft)),
      posts: redaction.posts(posts),
      timers: timers.map((timer) => ({ ...timer, posts: redaction.posts(timer.posts) })),
    },
  };
}
