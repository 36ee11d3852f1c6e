import { agentAuthor, nearestName, runtimeId, SYSTEM_AUTHOR } from '../../events/index.ts';
import { isTaskOpen } from '../../machines/task-book.ts';
import type { RequestOf, ToolRequest } from '../../tools/tool.ts';
import { completeHandoff, summariseHandoff } from '../handoffs/complete-handoff.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { askPeople } from './ask-people.ts';
import { type CallPlace, type AppliedRequest, effectsOf, refused, stopped } from './call-effects.ts';
import { delegate, findTask, followUp } from './open-delegation.ts';
import { abortTask } from './task-events.ts';

/** Applies what a tool call asks of the turn, or refuses it. Its effects are recorded before they happen. */
export async function applyToolRequest(
  run: TurnRun,
  request: ToolRequest,
  at: CallPlace,
  text: string,
): Promise<AppliedRequest> {
  switch (request.kind) {
    case 'handoff':
      return handOff(run, request, at, text);
    case 'delegate':
      return delegate(run, request, at);
    case 'followUp':
      return followUp(run, request, at);
    case 'question':
      return askPeople(run, request, at, text);
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
): Promise<AppliedRequest> {
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

function refuseHandoff(run: TurnRun, { to }: RequestOf<'handoff'>, at: CallPlace): AppliedRequest | null {
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

/** Ends a task that the agent delegated. A result that came first counts. */
function cancelTask(run: TurnRun, request: RequestOf<'cancelTask'>): AppliedRequest {
  const task = findTask(run, request.task);
  if (typeof task === 'string') return refused(task);
  if (task.end) return refused(`${task.id} has ended already (${task.end.outcome})`);
  const why = request.reason.trim() || 'its delegator called it off';
  const outgoing = abortTask(run.live.address, task, agentAuthor(run.runtime.profile), why);
  return { outcome: 'done', text: `${task.id} is called off`, effects: effectsOf({ posts: outgoing }) };
}

/** Most waiting reminders of one agent in one conversation. */
const MOST_REMINDERS = 50;
/** Largest time of a Date, ms. */
const LAST_TIME = 8.64e15;

/** Sends the agent a message later. The actor record holds it, and any process that finds it due sends it. */
function remind(run: TurnRun, request: RequestOf<'remind'>, place: CallPlace): AppliedRequest {
  const { live, deps, turn, lease } = run;
  const now = deps.clock.now();
  const { text, at = now + (request.inMs ?? 0) } = request;
  if (!(at > now && at < LAST_TIME)) {
    const asked = Math.abs(at) < LAST_TIME ? new Date(at).toISOString() : String(at);
    return refused(`${asked} is not a time in the future: it is ${new Date(now).toISOString()}`);
  }
  const waiting = lease.record.timers.filter(({ task }) => task === undefined).length + run.timers.length;
  if (waiting >= MOST_REMINDERS) return refused(`${waiting} reminders wait already: that is the most`);
  const { conversation, agent } = live.address;
  const draft = {
    id: runtimeId('remind', turn.id, `${place.step}.${place.index}`),
    author: SYSTEM_AUTHOR,
    to: [agent],
    hop: turn.hop,
    kind: 'message' as const,
    body: { content: `Reminder that you asked for: ${text}` },
  };
  const timer = { at: Math.ceil(at), posts: [{ conversation, draft }] };
  return {
    outcome: 'done',
    text: `you are reminded at ${new Date(timer.at).toISOString()}`,
    effects: effectsOf({ timers: [timer] }),
  };
}
