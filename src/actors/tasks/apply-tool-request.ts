import { nearestName } from '../../events/index.ts';
import { isTaskOpen } from '../../machines/task-book.ts';
import type { RequestOf, ToolRequest } from '../../tools/tool.ts';
import { completeHandoff } from '../handoffs/complete-handoff.ts';
import { summariseHandoff } from '../handoffs/summarise-handoff.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { askPeople } from './people/ask-people.ts';
import { type CallPlace, type CarriedOut, effectsOf, refused, stopped } from './call-effects.ts';
import { cancelTask } from './call-off/cancel-task.ts';
import { delegate, followUp } from './open-delegation.ts';
import { remind } from './remind.ts';

/** Does what a call asks of the turn, or says why not. What it returns is recorded before anything comes of it. */
export async function applyToolRequest(
  run: TurnRun,
  request: ToolRequest,
  at: CallPlace,
  text: string,
): Promise<CarriedOut> {
  switch (request.kind) {
    case 'handoff':
      return handOff(run, request, at, text);
    case 'delegate':
      return delegate(run, request, at);
    case 'followUp':
      return followUp(run, request, at);
    case 'question':
      return askPeople(run, request, at);
    case 'cancelTask':
      return cancelTask(run, request);
    case 'remind':
      return remind(run, request, at);
    case 'todos': {
      const { items, later } = request;
      const event = {
        ...ownDraft(run, `todos:${at.step}.${at.index}`),
        kind: 'todos',
        body: { items, later },
      } as const;
      return { outcome: 'done', text, effects: effectsOf({ events: [event] }) };
    }
    case 'noResponse':
      return { outcome: 'done', text, effects: effectsOf({ ends: true, silent: true }) };
  }
}

async function handOff(
  run: TurnRun,
  request: RequestOf<'handoff'>,
  at: CallPlace,
  text: string,
): Promise<CarriedOut> {
  const refusal = refuseHandoff(run, request, at);
  if (refusal) return refusal;
  const { to, summary } = await completeHandoff(run, request, (events) =>
    summariseHandoff(run, request.to, events),
  );
  const draft = ownDraft(run, `handoff:${at.step}.${at.index}`);
  const hop = run.turn.hop + 1;
  const event = { ...draft, to: [to], hop, kind: 'handoff' as const, body: { summary } };
  return { outcome: 'done', text, effects: effectsOf({ events: [event], ends: true }) };
}

function refuseHandoff(run: TurnRun, { to }: RequestOf<'handoff'>, at: CallPlace): CarriedOut | null {
  const { deps, live, turn } = run;
  const { limits } = deps;
  if (to === live.address.agent)
    return refused('you cannot hand over to yourself: answer the conversation instead.');
  if (!deps.agents.has(to)) {
    const known = [...deps.agents.keys()];
    const nearest = nearestName(to, known);
    return refused(
      `there is no agent "${to}".${nearest ? ` Did you mean "${nearest}"?` : ''} Known: ${known.slice(0, 50).join(', ')}.`,
    );
  }
  if (isTaskOpen(live.tasks))
    return refused('this task was given to you: delegate parts of it, or answer with what you have.');
  const away = live.tasks.away.get(to);
  if (away) return refused(`@${to} ${away.blocked ? 'is blocked here' : 'has left'}: choose another.`);
  if (turn.hop < limits.maxHops) return null;
  return stopped(run, at, {
    guard: 'hops',
    message: `this conversation has been handed over ${turn.hop} times since a person spoke (limits.maxHops ${limits.maxHops}): answer the people instead.`,
    goOn: 'a message of a person begins a new count',
  });
}
