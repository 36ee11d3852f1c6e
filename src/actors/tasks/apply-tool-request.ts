import {
  agentAuthor,
  nearestName,
  runtimeId,
  SYSTEM_AUTHOR,
  type ApprovalRequestedBody,
  type Event,
  type QuestionBody,
  type ToolCall,
  type AgentId,
  type EventDraft,
  type HandoffDraft,
  HandoffSummary,
} from '../../events/index.ts';
import { isTaskOpen, openTasks, type TaskFold } from '../../machines/task-fold.ts';
import type { RequestOf, ToolRequest, Approval, Tool } from '../../tools/tool.ts';
import { ownDraft, type TurnRun } from '../attempt/turn-run.ts';
import {
  type CallPlace,
  NOT_RUN,
  type AppliedRequest,
  effectsOf,
  refused,
  stopped,
  type CallEffects,
} from './call-effects.ts';
import { delegate, findTask, followUp, deadlineOf } from './open-delegation.ts';
import { cancellationOf, opening, taskIdOf } from '../log/tasks.ts';
import type { Clock } from '../../base/clock.ts';
import { hashText, handoffRequestSteps, latestCompaction, parseHandoff } from '../../context/index.ts';
import { parseInTime } from '../../tools/run-tool.ts';
import { handoffSteps } from '../../context/extract/handoff.ts';
import { inSlices, readNewest } from '../log/read-log.ts';
import { requestTokens, windowFor } from '../attempt/model-window.ts';

/** Applies the request of a tool call to the turn, or refuses it. Its effects are recorded before they happen. */
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
  if ((deps.agents.former?.get(to) ?? to) === live.address.agent)
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
  const state = live.tasks.unavailable.get(deps.agents.former?.get(to) ?? to);
  // Only a person can make the agent available again, so a conversation handed to it would get no answer.
  if (state)
    return refused(
      `@${to} ${state === 'failed' ? 'has failed' : `is ${state}`} and takes no turns: choose another, or answer the people yourself.`,
    );
  if (turn.hop < limits.maxHops) return null;
  return stopped(run, at, {
    guard: 'hops',
    message: `this conversation has been handed over ${turn.hop} times since a person spoke (at most ${limits.maxHops}): answer the people instead.`,
    goOn: 'a message of a person begins a new count',
  });
}

/** Ends a task that the agent delegated. A result that came first counts. */
function cancelTask(run: TurnRun, request: RequestOf<'cancelTask'>): AppliedRequest {
  const task = findTask(run, request.task);
  if (typeof task === 'string') return refused(task);
  if (task.end) return refused(`${task.id} has ended already (${task.end.outcome})`);
  const why = request.reason.trim() || 'its delegator called it off';
  const outgoing = cancellationOf(run.live.address, task, agentAuthor(run.runtime.profile), why);
  return { outcome: 'done', text: `${task.id} is cancelled`, effects: effectsOf({ posts: outgoing }) };
}

const MOST_REMINDERS = 50;
const LAST_TIME = 8.64e15;

/** Sends the agent a message later. The actor's record keeps it, and any process that finds it due sends it. */
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

/**
 * The result of a call that is not made now: a person must approve it first, or its arguments do not fit the tool, in which case
 * nobody is asked. Null: the call is made. An approved call comes first in its turn, with unchanged arguments.
 */
export async function heldForApproval(
  run: TurnRun,
  tool: Tool,
  call: ToolCall,
  at: CallPlace,
): Promise<{ outcome: 'failed'; text: string } | ReturnType<typeof requestApproval> | null> {
  const { turn, step, deps, lease } = run;
  if (!tool.needsApproval) return null;
  const isApproved =
    step === 0 &&
    (turn.approved ?? []).some(
      ({ id, name, args }) => id === call.id && name === call.name && args === call.args,
    );
  if (isApproved) return null;
  const within = { clock: deps.clock, signal: lease.signal };
  const waits = await applies(tool, tool.needsApproval, call, within);
  if (typeof waits === 'object') return { outcome: 'failed', text: waits.failed };
  if (!waits) return null;
  return run.givenUp ? { outcome: 'failed', text: NOT_RUN } : requestApproval(run, tool, call, at);
}

async function applies(
  tool: Tool,
  approval: Approval,
  call: ToolCall,
  within: { clock: Clock; signal: AbortSignal },
): Promise<boolean | { failed: string }> {
  const when =
    typeof approval === 'function' ? approval : typeof approval === 'object' ? approval.when : undefined;
  try {
    const parsed = await parseInTime(tool, call, within);
    if (parsed && 'failed' in parsed) return parsed;
    return !when || !parsed || when(parsed.value as never);
  } catch {
    // If the check or the condition throws, the call needs an approval.
    return true;
  }
}

function requestApproval(
  run: TurnRun,
  tool: Tool,
  call: ToolCall,
  at: CallPlace,
): { outcome: 'waiting'; text: string; effects: CallEffects } {
  const { live, deps, turn } = run;
  const { agent, conversation } = live.address;
  const request = taskIdOf('a', turn.id, at);
  const settings = typeof tool.needsApproval === 'object' ? tool.needsApproval : {};
  const deadline = deadlineOf(run, settings.deadlineMs ?? deps.limits.approvalMs);
  const body: ApprovalRequestedBody = {
    request,
    tool: call.name,
    args: call.args,
    argsHash: hashText(call.args),
    by: [...(settings.by ?? [])],
    deadline,
  };
  const task = opening({ kind: 'approval', body, id: request }, agent);
  return {
    outcome: 'waiting',
    text: `[not run yet: a person has to approve this call first (${request}). You are woken with the decision; if it is approved, the call is made for you.]`,
    effects: effectsOf({
      events: [{ ...ownDraft(run, `asked:${at.step}.${at.index}`), kind: 'approval.requested', body }],
      timers: [
        {
          at: deadline,
          task: request,
          posts: cancellationOf({ conversation }, task, SYSTEM_AUTHOR, 'nobody decided in time'),
        },
      ],
      ends: true,
    }),
  };
}

/** The approved calls, as requested or as the approver changed them. Each decision is an input of only one turn. */
export function approvedCalls(tasks: TaskFold, inputs: readonly Event[]): ToolCall[] {
  return inputs.flatMap((event) => {
    if (event.kind !== 'approval.decided' || event.body.outcome !== 'approved') return [];
    const task = tasks.tasks.get(event.body.request);
    if (task?.kind !== 'approval' || task.end?.seq !== event.seq) return [];
    const { request, tool, args, argsHash } = task.body;
    if (hashText(args) !== argsHash) return [];
    const { args: edited = args, argsHash: editedHash = argsHash } = event.body;
    return hashText(edited) === editedHash ? [{ id: request, name: tool, args: edited }] : [];
  });
}

/** Asks people a question in the log. The first answer of an entitled person ends it. `said`: further text for the model. */
function askPeople(run: TurnRun, request: RequestOf<'question'>, at: CallPlace, said = ''): AppliedRequest {
  const { live, deps, turn } = run;
  const { agent, conversation } = live.address;
  const twin = openTasks(live.tasks, agent).find(
    (task) => task.kind === 'question' && task.body.text.trim() === request.text.trim(),
  );
  if (twin) return refused(`this is asked already (${twin.id}): wait for the answer`);
  const question = taskIdOf('q', turn.id, at);
  const deadline = deadlineOf(run, request.deadlineMs ?? deps.limits.questionMs);
  const { text, by, choices, join, wait } = request;
  const body: QuestionBody = {
    question,
    text,
    by,
    ...(choices && { choices }),
    group: `${turn.id}/${join}`,
    join,
    deadline,
  };
  const task = opening({ kind: 'question', body, id: question }, agent);
  return {
    outcome: 'done',
    text: [
      `${question} is asked. ${wait ? 'You are woken with the answer.' : 'The answer comes when somebody gives one.'}`,
      said,
    ]
      .filter(Boolean)
      .join(' '),
    effects: effectsOf({
      events: [{ ...ownDraft(run, `asked:${at.step}.${at.index}`), kind: 'question', body }],
      timers: [
        {
          at: deadline,
          task: question,
          posts: cancellationOf({ conversation }, task, SYSTEM_AUTHOR, 'nobody answered in time'),
        },
      ],
      ends: wait,
    }),
  };
}

/** Maximum events of the log from which a summary is made, besides the outputs of the turn. */
const RECENT_EVENTS = 200;

/** A completed handoff as recorded, so that a replay needs neither the log nor a model. */
interface CompletedHandoff {
  to: AgentId;
  summary: HandoffSummary;
}

async function completeHandoff(
  run: TurnRun,
  request: RequestOf<'handoff'>,
  summarise?: HandoffSources['summarise'],
): Promise<CompletedHandoff> {
  const summary = await fillHandoff(request, {
    from: run.live.address.agent,
    events: () => recentEvents(run),
    extract: (events, from) =>
      inSlices(run.deps.clock, handoffSteps(events, from, run.deps.trust ?? null), run.meanwhile.work),
    summarise,
    onWarning: run.deps.onWarning,
  });
  return { to: request.to, summary };
}

/** The newest events of the log up to the pinned seq, then the outputs of the turn. */
async function recentEvents(run: TurnRun): Promise<Event[]> {
  const { deps, turn, outputs } = run;
  const { address } = run.live;
  const after = Math.max(0, turn.upTo - RECENT_EVENTS);
  const events = await readNewest(deps.store, address, { after, upTo: turn.upTo, limit: RECENT_EVENTS });
  const { tenant, conversation } = address;
  const at = events.at(-1)?.at ?? 0;
  const own = [...outputs, ...wordsOf(run)];
  return [
    ...events,
    ...own.map((draft, index) => ({
      ...draft,
      tenant,
      conversation,
      seq: turn.upTo + 1 + index,
      at,
      tokens: 0,
    })),
  ];
}

function wordsOf(run: TurnRun): EventDraft[] {
  const content = run.answer?.text ?? '';
  if (content.trim() === '') return [];
  return [{ ...ownDraft(run, `step:${run.step}`), kind: 'message', body: { content } }];
}

/** The sources of a handoff summary. */
export interface HandoffSources {
  from: AgentId;
  /** The end of the log and the outputs of the turn, oldest first. */
  events: () => Promise<readonly Event[]>;
  extract: (events: readonly Event[], from: AgentId) => HandoffSummary | Promise<HandoffSummary>;
  /** Asks a model. If it throws or leaves fields out, extraction fills them. */
  summarise?: ((events: readonly Event[], from: AgentId) => Promise<HandoffSummary | null>) | undefined;
  onWarning: (error: unknown, where: string) => void;
}

/**
 * The summary of a handoff. A summary with a goal is the agent's own and stays unchanged. In others the empty fields are
 * filled in.
 */
export async function fillHandoff(
  { summary, fill }: RequestOf<'handoff'>,
  sources: HandoffSources,
): Promise<HandoffSummary> {
  if (summary.goal.trim() !== '' || fill === undefined) return { ...summary, by: summary.by ?? 'agent' };
  const { from, extract } = sources;
  const events = await sources.events();
  const written = fill === 'summarise' ? await summarised(sources, events) : null;
  return written
    ? { ...merge(summary, written), by: 'compactor' }
    : { ...merge(summary, await extract(events, from)), by: 'extraction' };
}

async function summarised(
  { from, summarise, onWarning }: HandoffSources,
  events: readonly Event[],
): Promise<HandoffSummary | null> {
  try {
    const parsed = HandoffSummary.safeParse(await summarise?.(events, from));
    return parsed.success ? parsed.data : null;
  } catch (error) {
    onWarning(error, `handoff summary of @${from}`);
    return null;
  }
}

/** Merges two summaries. The agent's text wins in every field that it wrote. */
function merge(written: HandoffDraft, found: HandoffSummary): HandoffSummary {
  return {
    goal: found.goal,
    done: written.done || found.done,
    state: written.state || found.state,
    next: written.next || found.next,
    openQuestions: written.openQuestions.length > 0 ? written.openQuestions : found.openQuestions,
    artifacts: written.artifacts.length > 0 ? written.artifacts : found.artifacts,
    why: written.why || found.why,
  };
}

const SUMMARY_TOKENS = 1_500;

/** Asks a model for the summary of a handoff; null if the turn was aborted. Throws if the model gives no summary. */
async function summariseHandoff(
  run: TurnRun,
  to: AgentId,
  events: readonly Event[],
): Promise<HandoffSummary | null> {
  const { deps, live, runtime } = run;
  const { compaction } = deps.features;
  if (!compaction) throw noSummary('nothing here asks for summaries');
  const summariser = runtime.summariser ?? runtime;
  const model = await deps.models.get(live.address.tenant, summariser.profile);
  const fitting = handoffRequestSteps({
    from: live.address.agent,
    to,
    events,
    before: latestCompaction(live.view)?.body.summary ?? '',
    secret: live.view.secret,
    people: live.view.people,
    maxTokens: requestTokens(windowFor(summariser, model), SUMMARY_TOKENS),
    count: deps.countTokens,
    trusted: deps.trust ?? null,
  });
  const request = await inSlices(deps.clock, fitting, run.meanwhile.work);
  if (!request) throw noSummary('the request does not fit the window');
  const answer = await compaction.askSummary(run, request, SUMMARY_TOKENS);
  if (answer.kind === 'aborted') return null;
  if (answer.kind === 'failed') throw noSummary(answer.message);
  const summary = parseHandoff(answer.text);
  if (!summary) throw noSummary('the model gave no valid summary');
  // Ids that the model invented are dropped, because the next agent would search for them.
  return { ...summary, artifacts: summary.artifacts.filter((id) => request.user.includes(id)) };
}

function noSummary(why: string): Error {
  return new Error(`the summary is extracted from the log instead: ${why}`);
}
