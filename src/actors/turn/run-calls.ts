import { capped, hashText } from '../../context/index.ts';
import {
  type Event,
  type EventDraft,
  type EventDraftOf,
  type RunTime,
  type ToolCall,
  type ToolOutcome,
  type Author,
  hasAuthority,
  MAX_TOLD_ARGS,
  type PinnedTurn,
  type ActorAddress,
} from '../../events/index.ts';
import { preview } from '../../tools/preview.ts';
import { BUILTIN_TOOLS } from '../../tools/builtin/index.ts';
import { toolName } from '../../tools/mcp/settings.ts';
import { runTool } from '../../tools/run-tool.ts';
import type { ToolContext, ToolAnswer } from '../../tools/tool.ts';
import { faultDrafts } from './judge-answer.ts';
import { redactCall } from './step-journal.ts';
import { showCall, showResult } from './hear-answer.ts';
import { afterStep, staleNote, staleStop } from '../attempt/repeated-calls.ts';
import { type CallEffects, type CallPlace, effectsOf, NOT_RUN, stopDraft } from '../tasks/call-effects.ts';
import { applyToolRequest, heldForApproval } from '../tasks/apply-tool-request.ts';
import { changed, type Outcome, ownDraft, type TurnRun } from '../attempt/turn-run.ts';
import type { TaskFold } from '../../machines/task-fold.ts';
import { eventsAt, originsOf } from '../log/read-turn.ts';
import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Runs the calls of one step through the effects ledger. The entry is inserted before the tool is called, and only the process
 * that inserted it may call. A call that another process started is repeated if the tool is idempotent; otherwise it is
 * `lost`. Every call ends in exactly one `tool.result`.
 */
export async function runCalls(run: TurnRun): Promise<Outcome> {
  const { answer, deps, live } = run;
  if (!answer) throw new Error('calls are run only after an answer');
  const step: EventDraft = {
    ...ownDraft(run, `step:${run.step}`),
    kind: 'step',
    body: {
      index: run.step,
      content: answer.text,
      calls: answer.calls,
      ...(answer.reasoning && { reasoning: answer.reasoning }),
    },
  };
  // Read before the first call begins, because a failure after that could not be retried.
  const about = await aboutTools(run);
  const place = createToolPlace(run);
  const ends = await inToolPlace(place, () =>
    allEnded(answer.calls.map((call, index) => settleAndShow(run, about, call, index))),
  );
  const { settled, handoff } = onlyFirstHandoff(ends);
  const { tenant } = live.address;
  for (const { outcome } of settled) deps.metrics.count('tool_calls', { tenant, outcome });
  const results = await Promise.all(
    settled.map((end, index) => resultDraft(run, answer.calls[index] as ToolCall, index, end)),
  );
  const repeated = afterStep(
    run.repeated,
    settled.map(({ outcome, text }, index) => {
      const { name, args } = answer.calls[index] as ToolCall;
      return { name: run.runtime.tools.has(name) ? name : null, args, outcome, text };
    }),
  );
  const last = results.at(-1);
  if (last) last.body.content += staleNote(repeated, deps.limits.maxRepeats);
  const handed =
    handoff === -1 ? settled : settled.with(handoff, withResults(run, results, settled[handoff] as Settled));
  const effects = handed.flatMap((end) => end.effects ?? []);
  const fault = answer.fault ? faultDrafts(run, answer.fault) : [];
  const outputs = [step, ...results, ...onceEach(effects.flatMap(({ events }) => events)), ...fault];
  const silent = run.silent || effects.some((effect) => effect.silent === true);
  const next = changed(
    run,
    { repeated, silent, step: run.step + 1, answer: null },
    {
      outputs,
      outgoing: effects.flatMap(({ posts }) => posts),
      timers: effects.flatMap(({ timers }) => timers),
    },
  );
  return endAfter(next, effects);
}

/** Keeps only the first handoff of a step. The results of the others tell the model that they did not count. */
function onlyFirstHandoff(ends: readonly Settled[]): { settled: readonly Settled[]; handoff: number } {
  const targets = ends.map(({ effects }) => effects?.events.find(({ kind }) => kind === 'handoff')?.to[0]);
  const first = targets.findIndex((to) => to !== undefined);
  const settled = ends.map((end, index): Settled => {
    const to = targets[index];
    if (to === undefined || index === first) return end;
    const text = `[not handed over to @${to}: this step had handed over to @${targets[first]} before, and only the first counts. To involve several agents, delegate to them.]`;
    return { ...end, outcome: 'failed', text, effects: undefined };
  });
  return { settled, handoff: first };
}

const MOST_RESULTS = 10;

/** Adds the ids of the turn's tool results to a handoff, if the receiver can read them. It does not see calls of others. */
function withResults({ deps, outputs }: TurnRun, results: readonly EventDraft[], end: Settled): Settled {
  const handoff = end.effects?.events.find((event) => event.kind === 'handoff');
  const receiver = handoff?.to[0] && deps.agents.get(handoff.to[0]);
  if (!end.effects || !handoff || !receiver?.tools.has('read_artifact')) return end;
  const { summary } = handoff.body;
  const named = summary.artifacts.join(' ');
  const found = [...outputs, ...results].flatMap((event) => {
    if (event.kind !== 'tool.result' || event.body.outcome !== 'done') return [];
    const { name, artifact = event.id } = event.body;
    const isOurs = BUILTIN_TOOLS.includes(name) && name !== 'fetch';
    return isOurs || named.includes(artifact) ? [] : [`${artifact} (${name})`];
  });
  const artifacts = [...summary.artifacts, ...found.slice(-MOST_RESULTS)];
  const event = { ...handoff, body: { ...handoff.body, summary: { ...summary, artifacts } } };
  return {
    ...end,
    effects: { ...end.effects, events: end.effects.events.map((each) => (each === handoff ? event : each)) },
  };
}

function endAfter(run: TurnRun, effects: readonly CallEffects[]): Outcome {
  const { deps, lease, live, step } = run;
  if (lease.signal.aborted) return { event: { type: 'ABORTED' }, run };
  const [stop] = effects.flatMap(({ stops }) => stops ?? []);
  if (stop) return refused(run, 'guard_stopped', stop.message);
  if (effects.some(({ ends }) => ends)) return { event: { type: 'CALLS_ENDED_TURN' }, run };
  const repeats = staleStop(run.repeated, live.address.agent, deps.limits.maxRepeats);
  if (repeats) return refused(run, 'guard_stopped', repeats.message, [stopDraft(run, repeats)]);
  if (step >= deps.limits.maxSteps) {
    const message = `the turn took ${step} steps; limits.maxSteps is ${deps.limits.maxSteps}`;
    const goOn = 'ask again to go on from here, or raise limits.maxSteps in the agents file';
    return refused(run, 'step_limit', message, [stopDraft(run, { guard: 'steps', message, goOn })]);
  }
  return { event: { type: 'CALLS_DONE' }, run };
}

function refused(run: TurnRun, code: string, message: string, outputs: EventDraft[] = []): Outcome {
  return {
    event: { type: 'REFUSED' },
    run: changed(run, { ending: { kind: 'failed', code, message } }, { outputs }),
  };
}

/** Keeps one event per guard and reason, even if it stopped several calls of the step. */
function onceEach(events: readonly EventDraft[]): EventDraft[] {
  const seen = new Set<string>();
  return events.filter((event) => {
    if (event.kind !== 'guard.stopped') return true;
    const what = `${event.body.guard} ${event.body.message}`;
    return !seen.has(what) && seen.add(what);
  });
}

/** Like `Promise.all`, but rejects only when all have ended, because no call may run after the lease is released. */
async function allEnded<T>(work: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

interface Settled {
  outcome: ToolOutcome;
  text: string;
  ran?: RunTime | undefined;
  effects?: CallEffects | undefined;
}

async function settleAndShow(
  run: TurnRun,
  about: AboutTools,
  call: ToolCall,
  index: number,
): Promise<Settled> {
  const end = (await recordedEnd(run, call)) ?? (await settleCall(run, about, call, index));
  showResult(run, call, end);
  return end;
}

/** The recorded result in a turn that repeats another; null if the call is made. Needs no ledger entry: it never changes. */
async function recordedEnd({ recorded }: TurnRun, call: ToolCall): Promise<Settled | null> {
  const found = recorded && (await recorded(call));
  if (!found) return null;
  const { ends, ...end } = found;
  return { ...end, ...(ends && { effects: effectsOf({ ends, silent: true }) }) };
}

async function settleCall(run: TurnRun, about: AboutTools, call: ToolCall, index: number): Promise<Settled> {
  const { deps, live, turn } = run;
  const tenant = live.address.tenant;
  const tool = run.runtime.tools.get(call.name);
  const at = { step: run.step, index };
  const held = tool && (await heldForApproval(run, tool, call, at));
  if (held) return held.outcome === 'failed' ? redacted(run, held) : held;
  const effect = `${turn.id}/${run.step}.${index}`;
  const { mine, record, stored } = await deps.store.startEffect(tenant, effect, {
    argsHash: hashText(call.args),
    by: deps.process,
    at: deps.clock.now(),
  });
  if (record.status === 'settled')
    return { ...(JSON.parse(record.data) as Settled), outcome: record.outcome };
  const end: Settled = run.givenUp
    ? mine
      ? { outcome: 'failed', text: NOT_RUN }
      : { outcome: 'lost', text: LOST }
    : mine || tool?.idempotent
      ? redacted(run, await execute(run, { ...about, effect }, call, at))
      : { outcome: 'lost', text: LOST };
  // An abort leaves the entry unsettled, because it is unknown how far the call got.
  if (run.lease.signal.aborted && !run.givenUp) return { outcome: 'lost', text: LOST };
  const settled = await deps.store.settleEffect(tenant, effect, stored, {
    outcome: end.outcome === 'waiting' ? 'failed' : end.outcome,
    data: JSON.stringify({ text: end.text, effects: end.effects, ran: end.ran }),
  });
  if (settled.status !== 'settled') return end;
  return { ...(JSON.parse(settled.data) as Settled), outcome: settled.outcome };
}

/** Redacts a result first, so that the model, the ledger and the log get the same text. */
function redacted({ deps, runtime }: TurnRun, end: Settled): Settled {
  return deps.redaction ? redactCall(deps.redaction, runtime.profile, end) : end;
}

const LOST =
  '[lost: the call was started and the process ended before its result was recorded. It may or may not have had its effect; check before doing it again.]';

async function execute(
  run: TurnRun,
  about: AboutTools & { effect: string },
  call: ToolCall,
  at: CallPlace,
): Promise<Settled> {
  const { deps, lease, runtime } = run;
  const tool = runtime.tools.get(call.name);
  if (!tool) return { outcome: 'failed', text: noTool(runtime, call) };
  const shown = showCall(run, call);
  const context: ToolContext = {
    ...about,
    signal: lease.signal,
    artifacts: { read: (id) => readOutput(run, id) },
    progress: (report) => shown.progress(report),
  };
  const watch = run.watch.tool(call);
  const { outcome, text, request } = await watch.within(() =>
    runTool(tool, call, context, { clock: deps.clock }),
  );
  shown.end();
  const ran = watch.end(outcome, text);
  return request ? { ...(await applyToolRequest(run, request, at, text)), ran } : { outcome, text, ran };
}

function noTool({ tools, awayServers }: TurnRun['runtime'], { name }: ToolCall): string {
  const server = awayServers.find((each) => name.startsWith(toolName(each, '')));
  const why = server === undefined ? '' : ` now, because the tool server ${server} is away`;
  return `there is no tool "${name}" here${why}. Your tools: ${[...tools.keys()].join(', ') || 'none'}.`;
}

async function resultDraft(
  run: TurnRun,
  call: ToolCall,
  index: number,
  end: Settled,
): Promise<EventDraftOf<'tool.result'>> {
  const { deps, live } = run;
  const artifact = `${run.turn.id}.${run.step}.${index}`;
  const tool = run.runtime.tools.get(call.name);
  const { text, cut } = tool?.bounded
    ? { text: end.text, cut: false }
    : preview(end.text, { maxBytes: tool?.previewBytes ?? deps.limits.previewBytes, artifact });
  if (cut) await deps.store.putArtifact(live.address, artifact, end.text, deps.clock.now());
  return {
    ...ownDraft(run, `result:${run.step}.${index}`),
    kind: 'tool.result',
    body: {
      call: call.id,
      name: call.name,
      outcome: end.outcome,
      content: text,
      ...(cut && { artifact }),
      ...(end.ran && { ran: end.ran }),
      // A call that waits for a person has no result yet.
      ...(tool?.told &&
        end.outcome !== 'waiting' && { told: tool.told, args: capped(call.args, MAX_TOLD_ARGS) }),
    },
  };
}

/**
 * A whole tool output by the id in a prompt: that of an artifact, or of an event if the output was shown whole and pruned
 * later. By event an agent can read its own outputs, those that it may see, and those of a turn that handed over to it.
 */
async function readOutput(run: TurnRun, id: string): Promise<string | null> {
  const { deps, live, outputs } = run;
  const { address } = live;
  const artifact = await deps.store.readArtifact(address, id);
  if (artifact !== null) return artifact;
  const event = outputs.find((output) => output.id === id) ?? (await deps.store.readById(address, id));
  if (!event) return null;
  const told = toldTo(run, event);
  if (told !== null || event.kind !== 'tool.result') return told;
  const isOwn = event.author.kind === 'agent' && event.author.id === address.agent;
  return isOwn || (await isHandedOver(run, event)) ? event.body.content : null;
}

/** Maximum events between a result and the handoff of its turn. */
const HANDED_WITHIN = 500;

/** Whether the result belongs to a turn that ended with a handoff to this agent. */
async function isHandedOver(
  { deps, live: { address } }: TurnRun,
  event: Event | EventDraft,
): Promise<boolean> {
  if (!('seq' in event) || event.turn === undefined) return false;
  const next = await deps.store.read(address, { after: event.seq, limit: HANDED_WITHIN });
  return next.some(
    ({ kind, turn, to }) => kind === 'handoff' && turn === event.turn && to.includes(address.agent),
  );
}

/** A result of others that the agent may see; null if it may not. */
function toldTo({ runtime }: TurnRun, event: Event | EventDraft): string | null {
  if (!('told' in event.body) || (event.body.told !== 'all' && !runtime.profile.sees)) return null;
  if (event.kind === 'tool.result') return event.body.content;
  return event.kind === 'delegation.ended' ? event.body.result : null;
}

type AboutTools = Omit<ToolContext, 'effect' | 'signal' | 'artifacts' | 'progress'>;

/** Cached per set of inputs: a turn that takes in another message is another object. */
const known = new WeakMap<PinnedTurn, Promise<AboutTools>>();

function aboutTools(run: TurnRun): Promise<AboutTools> {
  const found = known.get(run.turn) ?? readAbout(run);
  known.set(run.turn, found);
  // A failure is not cached, so that an unavailable store is tried again.
  found.catch(() => known.delete(run.turn));
  return found;
}

async function readAbout({ deps, live, turn, runtime }: TurnRun): Promise<AboutTools> {
  const { address } = live;
  const seqs = [...turn.inputs, ...(turn.steered ?? []).flatMap(({ inputs }) => inputs)];
  const inputs = await eventsAt(deps, address, seqs);
  const origins = await originsOf(deps, inputs);
  const { id, name } = runtime.profile;
  const itself: Author = { kind: 'agent', id, name };
  return {
    address,
    tenant: address.tenant,
    conversation: address.conversation,
    agent: address.agent,
    turn: turn.id,
    author: origins.at(-1)?.author ?? itself,
    authors: distinct(origins.map(({ author }) => author)),
    app: deps.app,
    answers: inputs.flatMap((event) => answerIn(live.tasks, event, address.agent)),
    forTools: valueOf(deps.forTools, origins.at(-1)),
  };
}

/** The answer in an event, if it ended its question. An answer may come after the question has expired. */
function answerIn(tasks: TaskFold, event: Event, agent: string): ToolAnswer[] {
  if (event.kind !== 'question.answered') return [];
  const task = tasks.tasks.get(event.body.question);
  if (task?.kind !== 'question' || task.owner !== agent || task.end?.seq !== event.seq) return [];
  const { outcome, content } = event.body;
  return [{ question: task.body.text, outcome, content, author: event.author }];
}

/** The value that came with a message: the one kept in this process, otherwise the one stored with the message. */
function valueOf(given: TurnRun['deps']['forTools'], origin: Event | undefined): unknown {
  if (!origin) return null;
  const here = given?.get(origin);
  if (here !== undefined) return here;
  return hasAuthority(origin) ? (origin.context?.forTools ?? null) : null;
}

/** One author for each person, with the name used last. */
function distinct(authors: readonly Author[]): Author[] {
  return [...new Map(authors.map((author) => [`${author.kind} ${author.id}`, author])).values()];
}

/**
 * What a turn holds while its tools run: a place of its process, and a slot under the caps of concurrent turns. A tool that
 * waits for other agents lends both, because these agents may need them.
 */
interface ToolPlace {
  readonly address: ActorAddress;
  /** Lends the place and the slot until the returned function is called. */
  lend(): Promise<() => Promise<void>>;
}

const places = new AsyncLocalStorage<ToolPlace>();

/** Creates the place for all calls of a step. Lent parts are taken back when none of the calls waits any more. */
function createToolPlace({ deps, live, slot, lease }: TurnRun): ToolPlace {
  let waiting = 0;
  let giveBack: (() => void) | undefined;
  return {
    address: live.address,
    async lend() {
      waiting += 1;
      if (waiting === 1) {
        giveBack = deps.lendPlace?.();
        await slot.leave();
      }
      return async () => {
        waiting -= 1;
        if (waiting > 0) return;
        giveBack?.();
        await slot.regain(AbortSignal.any([lease.signal, deps.stopping]));
      };
    },
  };
}

function inToolPlace<T>(place: ToolPlace, run: () => T): T {
  return places.run(place, run);
}

/** The place of the running tool; undefined outside of tools. */
export function toolPlace(): ToolPlace | undefined {
  return places.getStore();
}
